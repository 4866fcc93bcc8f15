"""What a provider's refusals and errors mean, in one sentence each (R-FAIL-2, R-FAIL-3).

No I/O: a status, headers and a body in, an error of the tree out. Errors of the connection itself
are the business of `transport`.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from retinue.errors import (
    ModelBroken,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelUnreachable,
)
from retinue.models.loose import a_list, a_text, an_object

SHORTEST_SECRET: Final = 8
"""Characters. What is shorter is a word like `none`, and words are not masked."""

LONGEST_QUOTE: Final = 500
"""Characters of a provider's message that are kept."""

_SHOWN: Final = 200  # bytes of a broken answer that an error quotes

_Meaning = tuple[type[ModelError], str, str]

STATUS: Final[Mapping[int, _Meaning]] = {
    400: (
        ModelRefused,
        "refused the request",
        "Change the request; sending it again will not help.",
    ),
    401: (ModelRefused, "refused the key", "Check {key}."),
    402: (ModelRefused, "asks to be paid", "Top up the account that the key belongs to."),
    403: (ModelRefused, "forbids the request", "Check what the key may do, and where from."),
    404: (ModelRefused, "knows no such model or address", "Check the name {model!r} and the URL."),
    408: (ModelOverloaded, "gave up waiting", "Try again."),
    409: (ModelOverloaded, "is busy with the same thing", "Try again."),
    413: (ModelRefused, "finds the request too large", "Send fewer messages or smaller files."),
    429: (ModelOverloaded, "limits the rate", "Ask less often, or ask for a higher limit."),
    529: (ModelOverloaded, "is overloaded", "Try again later."),
}
"""What a status means: the error, what happened, what to do."""

_REDIRECTED: Final = (ModelRefused, "redirects to {place}", "Set base_url to where it really is.")
_REFUSED: Final = (ModelRefused, "refused the request", STATUS[400][2])
_FAILED: Final = (ModelOverloaded, "failed", "Try again later.")
_UNKNOWN: Final = (ModelBroken, "failed", "Try again.")
_FOR_A_PERSON: Final = (STATUS[401], STATUS[402], STATUS[403])

_TOO_LONG: Final = (
    ModelRefused,
    "finds the prompt too long",
    "Send fewer messages, as Memory does with a window, ask for fewer max_tokens, or use a model"
    " with a longer context.",
)

_OVER_CONTEXT: Final = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long"
    r"|(prompt|input)\b.*\btokens?\b.*\bexceeds"
)
_OUT_OF_CREDIT: Final = re.compile(
    r"insufficient.?(quota|balance|credit)|billing_hard_limit|credit balance is too low"
)
# Google says so with status 400.
_BAD_KEY: Final = re.compile(r"api key (not valid|not found|expired)")
_DELAY: Final = re.compile(rb'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')  # and asks to wait in the body
_WORDS: Final = (
    (re.compile(r"rate.?limit|too.?many.?requests"), 429),
    (re.compile(r"overload|unavailable|capacity"), 529),
    (re.compile(r"server.?error|internal|timeout|time.?out"), 500),
    (re.compile(r"auth|api.?key"), 401),
    (re.compile(r"invalid|content.?filter|context.?length|not.?found|tool.?use.?failed"), 400),
)
"""What the type or code of an error says, where it stands in an answer that has no status."""


class Peer:
    """Whom a model talks to, as error messages name it.

    Args:
        provider: such as "openai".
        host: such as "api.openai.com".
        model: the model's name.
        key: where the key comes from, in words: "OPENAI_API_KEY".
        secrets: texts that no message may hold.
    """

    __slots__ = ("_secrets", "host", "key", "model", "provider")

    def __init__(
        self, provider: str, host: str, model: str, key: str, secrets: Iterable[str] = ()
    ) -> None:
        self.provider = provider
        self.host = host
        self.model = model
        self.key = key
        # The longest first, or a key that begins another would leave its end in the open.
        kept = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._secrets = tuple(sorted(kept, key=len, reverse=True))

    def __str__(self) -> str:
        return f"{self.provider} ({self.host})"

    def mask(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def knowing(self, secrets: Iterable[str]) -> "Peer":
        """The same peer, with further secrets."""
        return Peer(self.provider, self.host, self.model, self.key, (*self._secrets, *secrets))


def of_status(peer: Peer, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error that a status other than 2xx stands for. `headers` ignores case."""
    said, word = _message(body)
    meaning = _meaning(status, said, word)
    what = meaning[1].format(place=headers.get("location", "another address"))
    wait = retry_after(headers)
    if wait is None and (told := _DELAY.search(body)):
        wait = float(told[1])
    return _error(peer, meaning, f"{what} (HTTP {status})", said, status, wait)


def of_answer(peer: Peer, value: Any, status: int | None = None) -> ModelError:
    """The error that stands in an answer of status 200, whole or in the middle of a stream.

    Args:
        peer: whom it names.
        value: the error as it came.
        status: what status it would have had, where the format says so.
    """
    said, word = _said(value)
    status = _status_within(value) if status is None else status
    if status is None:
        status = next((code for pattern, code in _WORDS if pattern.search(word)), None)
    meaning = _meaning(status, said, word)
    return _error(peer, meaning, "answered with an error", said, status)


def _meaning(status: int | None, said: str, word: str) -> _Meaning:
    """What an error means; what it says of an account comes before its status."""
    if _OUT_OF_CREDIT.search(f"{word} {said.lower()}"):
        return STATUS[402]
    if _BAD_KEY.search(said.lower()):
        return STATUS[401]
    if status is None:
        return _UNKNOWN
    if 300 <= status < 400:
        return _REDIRECTED
    if status in (400, 413, 422) and _OVER_CONTEXT.search(f"{word} {said.lower()}"):
        return _TOO_LONG
    return STATUS.get(status, _FAILED if status >= 500 else _REFUSED)


def _error(
    peer: Peer,
    meaning: _Meaning,
    happened: str,
    said: str,
    status: int | None,
    wait: float | None = None,
) -> ModelError:
    kind, _, advice = meaning
    for_a_person = meaning in _FOR_A_PERSON
    text = f"{peer} {happened}{_quoted(peer, said)}"
    if for_a_person:
        wait = None
    elif wait is not None:
        text += f" It asks to wait {wait:g} s."
    text += f" {advice.format(key=peer.key, model=peer.model)}"
    error = kind(peer.mask(text), status=status, retry_after=wait)
    if for_a_person:
        error.failure = "environment"  # whatever the status says
    return error


def broken(peer: Peer, what: str, shown: bytes | str = b"") -> ModelBroken:
    """An answer that is none. `what` goes on from the provider's name; `shown` is quoted."""
    text = shown.decode("utf-8", "replace") if isinstance(shown, bytes) else shown
    return ModelBroken(f"{peer} {what}{_quoted(peer, text)}")


def no_answer(peer: Peer, why: Exception | str, shown: bytes) -> ModelBroken:
    """What came and is no answer in the format; its beginning is quoted."""
    return broken(peer, f"sent what is no answer ({why})", shown[:_SHOWN])


def cut_short(peer: Peer, *, begun: bool) -> ModelError:
    """A stream that ended before its end. One of which nothing came may be asked for again."""
    if begun:
        return broken(peer, "stopped in the middle of its answer; ask again")
    return ModelUnreachable(f"{peer} ended the stream before its answer. Try again.")


def web_page(peer: Peer, page: bytes) -> ModelBroken:
    """A web page that came instead of an answer."""
    return broken(
        peer, "sent a web page instead of an answer; check base_url, and proxies on the way",
        _title(page.decode("utf-8", "replace")),
    )  # fmt: skip


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ask to wait, or None. Seconds and HTTP dates are understood."""
    precise = _number(headers.get("retry-after-ms"))
    if precise is not None:
        return precise / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _quoted(peer: Peer, said: str) -> str:
    said = peer.mask(" ".join(said.split()))
    if not said:
        return "."
    if len(said) > LONGEST_QUOTE:
        said = said[:LONGEST_QUOTE] + "…"
    return f": {said}" if said.endswith((".", "!", "?", "…")) else f": {said}."


def _message(body: bytes) -> tuple[str, str]:
    """The message in an error's body, and its type and code as one word."""
    try:
        return _said(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
        return (_title(text), "") if text.startswith("<") else (text, "")


def _title(page: str) -> str:
    found = re.search(r"<title[^>]*>(.*?)</title>", page, re.I | re.S)
    return found[1] if found else "a web page"


def _said(value: Any) -> tuple[str, str]:
    outer = _error_object(value)
    if not outer:
        return ("" if value is None else str(value)), ""
    error = an_object(outer.get("error")) or outer
    if text := a_text(outer.get("error")):
        return text, str(outer.get("code") or "").lower()
    text = next((error[name] for name in ("message", "detail", "msg") if error.get(name)), error)
    if not isinstance(text, str):
        text = msgspec.json.encode(text).decode()
    # OpenRouter keeps what the provider behind it said in a corner of its own.
    if raw := a_text(an_object(error.get("metadata")).get("raw")):
        text = f"{text}: {raw}"
    word = " ".join(str(error.get(name) or "") for name in ("type", "code", "status"))
    return text, word.lower()


def _status_within(value: Any) -> int | None:
    outer = _error_object(value)
    for holder in (outer, an_object(outer.get("error"))):
        for name in ("code", "status_code", "status"):
            number = _number(str(holder.get(name)))
            if number is not None and 400 <= number <= 599:
                return int(number)
    return None


def _error_object(value: Any) -> dict[str, Any]:
    """The object that holds the error; Gemini's compatible endpoint puts it into a list."""
    listed = a_list(value)
    return an_object(listed[0] if listed else value)
