"""What looks like a key or a password in a text: masked for logs, spans and error messages.

It knows the common shapes of secrets, no more. It is not redaction: names and addresses stay.
"""

import re
from typing import Final

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
