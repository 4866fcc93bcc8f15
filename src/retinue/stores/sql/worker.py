"""The thread in which a store talks to its database.

One thread and one connection: calls wait for each other here, not inside the database, and any
event loop may call. Nothing here knows SQL.
"""

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from retinue.errors import RetinueError, StoreError

if TYPE_CHECKING:
    from sqlalchemy import Engine

T = TypeVar("T")


class Worker:
    """Runs operations one after another. The engine is opened by the first that needs it.

    Args:
        connect: opens the engine; called in the thread. The engine must hold no reference to the
            worker, or a store that nobody closes is never let go of.
        explain: the StoreError for what went wrong, or None for errors that are not the database's.
        volatile: the database is its connection (`:memory:`), so only `close` may drop it.
    """

    def __init__(
        self,
        connect: Callable[[], "Engine"],
        explain: Callable[[Exception], StoreError | None],
        *,
        volatile: bool = False,
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._volatile = volatile
        self._engine: Engine | None = None
        self._closing: Callable[[], object] | None = None  # called at exit at the latest
        self._pool: ThreadPoolExecutor | None = None
        self._door = threading.Lock()  # guards the pool; held for an instant
        self._gate = threading.Lock()  # guards the engine; held for the length of an operation
        _workers.add(self)

    async def run(self, operation: Callable[["Engine"], T]) -> T:
        """What the operation returns. Once begun it is finished, even if the caller is cancelled.

        Raises:
            StoreError: the database failed. It is opened anew next time, as it may be mended then.
        """
        loop = asyncio.get_running_loop()
        with self._door:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="retinue-store")
            future = loop.run_in_executor(self._pool, self._call, operation)
        return await future

    async def close(self) -> None:
        """Finishes what was asked for, and lets go of the connection and the thread."""
        with self._door:
            pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(pool, self._dispose)
        finally:
            pool.shutdown(wait=False)

    def _call(self, operation: Callable[["Engine"], T]) -> T:
        with self._gate:
            try:
                return operation(self._engine or self._open())
            except RetinueError:
                raise
            except Exception as error:
                explained = self._explain(error)
                if not self._volatile:
                    self._drop()
                if explained is None:
                    raise
                raise explained from error

    def _dispose(self) -> None:
        with self._gate:
            self._drop()

    def _open(self) -> "Engine":
        engine = self._engine = self._connect()
        self._closing = weakref.finalize(self, engine.dispose)
        return engine

    def _drop(self) -> None:
        closing, self._closing, self._engine = self._closing, None, None
        if closing is not None:
            closing()

    def before_fork(self) -> None:
        """Waits for the operation in hand, and closes: no connection may be carried over a fork."""
        self._door.acquire()
        self._gate.acquire()
        if not self._volatile:
            with contextlib.suppress(Exception):  # a fork must not fail for it
                self._drop()

    def after_fork(self) -> None:
        """Goes on, in the parent."""
        self._gate.release()
        self._door.release()

    def after_fork_in_child(self) -> None:
        """Goes on in the child, where the thread is gone."""
        self._pool = None
        self._gate.release()
        self._door.release()


_workers: "weakref.WeakSet[Worker]" = weakref.WeakSet()
_forking: list[Worker] = []


def _before() -> None:
    _forking.extend(_workers)
    for worker in _forking:
        worker.before_fork()


def _after() -> None:
    while _forking:
        _forking.pop().after_fork()


def _after_in_child() -> None:
    while _forking:
        _forking.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
