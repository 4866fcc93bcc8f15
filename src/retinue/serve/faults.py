"""What a client is told when something goes wrong: a code from a fixed set, and one sentence.

Errors of the library that speak of what the client asked for are told as they are. Errors of the
program behind the server (its tools, its store, its set-up) are told by their code alone, since
their words may name hosts, files or keys; they stand in the log of the server.
"""

import logging
from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct

from retinue.errors import (
    ConfigError,
    ConversationBusy,
    ConversationNotFound,
    MissingExtraError,
    MissingKeyError,
    ModelError,
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


_TOLD: Final[tuple[tuple[type[Exception], Code], ...]] = (
    (ConversationNotFound, "not_found"),
    (TurnNotFound, "not_found"),
    (PauseNotFound, "conflict"),
    (ConversationBusy, "conflict"),
    (SnapshotError, "conflict"),
    (ConfigError, "invalid"),
    (OutputError, "model_failed"),
    (ModelError, "model_failed"),
)
"""Errors whose words are for the client, the first that fits."""

_HIDDEN: Final[tuple[tuple[type[Exception], Code, str], ...]] = (
    (MissingExtraError, "internal", "The server lacks a package that this needs."),
    (MissingKeyError, "internal", "The server lacks a key that this needs."),
    (StoreError, "unavailable", "The store of the conversations failed; try again later."),
    (Exception, "internal", "The server failed; its log says why."),
)
"""Errors whose words stay in the log, the first that fits."""


def fault_of(error: BaseException) -> Fault:
    """What a client is told of an error."""
    if isinstance(error, Refused):
        return Fault(error.code, str(error), error.retry_after)
    if isinstance(error, msgspec.DecodeError | RecursionError):
        return Fault("invalid", f"The body cannot be read: {mask(str(error))}.")
    hidden = isinstance(error, MissingExtraError | MissingKeyError)
    for kind, code in () if hidden else _TOLD:
        if isinstance(error, kind):
            return Fault(code, mask(str(error)), getattr(error, "retry_after", None))
    for kind, code, words in _HIDDEN:
        if isinstance(error, kind):
            return Fault(code, words)
    return Fault("internal", "The server failed; its log says why.")


def record(error: BaseException, doing: str) -> None:
    """Writes what a client is not told to the log, keys masked.

    Args:
        error: what happened.
        doing: what was being done, such as "turn 1f".
    """
    if fault_of(error).code in ("internal", "unavailable") and not isinstance(error, Refused):
        said = mask(f"{type(error).__name__}: {error}")
        log.error("%s failed: %s", doing, said, exc_info=_frames(error))


def _frames(error: BaseException) -> BaseException | None:
    """The error for its traceback, unless its words hold what looks like a key."""
    return error if mask(str(error)) == str(error) else None
