"""Locks on names between all processes that use a database, which it frees when one dies.

They are advisory locks of one connection, apart from those that do the work, so that waiting for
one keeps no work waiting. The server frees them with the connection. Within one such connection
they exclude nobody: `turnstile` does that.
"""

import asyncio
import contextlib
import hashlib
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from retinue.errors import StoreError
from retinue.stores import forks

if TYPE_CHECKING:
    from retinue.stores.sql.postgresql.session import Session

# A session that holds locks says nothing for the length of a turn. Servers before 14 have no such
# setting, and then there is nothing to do.
_UNHURRIED: Final = (
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"
)

# Not simply the first schema of the search path: the tables may be found further down in it, and
# all who find the same tables must ask for the same locks.
_WHERE: Final = (
    "SELECT coalesce((SELECT nspname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace"
    " WHERE pg_class.oid = to_regclass('retinue_conversations')), current_schema())"
)

P = ParamSpec("P")
T = TypeVar("T")


class SessionLocks:
    """Takes and frees locks in a thread of its own, in the order that it is asked.

    Args:
        connect: a new connection in autocommit mode; called in the thread.
        explain: the StoreError for what went wrong.
        lost: the StoreError for the lock of this name, which went with its connection.
        schema: what the names belong to, as another schema has locks of its own; None for that in
            which a connection finds the tables, or would make them.
    """

    def __init__(
        self,
        connect: Callable[[], "Session"],
        explain: Callable[[Exception], StoreError | None],
        lost: Callable[[str], StoreError],
        schema: str | None,
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._lost = lost
        self._schema = schema
        self._session: Session | None = None
        self._ending: weakref.finalize[..., Any] | None = None  # called at exit at the latest
        self._held: dict[str, int] = {}
        self._closing = False
        self._thread: ThreadPoolExecutor | None = None
        self._door = threading.Lock()  # guards the thread; held for an instant
        self._gate = threading.Lock()  # guards the rest; held for the length of an operation
        forks.attend(self)

    async def take(self, name: str) -> bool:
        """Takes the lock, or returns False where another connection holds it.

        Raises:
            StoreError: the server cannot be asked.
        """
        try:
            return await self._run(self._take, name)
        except BaseException:
            self.release(name)  # the thread may be taking it nevertheless
            raise

    async def free(self, name: str) -> None:
        """Frees the lock.

        Raises:
            StoreError: it was lost before, with the connection.
        """
        try:
            await self._run(self._free, name)
        except BaseException:
            self.release(name)
            raise

    def release(self, name: str) -> None:
        """Frees the lock if it is held, soon, and before the lock can be taken again here."""
        with contextlib.suppress(RuntimeError):  # the interpreter ends, and the connection with it
            self._submit(self._give_back, name)

    async def close(self) -> None:
        """Lets go of the connection, or has the last lock take it with it."""
        if self._thread is not None:
            await self._run(self._close)

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._submit(work, *args, **kwargs))

    def _submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        with self._door:
            if self._thread is None:
                # One thread for good: a lock must not be freed after it was taken again.
                self._thread = ThreadPoolExecutor(1, "retinue-locks")
            return self._thread.submit(self._call, work, *args, **kwargs)

    def _call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._gate:
            try:
                return work(*args, **kwargs)
            except StoreError:
                raise
            except Exception as error:
                explained = self._explain(error)
                if explained is None:
                    raise
                raise explained from error

    def _take(self, name: str) -> bool:
        import psycopg

        self._closing = False
        if self._session is not None:
            try:
                return self._try(self._session, name)
            except psycopg.Error:
                if not self._session.closed:
                    raise
                self._end()  # it broke since its last use; who held a lock is told when freeing it
        return self._try(self._begin(), name)

    def _try(self, session: "Session", name: str) -> bool:
        key = self._key(name)
        row = session.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
        taken = row is not None and row[0] is True
        if taken:
            self._held[name] = key
        return taken

    def _free(self, name: str) -> None:
        if not self._give_back(name):
            raise self._lost(name)

    def _give_back(self, name: str) -> bool:
        import psycopg

        key = self._held.pop(name, None)
        freed = False
        if key is not None and self._session is not None:
            try:
                row = self._session.execute("SELECT pg_advisory_unlock(%s)", (key,)).fetchone()
                freed = row is not None and row[0] is True  # a pooler may have changed the session
            except psycopg.Error:
                self._end()  # what cannot be freed alone is freed with the connection
        if self._closing and not self._held:
            self._end()
        return freed

    def _close(self) -> None:
        self._closing = True
        if not self._held:
            self._end()

    def _begin(self) -> "Session":
        session = self._connect()
        try:
            session.execute(_UNHURRIED)
            if self._schema is None:
                row = session.execute(_WHERE).fetchone()
                self._schema = str(row and row[0])
        except BaseException:
            session.close()
            raise
        self._session = session
        self._ending = weakref.finalize(self, session.close)
        return session

    def _end(self) -> None:
        ending, self._ending, self._session = self._ending, None, None
        self._held.clear()
        if ending is not None:
            ending()

    def _key(self, name: str) -> int:
        text = f"retinue\x00{self._schema}\x00{name}"
        digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)

    def before_fork(self) -> None:
        """Waits for the operation in hand."""
        self._door.acquire()
        self._gate.acquire()

    def after_fork(self) -> None:
        """Goes on, in the parent, which still holds its locks."""
        self._gate.release()
        self._door.release()

    def after_fork_in_child(self) -> None:
        """Goes on in the child, which has no locks, and must not end its parent's connection."""
        if self._session is not None:
            with contextlib.suppress(Exception):
                _cut_off(self._session.fileno())
            self._end()
        self._thread = None
        self._gate.release()
        self._door.release()


def _cut_off(descriptor: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)
