"""What a command does in the foreground: it runs something or waits for somebody. Ctrl-C ends it.

Python's own handler raises wherever it strikes: inside the event loop, or in a finaliser, where the
exception is printed and dropped, and the press is lost. Here a press is only noted, and the loop
told; it raises where a command waits, and nowhere else.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Self, TypeVar

from retinue.agent import Turn
from retinue.cli.exits import INTERRUPTED

T = TypeVar("T")

Wait = Callable[[Callable[[], str]], str]
"""`Foreground.wait`, as those who read lines know it."""

_SHOW_CURSOR: Final = b"\x1b[?25h\r\n"  # it is hidden while a turn is drawn


class Foreground:
    """The event loop of a command, and its Ctrl-C. Leave its `with` to close the loop.

    The first press cancels the turn that runs, or what else runs; between two runs it ends the next
    turn or the next waiting. A second one, before the first has come to anything, ends the process.
    Where Ctrl-C is ignored, as for what a script runs in the background, it stays so.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._before: Any = None
        self._pressed = self._waits = False
        self._stop: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        ours = threading.current_thread() is threading.main_thread()  # signals are for no other
        if ours and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._runner.close()
        finally:
            if self._before is not None:
                signal.signal(signal.SIGINT, self._before)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something to its end.

        Raises:
            KeyboardInterrupt: a press has cancelled it.
            Exception: what it raised.
        """
        try:
            return self._runner.run(self._stoppable(work))
        except asyncio.CancelledError:
            if not self._pressed:
                raise
            self._pressed = False
            raise KeyboardInterrupt from None

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        self._stop = None if task is None else task.cancel
        try:
            return await work
        finally:
            self._stop = None

    @contextmanager
    def stopping(self, turn: Turn) -> Generator[None]:
        """Inside, which is in something that runs, a press cancels the turn alone, in order."""
        before, self._stop = self._stop, turn.cancel
        if self._pressed:
            turn.cancel()
        try:
            yield
        finally:
            self._stop = before
            if turn.outcome is not None and turn.outcome.status == "cancelled":
                self._pressed = False  # a press that came too late is for what follows

    def wait(self, read: Callable[[], T]) -> T:
        """Waits for somebody: calls what reads from a terminal or a pipe.

        Raises:
            KeyboardInterrupt: a press, now or since the last thing ran.
            EOFError: nobody is there any more.
        """
        try:
            self._waits = True
            if self._pressed:
                raise KeyboardInterrupt
            return read()
        finally:
            self._waits = self._pressed = False

    def _press(self, number: int, frame: FrameType | None) -> None:
        if self._waits:
            raise KeyboardInterrupt
        if self._pressed:
            _leave()
        self._pressed = True
        if self._stop is not None:
            self._runner.get_loop().call_soon_threadsafe(self._stop)


def _leave() -> None:
    # An exception would strike the event loop, and the tasks that would not stop before would be
    # waited for again. The store is safe: it keeps each round in one transaction.
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
    os._exit(INTERRUPTED)
