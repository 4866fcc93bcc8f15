"""How a turn is stopped: from outside, by a limit, or with the task that it runs in.

Whoever stops a turn cancels its task, so `CancelledError` is what layers, tools and models see.
What is behind it is known here: a halt (the turn ends as `limit` or `cancelled`), or a cancel from
outside (the error goes on to the caller).
"""

import asyncio
from typing import Any

from msgspec import Struct

from retinue.chains.events import Status
from retinue.tools import CancelToken


class Halt(Struct, frozen=True):
    """Why a turn is being stopped from outside its own course; `error` is what failed it."""

    status: Status
    reason: str
    error: Exception | None = None


class Stopping:
    """The stopping of one turn.

    Attributes:
        halted: the halt that counts, or None.
        over: whether the turn has ended; what a layer has left running then stops too.
        cancel: what running tools look at.
    """

    __slots__ = ("_before", "_own", "_task", "cancel", "halted", "over")

    def __init__(self) -> None:
        self.halted: Halt | None = None
        self.over = False
        self.cancel = CancelToken()
        self._task: asyncio.Task[Any] | None = None
        self._own = 0  # cancels of the task that are halts of this turn
        self._before = 0  # cancels of the task that were there before the turn

    def runs_here(self) -> None:
        """The turn runs in the present task."""
        self._task = asyncio.current_task()
        self._before = 0 if self._task is None else self._task.cancelling()

    def halt(self, status: Status, reason: str, error: Exception | None = None) -> None:
        """Stops the turn from outside: what it awaits is cancelled.

        The first halt counts, but a turn that has run into a limit, and goes on in the layers
        outside the loop, can still be cancelled.
        """
        settled = self.halted is not None and (self._own > 0 or self.halted.status != "limit")
        if settled or self.over:
            return
        self.halted = Halt(status, reason, error)
        self.cancel.cancel()
        if self._task is not None:
            self._own += 1
            self._task.cancel()

    def fail(self, error: Exception) -> bool:
        """Stops the turn, which then raises this error; False if it has ended before."""
        if self.over:
            return False
        self.halt("failed", str(error) or type(error).__name__, error)
        return True

    def interrupt(self, status: Status, reason: str) -> None:
        """Stops the turn from within its own task.

        Raises:
            CancelledError: always; the loop knows it by `halted`.
        """
        if self.halted is None:
            self.halted = Halt(status, reason)
        self.cancel.cancel()
        raise asyncio.CancelledError(reason)

    async def check(self) -> None:
        """Raises CancelledError once more, where a layer or a tool has swallowed it, and in what
        a layer has left running when the turn ended."""
        if self.over:
            raise asyncio.CancelledError
        if self.halted is not None or self._cancelled_from_outside():
            await asyncio.sleep(0)  # raises what is still on its way, or it would come later
            raise asyncio.CancelledError

    def check_left_behind(self) -> None:
        """Raises CancelledError in a task that a layer has left running when the turn ended."""
        if self.over and asyncio.current_task() is not self._task:
            raise asyncio.CancelledError

    def absorb(self) -> Halt | None:
        """On a CancelledError: the halt behind it, or None if it came from outside."""
        task = self._task
        if self.halted is None or task is None:
            return None
        while self._own:
            self._own -= 1
            task.uncancel()
        return None if self._cancelled_from_outside() else self.halted

    def _cancelled_from_outside(self) -> bool:
        return self._task is not None and self._task.cancelling() > self._before
