"""What looks like a key or a password in a text: masked for logs, spans and error messages.

It knows the common shapes of secrets, no more. It is not redaction: names and addresses stay.
"""

import re
from collections.abc import Callable
from typing import Final

LONGEST_WORDS: Final = 1_000
"""Characters of a reason or an error that a log has at most."""
_AHEAD: Final = 7  # times the length of an excerpt that are read behind it
_FARTHEST: Final = 8_192  # characters that are read behind it at most

NAMED: Final = (
    r"(?:authorization|api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(?:or)?d)"
    r"(?:[_-]\w{1,40})?[\"']?\s{0,8}"
)
"""What a secret may stand behind, up to the colon or the equals sign."""

VALUE: Final = r"[^\s\"',}@]"
"""A character of a secret that stands behind a name."""

_BLOCK: Final = r"(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"


def secrets(longest: int | None = None) -> re.Pattern[str]:
    """What finds a secret; the group `lead` is what stands before it and is no secret itself.

    The time that it takes grows with the text alone.

    Args:
        longest: characters that a secret has at most, about; None for no end.
    """

    def most(share: float) -> str:
        return "" if longest is None else str(int(share * longest))

    return re.compile(
        rf"(?ai)-----BEGIN {_BLOCK}[^-]{{0,{most(0.9)}}}(?:-----END {_BLOCK})?"
        rf"|(?<![\w-])(?:sk-[\w-]{{8,{most(1)}}}|gh[pousr]_\w{{16,{most(1)}}}"
        rf"|github_pat_\w{{20,{most(1)}}}|xox[abprs]-[\w-]{{8,{most(1)}}}|AKIA[0-9A-Z]{{16}}"
        rf"|AIza[\w-]{{35}}"
        rf"|eyJ[\w-]{{8,{most(0.1)}}}\.[\w-]{{8,{most(0.75)}}}\.[\w-]{{0,{most(0.15)}}})"
        rf"|(?P<lead>\b(?:bearer|basic)\s{{1,8}}(?={VALUE}{{8}})(?={VALUE}{{0,64}}[0-9+/=_])"
        r"|://[^\s/:@]{0,64}:(?=[^\s/@]{1,256}@)"
        rf"|{NAMED}[:=]\s{{0,8}}[\"']?(?:(?:bearer|basic)\s{{1,8}})?)"
        rf"(?!-----BEGIN){VALUE}{{4,{most(1)}}}"
    )


_SECRETS: Final = secrets()


def mask(text: str) -> str:
    """The text with what looks like a key or a password replaced by ***."""
    return _SECRETS.sub(lambda found: (found["lead"] or "") + "***", text)


def excerpt(text: str, longest: int, hide: Callable[[str], str] = mask, more: str = "…") -> str:
    """The beginning of a text without secrets, for a log.

    Secrets are taken out before it is cut, as half of one would not be known for a secret. What is
    far behind the cut is not read.

    Args:
        text: any text.
        longest: characters at most, `more` left out.
        hide: what takes secrets out.
        more: stands behind what is cut.
    """
    near = text[: longest + min(_AHEAD * longest, _FARTHEST)]
    hidden = hide(near)
    whole = len(hidden) <= longest and len(near) == len(text)
    return hidden if whole else hidden[:longest] + more


def error_words(error: BaseException) -> str:
    """What a log tells of an error: its class and its words, without secrets, cut where long."""
    return excerpt(f"{type(error).__name__}: {error}", LONGEST_WORDS)
