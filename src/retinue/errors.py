"""The error tree, and the four classes of failure.

    RetinueError
    ├─ ConfigError            the program is wrong; raised before any work is done
    │  ├─ UnknownModelError   no such provider, or a string that names none
    │  ├─ MissingKeyError     a provider's key is not in the environment
    │  └─ MissingExtraError   an optional package is not installed
    ├─ ModelError             the provider, or the way to it, is at fault
    │  ├─ ModelUnreachable    no connection, or it broke before an answer began
    │  ├─ ModelTimeout        no answer within the time allowed
    │  ├─ ModelRefused        the provider refused the request (HTTP 4xx)
    │  ├─ ModelOverloaded     HTTP 408, 409, 429, 5xx, 529: later may work
    │  └─ ModelBroken         an answer that is no answer: HTML, bad JSON, a stream cut short
    ├─ ToolError              raised by a tool to say what kind of failure it is
    ├─ ArgumentsError         what the model wrote does not fit a tool (in `tools.schema`)
    ├─ OutputError            the answer does not fit the output type that was asked for
    ├─ FormatError            bytes that hold no message of ours (in `messages.codec`)
    ├─ SnapshotError          a paused turn cannot be kept, or what was kept is of no use
    ├─ StoreError             the conversation store is at fault
    │  ├─ ConversationBusy    another turn is writing this conversation
    │  ├─ ConversationNotFound  no such conversation, or it belongs to somebody else
    │  └─ PauseNotFound       nothing waits there, or another process has gone on with it
    ├─ TurnFailed             a durable turn raised, in this process or another
    ├─ TurnNotFound           no durable turn has this id
    ├─ RetrievalError         an index of documents, or a retriever, is at fault
    └─ InternalError          retinue is wrong; please report it

Every message is one sentence or two: what happened, what was tried, what to do. A secret never
stands in one. An error raised by your own code (a tool, a layer) reaches you as it is, unwrapped.
Outside the tree stands `TimedOut` of the engines: a plain TimeoutError, as a tool's own would be.
"""

import errno
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

Failure = Literal["semantic", "transient", "environment", "fatal"]
"""Who can mend it: the model, time, a person, nobody (R-FAIL-1)."""


class RetinueError(Exception):
    """The root of every error that retinue raises."""


class ConfigError(RetinueError):
    """The program asks for something that cannot work."""


class UnknownModelError(ConfigError):
    """The model string names no provider that is known."""


class MissingKeyError(ConfigError):
    """A provider needs a key and none is set."""


class MissingExtraError(ConfigError, ImportError):
    """An optional dependency is needed and not installed."""


class ModelError(RetinueError):
    """A model call failed.

    Attributes:
        status: the HTTP status, or None where there was none.
        retry_after: seconds the provider asked to wait, or None.
        failure: the class of the failure; what the status says of it comes first.
    """

    failure: Failure = "semantic"

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.failure = _of_status(status) or self.failure

    @property
    def retryable(self) -> bool:
        """Whether the same call may work later."""
        return self.failure == "transient"


class ModelUnreachable(ModelError):
    """No connection, or it broke before an answer began."""

    failure = "transient"


class ModelTimeout(ModelError):
    """No answer within the time allowed."""

    failure = "transient"


class ModelRefused(ModelError):
    """The provider refused the request; sending it again changes nothing."""


class ModelOverloaded(ModelError):
    """The provider cannot answer now."""

    failure = "transient"


class ModelBroken(ModelError):
    """What came back is no answer, or only half of one."""


class ToolError(RetinueError):
    """Raise it in a tool to say what kind of failure this is.

    Args:
        message: what the model (or the person who mends it) is told.
        failure: the class, `semantic` by default.
        retry_after: seconds to wait before a retry, for `transient` failures.
    """

    def __init__(
        self, message: str, *, failure: Failure = "semantic", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.failure: Failure = failure
        self.retry_after = retry_after


class Problem(NamedTuple):
    """One thing in an answer that is not as it should be, in words that a model can act on.

    Attributes:
        path: where in the answer, such as "items[0].name"; empty for the answer as a whole.
        expected: what holds there, as it follows "it ..." or stands alone: "should be an integer".
        got: what stands there instead, as JSON that may be cut short, or "nothing".
    """

    path: str
    expected: str
    got: str

    def __str__(self) -> str:
        got = f", got {self.got}" if self.got else ""
        return f"{self.path or 'the answer'}: {self.expected}{got}"


class OutputError(RetinueError):
    """The final answer does not fit the output type.

    Args:
        message: what is wrong, for a person.
        problems: the same, one by one.
        is_json: whether the answer was JSON at all.
    """

    def __init__(
        self, message: str, problems: Sequence[Problem] = (), *, is_json: bool = True
    ) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        self.is_json = is_json


class StoreError(RetinueError):
    """The conversation store cannot do what was asked of it."""


class ConversationBusy(StoreError):
    """Another turn holds the conversation."""


class ConversationNotFound(StoreError):
    """There is no such conversation for this owner."""


class PauseNotFound(StoreError):
    """No turn of the conversation waits, or not this one any more."""


class SnapshotError(RetinueError):
    """A paused turn cannot be kept as data, or the data is none, changed, or too new."""


class TurnFailed(RetinueError):
    """A durable turn raised. What it raised is told in words, for it may have been elsewhere."""


class TurnNotFound(RetinueError):
    """No durable turn has this id."""


class RetrievalError(RetinueError):
    """Documents cannot be looked up: an index, a retriever or an embedder is at fault."""


class InternalError(RetinueError):
    """A state that retinue rules out was reached."""


_ENVIRONMENT_ERRNO: Final = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
_TRANSIENT_STATUS: Final = {408, 429}
_ENVIRONMENT_STATUS: Final = {401, 402, 403}
_KNOWN: Final[dict[tuple[str, str], Failure]] = {
    ("builtins", "TimeoutError"): "transient",
    ("builtins", "ConnectionError"): "transient",
    ("builtins", "PermissionError"): "environment",
    ("socket", "gaierror"): "transient",
    ("ssl", "SSLCertVerificationError"): "environment",
    ("http", "IncompleteRead"): "transient",
    ("aiohttp", "ClientConnectionError"): "transient",
    ("aiohttp", "ClientConnectorCertificateError"): "environment",
    ("aiohttp", "ClientPayloadError"): "transient",
    ("httpx", "NetworkError"): "transient",
    ("httpx", "RemoteProtocolError"): "transient",
    ("httpx", "TimeoutException"): "transient",
    ("requests", "ConnectionError"): "transient",
    ("requests", "Timeout"): "transient",
    ("requests", "ChunkedEncodingError"): "transient",
    ("requests", "SSLError"): "environment",
}
"""Exceptions and what derives from them, by the root of their module and their name, so that no
client need be imported to know its errors."""


def classify(error: BaseException) -> Failure:
    """The class of a failure (R-FAIL-1).

    What the exception says of itself (an attribute `failure`) comes first, then the exceptions
    that are known, then `semantic`. HTTP clients are recognised by the status their errors carry.
    An exception of another library that says nothing is taken for what caused it.
    """
    met = [error]
    for one in met:  # grows by the causes of what says nothing
        failure = _said(one)
        if failure is not None and (one is error or failure != "fatal"):
            return failure
        met += [cause for cause in _causes(one) if all(cause is not known for known in met)]
    return "semantic"


def _said(error: BaseException) -> Failure | None:
    own = getattr(error, "failure", None)
    if own in ("semantic", "transient", "environment", "fatal"):
        return own
    if isinstance(error, (MemoryError, KeyboardInterrupt, SystemExit)):
        return "fatal"
    if isinstance(error, OSError) and error.errno in _ENVIRONMENT_ERRNO:
        return "environment"
    for kind in type(error).__mro__:  # the nearest counts
        known = _KNOWN.get((kind.__module__.partition(".")[0], kind.__name__))
        if known is not None:
            return known
    return _of_status(http_status(error))


def _of_status(status: int | None) -> Failure | None:
    if status is None:
        return None
    if status in _TRANSIENT_STATUS or status >= 500:
        return "transient"
    return "environment" if status in _ENVIRONMENT_STATUS else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, RetinueError) or type(error).__module__ == "builtins":
        return  # a plain ValueError says that the value is wrong, whatever showed it
    for name in ("reason", "os_error", "__cause__"):  # of urllib, of aiohttp, of all
        cause = getattr(error, name, None)
        if isinstance(cause, BaseException):
            yield cause


def http_status(error: BaseException) -> int | None:
    """The HTTP status an exception of aiohttp, httpx, requests or urllib carries, or None."""
    response = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("status", "status_code", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value <= 599:
                return value
    return None
