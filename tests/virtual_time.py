"""An event loop whose clock jumps: what would wait for an hour is over at once, in the same order.

It is for code that waits by timers alone. Threads and sockets live in real time; while something
waits for one of them and for a timer too, the timer wins.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Moves its clock on instead of waiting for the next timer."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Impatient(self._skip))

    def time(self) -> float:
        """Seconds since the loop was made, by its own clock."""
        return self._now

    def _skip(self, seconds: float) -> None:
        self._now += seconds


class _Impatient(selectors.DefaultSelector):
    def __init__(self, skip: Callable[[float], None]) -> None:
        super().__init__()
        self._skip = skip

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now; if nothing is and a timer is set, it is that timer's time."""
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._skip(max(timeout, 0))
        return ready


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Runs an async test on a loop of virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
