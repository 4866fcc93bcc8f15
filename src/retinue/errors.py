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
    ├─ OutputError            the answer does not fit the output type that was asked for
    ├─ StoreError             the conversation store is at fault
    │  ├─ ConversationBusy    another turn is writing this conversation
    │  └─ ConversationNotFound  no such conversation, or it belongs to somebody else
    └─ InternalError          retinue is wrong; please report it

Every message is one sentence or two: what happened, what was tried, what to do. A secret never
stands in one. An error raised by your own code (a tool, a layer) reaches you as it is, unwrapped.
"""

import errno
from typing import Final, Literal

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
        retryable: whether the same call may work later.
    """

    failure: Failure = "semantic"
    retryable: bool = False

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ModelUnreachable(ModelError):
    """No connection, or it broke before an answer began."""

    failure = "transient"
    retryable = True


class ModelTimeout(ModelError):
    """No answer within the time allowed."""

    failure = "transient"
    retryable = True


class ModelRefused(ModelError):
    """The provider refused the request; sending it again changes nothing."""


class ModelOverloaded(ModelError):
    """The provider cannot answer now."""

    failure = "transient"
    retryable = True


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


class OutputError(RetinueError):
    """The final answer does not fit the output type."""


class StoreError(RetinueError):
    """The conversation store cannot do what was asked of it."""


class ConversationBusy(StoreError):
    """Another turn holds the conversation."""


class ConversationNotFound(StoreError):
    """There is no such conversation for this owner."""


class InternalError(RetinueError):
    """A state that retinue rules out was reached."""


_ENVIRONMENT_ERRNO: Final = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
_TRANSIENT_STATUS: Final = {408, 429}
_ENVIRONMENT_STATUS: Final = {401, 402, 403}


def classify(error: BaseException) -> Failure:
    """The class of a failure (R-FAIL-1).

    What the exception says of itself (an attribute `failure`) comes first, then the exceptions
    that are known, then `semantic`. HTTP clients are recognised by the status their errors carry.
    """
    own = getattr(error, "failure", None)
    if own in ("semantic", "transient", "environment", "fatal"):
        return own
    if isinstance(error, (MemoryError, KeyboardInterrupt, SystemExit)):
        return "fatal"
    if isinstance(error, (TimeoutError, ConnectionError)):
        return "transient"
    if isinstance(error, OSError) and error.errno in _ENVIRONMENT_ERRNO:
        return "environment"
    status = http_status(error)
    if status is not None:
        if status in _TRANSIENT_STATUS or status >= 500:
            return "transient"
        if status in _ENVIRONMENT_STATUS:
            return "environment"
    return "semantic"


def http_status(error: BaseException) -> int | None:
    """The HTTP status an exception of aiohttp, httpx, requests or urllib carries, or None."""
    response = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("status", "status_code", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value <= 599:
                return value
    return None
