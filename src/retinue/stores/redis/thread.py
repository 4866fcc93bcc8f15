"""An event loop in a thread of its own, for connections that must outlive those who ask.

A connection of redis-py belongs to one event loop, and a hold must be renewed also while its
holder's loop is busy. So they live here, and any loop and thread may ask. Nothing here knows Redis.
"""

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Final, Generic, Protocol, TypeVar

from retinue.stores import forks

T = TypeVar("T")
_PATIENCE: Final = 10.0  # seconds that a process waits at its end for what is in hand


class Lodger(Protocol):
    """What lives in the thread's event loop."""

    async def close(self) -> None:
        """Lets go of all that it has opened."""
        ...


L = TypeVar("L", bound=Lodger)


class _Life(Generic[L]):
    """The thread, from its start until its lodger has let go of everything."""

    def __init__(self, make: Callable[[], L]) -> None:
        self._make = make
        self._lodger: L | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="retinue-store-loop", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[L], Awaitable[T]]) -> "Future[T]":
        """Has the work done there. Works begin in the order in which they were submitted."""
        return asyncio.run_coroutine_threadsafe(self._call(work), self._loop)

    def end(self) -> None:
        """Ends it, once what was submitted is done."""
        with contextlib.suppress(RuntimeError):  # it has ended before
            self._loop.call_soon_threadsafe(self._over.set)

    def join(self, timeout: float | None = None) -> None:
        """Waits for its end."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._main())
        finally:
            self._loop.close()

    async def _main(self) -> None:
        await self._over.wait()
        while self._calls:
            await asyncio.wait(self._calls)
        if self._lodger is not None:
            await self._lodger.close()

    async def _call(self, work: Callable[[L], Awaitable[T]]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            if self._lodger is None:
                self._lodger = self._make()
            return await work(self._lodger)
        finally:
            self._calls.discard(task)


class LoopThread(Generic[L]):
    """Begins with the first work, and anew after `close`.

    Args:
        make: the lodger; called in the thread. It must hold no reference to this object or its
            owner, or what nobody closes is never let go of.
        duties: what the lodger keeps up between the calls. While there are any, the thread goes on
            after `close` and after a fork; in a forked child they are the parent's, and cleared.
    """

    def __init__(self, make: Callable[[], L], duties: dict[str, str]) -> None:
        self._make = make
        self._duties = duties
        self._life: _Life[L] | None = None
        self._ending: weakref.finalize[..., Any] | None = None
        # Reentrant: what is thrown away may submit its last work from the garbage collector.
        self._door = threading.RLock()
        forks.attend(self)

    async def run(self, work: Callable[[L], Awaitable[T]]) -> T:
        """What the work returns. Once begun it is finished, even if the caller is cancelled."""
        heard = asyncio.wrap_future(self.submit(work))
        heard.add_done_callback(_retrieve)
        await asyncio.wait([heard])
        return heard.result()

    def submit(self, work: Callable[[L], Awaitable[T]]) -> "Future[T]":
        """Has the work begun, after what was submitted before, without waiting for it."""
        with self._door:
            return (self._life or self._begin()).submit(work)

    async def close(self) -> None:
        """Finishes what was submitted, and lets go of the lodger and the thread."""
        with self._door:
            life = self._end()
            self._resume()
        if life is not None:
            await asyncio.to_thread(life.join)

    def _begin(self) -> _Life[L]:
        life = self._life = _Life(self._make)
        _lives.add(life)
        self._ending = weakref.finalize(self, life.end)
        self._ending.atexit = False  # that is `_end_all`, which also waits
        return life

    def _end(self) -> _Life[L] | None:
        life, self._life = self._life, None
        if self._ending is not None:
            self._ending.detach()
        if life is not None:
            life.end()
        return life

    def _resume(self) -> None:
        if self._duties:
            self._begin().submit(_nothing)  # which makes the lodger, and that takes up its duties

    def before_fork(self) -> None:
        """Waits for what is in hand, and ends: no connection may be carried over a fork."""
        self._door.acquire()
        life = self._end()
        if life is not None:
            life.join()

    def after_fork(self) -> None:
        """Goes on, in the parent."""
        self._resume()
        self._door.release()

    def after_fork_in_child(self) -> None:
        """Goes on in the child, which has none of its parent's duties."""
        self._duties.clear()
        self._door.release()


async def _nothing(_: object) -> None:
    pass


def _retrieve(heard: "asyncio.Future[Any]") -> None:
    """An error that nobody waits for any more is no complaint of asyncio's."""
    if not heard.cancelled():
        heard.exception()


_lives: "weakref.WeakSet[_Life[Any]]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    lives = list(_lives)
    for life in lives:
        life.end()
    for life in lives:
        life.join(_PATIENCE)
