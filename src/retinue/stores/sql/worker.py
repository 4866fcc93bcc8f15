"""The threads in which a store talks to its database.

As many threads as connections: calls wait for each other here, not for a connection, and any event
loop may call. Nothing here knows SQL.
"""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from retinue.errors import RetinueError, StoreError
from retinue.stores import forks

if TYPE_CHECKING:
    from sqlalchemy import Engine

T = TypeVar("T")


class _Gate:
    """Lets so many through at a time, or one who has all others wait outside."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._free = threading.Semaphore(places)
        self._closer = threading.Lock()  # two who each have some of the places would never end

    def __enter__(self) -> None:
        self._free.acquire()

    def __exit__(self, *_: object) -> None:
        self._free.release()

    def close(self) -> None:
        """Waits until all have left, and lets nobody through until `open`."""
        with self._closer:
            for _ in range(self._places):
                self._free.acquire()

    def open(self) -> None:
        """Lets them through again."""
        self._free.release(self._places)


class Worker:
    """Runs operations in order, `threads` at a time. The first that needs it opens the engine.

    Args:
        connect: opens the engine; called in the thread. The engine must hold no reference to the
            worker, or a store that nobody closes is never let go of.
        explain: the StoreError for what went wrong, or None for errors that are not the database's.
        spoils: whether an error leaves the engine useless, so that the next call opens another.
        volatile: the database is its connection (`:memory:`), so only `close` may drop it.
        threads: how many operations run at a time, each in a thread of its own.
    """

    def __init__(
        self,
        connect: Callable[[], "Engine"],
        explain: Callable[[Exception], StoreError | None],
        spoils: Callable[[Exception], bool],
        *,
        volatile: bool = False,
        threads: int = 1,
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._spoils = spoils
        self._volatile = volatile
        self._threads = threads
        self._engine: Engine | None = None
        self._closing: Callable[[], object] | None = None  # called at exit at the latest
        self._pool: ThreadPoolExecutor | None = None
        self._door = threading.Lock()  # guards the pool; held for an instant
        self._gate = _Gate(threads)  # passed through by operations; closed to drop the engine
        self._opening = threading.Lock()
        forks.attend(self)

    async def run(self, operation: Callable[["Engine"], T]) -> T:
        """What the operation returns. Once begun it is finished, even if the caller is cancelled.

        Raises:
            StoreError: the database failed.
        """
        loop = asyncio.get_running_loop()
        with self._door:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, "retinue-store")
            future = loop.run_in_executor(self._pool, self._call, operation)
        return await future

    async def close(self) -> None:
        """Finishes what was asked for, and lets go of connections and threads."""
        with self._door:
            pool, self._pool = self._pool, None
        if pool is None:
            return
        await asyncio.to_thread(self._finish, pool)

    def _call(self, operation: Callable[["Engine"], T]) -> T:
        used: Engine | None = None
        try:
            with self._gate:
                used = self._opened()
                return operation(used)
        except RetinueError:
            raise
        except Exception as error:
            if used is not None and self._spoils(error):
                self._dispose(used)
            explained = self._explain(error)
            if explained is None:
                raise
            raise explained from error

    def _finish(self, pool: ThreadPoolExecutor) -> None:
        pool.shutdown()
        self._dispose()

    def _opened(self) -> "Engine":
        with self._opening:
            if self._engine is None:
                self._engine = self._connect()
                self._closing = weakref.finalize(self, self._engine.dispose)
            return self._engine

    def _dispose(self, useless: "Engine | None" = None) -> None:
        """Closes the engine, or only if it still is the useless one, when nobody uses it."""
        self._gate.close()
        try:
            if useless is None or useless is self._engine:
                self._drop()
        finally:
            self._gate.open()

    def _drop(self) -> None:
        closing, self._closing, self._engine = self._closing, None, None
        if closing is not None:
            closing()

    def before_fork(self) -> None:
        """Waits for what is in hand, and closes: no connection may be carried over a fork."""
        self._door.acquire()
        self._gate.close()
        if not self._volatile:
            with contextlib.suppress(Exception):  # a fork must not fail for it
                self._drop()

    def after_fork(self) -> None:
        """Goes on, in the parent."""
        self._gate.open()
        self._door.release()

    def after_fork_in_child(self) -> None:
        """Goes on in the child, where the threads are gone."""
        self._pool = None
        self._gate = _Gate(self._threads)  # a thread that is gone may have had hold of its inside
        self._opening = threading.Lock()
        self._door.release()
