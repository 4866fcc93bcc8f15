"""Errors of pydantic-ai in our tree (R-FAIL-2), with the words of the provider."""

from typing import TYPE_CHECKING, Any

from retinue.errors import ConfigError, ModelError, ModelTimeout, ModelUnreachable, RetinueError
from retinue.models import failures
from retinue.models.bridge.encode import Call
from retinue.models.failures import Peer
from retinue.models.loose import an_object
from retinue.models.outgoing import to_json

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelHTTPError

_PAGE = ("<!doctype", "<html")


def translated(peer: Peer, error: Exception, call: Call, *, spoke: bool) -> RetinueError:
    """The error of ours that stands for one of the bridge's.

    Args:
        peer: whom it names.
        error: what was raised by pydantic-ai, or by the vendor's client below it.
        call: what was asked.
        spoke: whether something of the answer had come.
    """
    from pydantic_ai import exceptions as theirs

    if isinstance(error, theirs.UserError | NotImplementedError):
        held = f" The request holds {', '.join(call.media)}." if call.media else ""
        return ConfigError(_sentence(peer, f"{peer.provider} cannot be asked this: {error}") + held)
    if isinstance(error, theirs.ModelTimeoutError):
        return ModelTimeout(
            f"{peer} sent nothing for {call.timeout:g} s. Try again, or wait longer."
        )
    if isinstance(error, theirs.ModelConnectionError):
        return _cut(peer, error, spoke)
    if isinstance(error, theirs.ModelHTTPError) and not error.in_stream:
        return _of_status(peer, error)
    if isinstance(error, theirs.ModelAPIError) and (error.in_stream or error.body is not None):
        status = getattr(error, "status_code", None)
        return failures.of_answer(peer, error.body or error.message, status)
    text = str(error).partition("\n")[0]
    if any(mark in text.lower() for mark in _PAGE):
        return failures.web_page(peer, text.encode("utf-8", "replace"))
    if isinstance(error, theirs.UnexpectedModelBehavior):
        what = "sent what is no answer; check base_url, in case it was a web page"
        return failures.broken(peer, what, text)
    return failures.broken(peer, "sent what is no answer", text)


def _cut(peer: Peer, error: Exception, spoke: bool) -> ModelError:
    if spoke:
        return failures.broken(peer, "broke off in the middle of its answer; ask again")
    told, why = str(error), error.__cause__
    while why is not None:  # the vendor's client says less than what it stands on
        told, why = str(why) or told, why.__cause__
    return ModelUnreachable(_sentence(peer, f"{peer} cannot be reached: {told}"))


def _of_status(peer: Peer, error: "ModelHTTPError") -> ModelError:
    headers: dict[str, str] = dict(error.headers or {})
    if error.retry_after is not None:
        headers.setdefault("retry-after", f"{error.retry_after:f}")
    return failures.of_status(peer, error.status_code, headers, _body(error.body))


def _body(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "replace")
    return to_json(an_object(body) or ("" if body is None else str(body)))


def _sentence(peer: Peer, text: str) -> str:
    text = peer.mask(" ".join(text.split()))[: failures.LONGEST_QUOTE]
    return text if text.endswith((".", "!", "?")) else f"{text}."
