"""SQLite: how its file is opened, what its errors mean, and how writers are kept apart."""

import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from retinue.errors import ConfigError, StoreError
from retinue.stores import rules
from retinue.stores.alone import alone
from retinue.stores.filelock import FileLock
from retinue.stores.polling import until_taken
from retinue.stores.sql.store import SQLStore

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

MEMORY: Final = ":memory:"

_SENTENCES: Final = {
    sqlite3.SQLITE_BUSY: "{place} is locked by another process, and was so for {timeout:g} seconds;"
    " end that process, or give SQLite a longer busy_timeout.",
    sqlite3.SQLITE_LOCKED: "{place} is locked by another connection of this process; end its"
    " transaction first.",
    sqlite3.SQLITE_READONLY: "{place} cannot be written; make the file and its folder writable for"
    " this user.",
    sqlite3.SQLITE_PERM: "{place} may not be opened; give this user access to the file.",
    sqlite3.SQLITE_AUTH: "{place} may not be opened; give this user access to the file.",
    sqlite3.SQLITE_CANTOPEN: "{place} cannot be opened; let this user read and write the file and"
    " its folder.",
    sqlite3.SQLITE_NOTADB: "{place} is not a SQLite database; give the path of one, or of a file"
    " that is not there yet.",
    sqlite3.SQLITE_CORRUPT: "{place} is damaged; restore it from a backup, or rescue what is left"
    " with `sqlite3 FILE .recover`.",
    sqlite3.SQLITE_FULL: "There is no space left to write {place}; free some on its disk and try"
    " again.",
    sqlite3.SQLITE_IOERR: "{place} cannot be read or written because its disk failed; check the"
    " disk and its free space.",
    sqlite3.SQLITE_TOOBIG: "A message is larger than the gigabyte that {place} can hold in one row;"
    " store its files elsewhere and keep their URLs.",
}


class SQLite(SQLStore):
    """Conversations in a SQLite file, also shared by several processes of one machine.

    The file is opened, and made if need be, by the first call, in WAL mode: a process that dies
    loses nothing that was stored; a power cut may lose the last moments, never the file. Beside it
    lies `<path>.lock`, which keeps the writers of a conversation apart (`writing`); it is empty,
    and must stay there while the database is in use. Within a process a second writer gets its
    turn in order of arrival; between processes whoever looks first.

    Args:
        path: the file, in a folder that is there; or ":memory:", which is gone with `close`.
        busy_timeout: seconds to wait for another process to end its transaction, 5 by default.

    Raises:
        ConfigError: the path is empty or holds a NUL, or the time is negative.
        MissingExtraError: SQLAlchemy is not installed.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout: float = 5.0) -> None:
        name = os.fspath(path)
        if not name or "\x00" in name:
            raise ConfigError(f"{name!r} is no path of a file; give one, or {MEMORY!r}.")
        if not rules.is_between(busy_timeout, 0, 1_000_000):
            raise ConfigError(
                f"busy_timeout={busy_timeout!r} makes no sense; give seconds, 0 or more."
            )
        self._busy_timeout = busy_timeout
        # Absolute, so that a later chdir does not lead to another file.
        self._path = None if name == MEMORY else os.path.abspath(name)
        super().__init__(self._path or MEMORY, volatile=self._path is None)

    def _engine(self) -> "Engine":
        from sqlalchemy import create_engine, event
        from sqlalchemy.pool import StaticPool

        self._check_path()
        connect = partial(_connect, self._place, self._busy_timeout)
        engine = create_engine(
            "sqlite://", creator=connect, poolclass=StaticPool, hide_parameters=True
        )
        event.listen(engine, "begin", _begin)
        return engine

    def _prepare(self, connection: "Connection") -> None:
        """Nothing: one transaction writes at a time."""

    def _check_path(self) -> None:
        if self._path is None:
            return
        folder = os.path.dirname(self._path)
        if os.path.isdir(self._path):
            raise StoreError(f"{self._path} is a folder; give the path of a file in it.")
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise StoreError(
                f"{folder} is a file, so {self._path} cannot be made; give another path."
            )
        if not os.path.isdir(folder):
            raise StoreError(
                f"The folder {folder} of the database is not there, or this user may not see it;"
                " make it first, or give another path."
            )

    def _explain(self, error: Exception) -> StoreError | None:
        from sqlalchemy.exc import DBAPIError

        cause = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(cause, sqlite3.Error):
            return None
        # The low byte is the kind of the error; the rest says more than a user can act on.
        kind = getattr(cause, "sqlite_errorcode", 0) & 0xFF
        sentence = _SENTENCES.get(kind, "{place} cannot be used: SQLite says {cause!r}.")
        return StoreError(
            sentence.format(place=self._place, timeout=self._busy_timeout, cause=str(cause))
        )

    def _spoils(self, error: Exception) -> bool:
        return self._path is not None  # whoever mends the file may put another in its place

    def _writing(self, conversation: str, wait: bool) -> AbstractAsyncContextManager[None]:
        if self._path is None:
            return alone(self, conversation, wait=wait)
        return self._alone_on_machine(os.path.realpath(self._path), conversation, wait)

    @asynccontextmanager
    async def _alone_on_machine(
        self, place: str, conversation: str, wait: bool
    ) -> AsyncGenerator[None]:
        self._check_path()
        async with alone(place, conversation, wait=wait):
            lock = FileLock(f"{place}.lock", conversation)

            async def take() -> bool:
                return lock.take()

            lock.open()
            try:
                await until_taken(take, conversation, wait=wait)
                yield
            finally:
                lock.close()


def _connect(place: str, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        place,
        timeout=busy_timeout,
        isolation_level=None,  # transactions begin where `_begin` says so, not by guess
        check_same_thread=False,  # one thread at a time, but after `close` it is a new one
    )
    try:
        if place != MEMORY:
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: "Connection") -> None:
    # IMMEDIATE waits for the other writer now; a read that turns into a write could only fail.
    options: dict[str, Any] = dict(connection.get_execution_options())
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writing") else "BEGIN")
