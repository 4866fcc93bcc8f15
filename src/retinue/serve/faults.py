"""What a client is told when something goes wrong: a code from a fixed set, and one sentence.

Errors of the library that speak of what the client asked for are told as they are. Errors of the
program behind the server (its tools, its store, its set-up, its way to the model) are told by their
kind alone, since their words may name hosts, files or keys; they stand in the log of the server.
"""

import logging
import traceback
from collections.abc import Iterator
from typing import Final, Literal, get_args

from msgspec import Struct

from retinue.errors import (
    ConfigError,
    ConversationBusy,
    ConversationNotFound,
    MissingExtraError,
    MissingKeyError,
    ModelError,
    ModelTimeout,
    ModelUnreachable,
    OutputError,
    PauseNotFound,
    RetinueError,
    SnapshotError,
    StoreError,
    TurnNotFound,
)
from retinue.messages.masking import mask

log: Final = logging.getLogger("retinue.serve")

Code = Literal[
    "invalid",  # the request says what cannot be
    "unauthenticated",  # no key or token, or a wrong one
    "forbidden",  # the key or token does not allow it
    "not_found",  # no such thing for this owner
    "conflict",  # it is there, but not in the state that this needs
    "too_large",  # the body is over the limit
    "too_many",  # over a rate, or over the turns at once
    "too_slow",  # the body did not come in time
    "unavailable",  # no worker is free, or the server is shutting down
    "model_failed",  # the model, or the way to it
    "internal",  # the program behind the server
]
CODES: Final[tuple[Code, ...]] = get_args(Code)


class Fault(Struct, frozen=True, omit_defaults=True):
    """A failure as clients see it.

    Attributes:
        code: what kind it is.
        message: what happened and what to do, in a sentence.
        retry_after: seconds after which it may work, or None.
    """

    code: Code
    message: str
    retry_after: float | None = None


class Refused(RetinueError):
    """A request that is not taken.

    Args:
        code: what kind of refusal.
        message: why, and what to do.
        retry_after: seconds after which it may work, or None.
    """

    def __init__(self, code: Code, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code: Code = code
        self.retry_after = retry_after


_KINDS: Final[tuple[tuple[type[Exception], Code, str | None], ...]] = (
    (MissingExtraError, "internal", "The server lacks a package that this needs."),
    (MissingKeyError, "internal", "The server lacks a key that this needs."),
    (ConfigError, "invalid", None),
    (ConversationNotFound, "not_found", None),
    (TurnNotFound, "not_found", None),
    (PauseNotFound, "conflict", None),
    (ConversationBusy, "conflict", None),
    (SnapshotError, "conflict", None),
    (StoreError, "unavailable", "The store of the conversations failed; try again later."),
    (ModelUnreachable, "model_failed", "The model cannot be reached; try again later."),
    (ModelTimeout, "model_failed", "The model did not answer in time; try again later."),
    (ModelError, "model_failed", None),
    (OutputError, "model_failed", None),
)
"""What a client is told of an error, by the first that fits. None: the words of the error."""


def fault_of(error: BaseException) -> Fault:
    """What a client is told of an error."""
    if isinstance(error, Refused):
        return Fault(error.code, str(error), error.retry_after)
    code, words = _judged(error)
    if words is None:
        return Fault(code, mask(str(error)), getattr(error, "retry_after", None))
    return Fault(code, words)


def record(error: BaseException, doing: str) -> None:
    """Writes what a client is not told to the log, keys masked.

    Args:
        error: what happened.
        doing: what was being done, such as "turn 1f".
    """
    if not isinstance(error, Refused) and _judged(error)[1] is not None:
        said = mask(f"{type(error).__name__}: {error}")
        log.error("%s failed: %s", doing, said, exc_info=_frames(error))


def _judged(error: BaseException) -> tuple[Code, str | None]:
    if isinstance(error, ModelError) and error.failure == "environment":
        return "internal", "The provider of the model does not let the server in."
    for kind, code, words in _KINDS:
        if isinstance(error, kind):
            return code, words
    return "internal", "The server failed; its log says why."


def _frames(error: BaseException) -> BaseException | None:
    """The error for its traceback, unless its words or its causes' hold what looks like a key."""
    words = "\n".join(_words(traceback.TracebackException.from_exception(error)))
    return error if mask(words) == words else None


def _words(told: traceback.TracebackException) -> Iterator[str]:
    yield from told.format_exception_only()
    for inner in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if inner is not None:
            yield from _words(inner)
