"""Threads for sync tools.

The threads are daemons: a tool that hangs and was given up never keeps the interpreter from
ending. They start when there is work for them, and end when there has been none for a while.
"""

import asyncio
import contextvars
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

IDLE: Final = 10.0
"""Seconds that a thread waits for more work before it ends."""

_number = itertools.count(1)


class Threads:
    """A pool of daemon threads.

    Args:
        size: the most threads that run at once, those with abandoned calls included; None for as
            many as there are calls.
    """

    __slots__ = ("_count", "_idle", "_pid", "_waiting", "_wake", "closed", "size")

    def __init__(self, size: int | None = None) -> None:
        self.size = size
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._wake = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._idle = 0
        self._count = 0
        self.closed = False

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work`, which must not raise, as soon as a thread is free."""
        if self._pid != os.getpid():  # after a fork there are no threads, whatever the count says
            self._reset()
        with self._wake:
            self.closed = False
            self._waiting.append(work)
            if len(self._waiting) <= self._idle:
                self._wake.notify()
                return
            if self.size is not None and self._count >= self.size:
                return
            self._count += 1
        thread = threading.Thread(
            target=self._serve, name=f"retinue-tool-{next(_number)}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            with self._wake:
                self._count -= 1
                if work in self._waiting:
                    self._waiting.remove(work)
            raise

    def _serve(self) -> None:
        while True:
            with self._wake:
                self._idle += 1
                if not self._waiting and not self.closed:
                    self._wake.wait(IDLE)
                self._idle -= 1
                if not self._waiting:
                    self._count -= 1
                    return
                work = self._waiting.popleft()
            work()
            del work  # or the last call's values would live as long as the thread waits

    def close(self) -> None:
        """Idle threads end now, busy ones after their work. More work starts new ones."""
        with self._wake:
            self.closed = True
            self._wake.notify_all()


class Job:
    """One call of a function in a thread, as the event loop sees it.

    Attributes:
        begun: settles when a thread is free and the function begins.
        outcome: settles when the thread has done with the job, also if it was abandoned.
    """

    __slots__ = ("_abandoned", "_context", "_function", "_loop", "begun", "outcome")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._function = function
        self._abandoned = False
        self.begun: asyncio.Future[None] = self._loop.create_future()
        self.outcome: asyncio.Future[tuple[Any, BaseException | None]] = self._loop.create_future()

    def run(self) -> None:
        """Called in the thread."""
        outcome: tuple[Any, BaseException | None] = (None, None)
        if not self._abandoned:
            self._tell(self.begun, None)
        if not self._abandoned:  # telling may have found that the loop is closed
            try:
                outcome = (self._context.run(self._function), None)
            except BaseException as error:  # whatever it is, it belongs to the one who awaits
                outcome = (None, error)
        self._tell(self.outcome, outcome)

    def abandon(self, held: ExitStack | None) -> None:
        """Nobody waits any more: it does not begin if it has not begun. `held` is let go when the
        thread has done with it."""
        self._abandoned = True
        if held is not None and not self.outcome.done():
            kept = held.pop_all()
            self.outcome.add_done_callback(lambda _: kept.close())

    def _tell(self, future: asyncio.Future[Any], value: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(_settle, future, value)
        except RuntimeError:  # the loop is closed; the call was abandoned with it
            self._abandoned = True


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


async def in_thread(
    threads: Threads,
    function: Callable[[], Any],
    seconds: float | None,
    held: ExitStack | None = None,
) -> Any:
    """What a sync function returns or raises.

    Args:
        threads: where it runs.
        function: what runs. Once it has begun it runs to its end, unheard if it was given up.
        seconds: its time; None for no limit.
        held: what the call holds; a function that was given up keeps it until it ends.

    Raises:
        Expired: `seconds` after it began it had not ended.
    """
    job = Job(function)
    threads.submit(job.run)
    try:
        if seconds is not None:
            await job.begun
        # `wait` leaves the outcome alone when it is cancelled, so that the end can still be told.
        done, _ = await asyncio.wait((job.outcome,), timeout=seconds)
        if not done:
            raise Expired
        value, error = job.outcome.result()
    except BaseException:
        job.abandon(held)
        raise
    if error is not None:
        raise error
    return value


class Expired(Exception):
    """The time of a job is up. It stands apart from a TimeoutError of the function itself."""
