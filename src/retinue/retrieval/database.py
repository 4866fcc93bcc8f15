"""The SQLite file of an index: how it is opened, used from threads, and what its errors mean.

One connection, used by one thread at a time. Processes share the file through SQLite's own locks.
"""

import asyncio
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from typing import Final, TypeVar

from retinue.errors import ConfigError, RetrievalError

T = TypeVar("T")

MEMORY: Final = ":memory:"
_UNKNOWN: Final = "{place} cannot be used: SQLite says {cause!r}; look at the file and its folder."
_SENTENCES: Final = {
    sqlite3.SQLITE_BUSY: "{place} is locked by another process; end its transaction, or give the"
    " index a longer busy_timeout.",
    sqlite3.SQLITE_READONLY: "{place} cannot be written; make the file and its folder writable for"
    " this user.",
    sqlite3.SQLITE_PERM: "{place} may not be opened; give this user access to the file.",
    sqlite3.SQLITE_CANTOPEN: "{place} cannot be opened; make its folder, and let this user read and"
    " write both.",
    sqlite3.SQLITE_NOTADB: "{place} is not a SQLite database; give the path of one, or of a file"
    " that is not there yet.",
    sqlite3.SQLITE_CORRUPT: "{place} is damaged; delete it and add the documents again.",
    sqlite3.SQLITE_FULL: "There is no space left to write {place}; free some on its disk and try"
    " again.",
    sqlite3.SQLITE_IOERR: "{place} cannot be read or written because its disk failed; check the"
    " disk and its free space.",
}
_inherited: Final[list[sqlite3.Connection]] = []
"""Connections of the process that this one was forked from: not to be used here, nor closed."""


class Database:
    """A file with an index in it, opened by the first call.

    Args:
        path: the file, or ":memory:".
        prepare: makes the tables of a new file, and refuses those of a later version.
        busy_timeout: seconds to wait for another process to end its transaction.

    Raises:
        ConfigError: the path is empty or holds a NUL, or the time is negative.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        prepare: Callable[[sqlite3.Connection], None],
        busy_timeout: float,
    ) -> None:
        name = os.fspath(path)
        if not name or "\x00" in name:
            raise ConfigError(f"{name!r} is no path of a file; give one, or {MEMORY!r}.")
        if not 0 <= busy_timeout < 1_000_000:
            raise ConfigError(
                f"busy_timeout={busy_timeout} makes no sense; give seconds, 0 or more."
            )
        # Absolute, so that a later chdir does not lead to another file.
        self.place = name if name == MEMORY else os.path.abspath(name)
        self._prepare = prepare
        self._busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._closing: weakref.finalize[..., Database] | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    async def run(
        self, operation: Callable[[sqlite3.Connection], T], *, writing: bool = False
    ) -> T:
        """What the operation returns, run in a thread and in one transaction.

        Once begun it is finished, even if the caller is cancelled.

        Raises:
            RetrievalError: the file cannot be used; one sentence says why, and the way out.
        """
        if self._process != os.getpid():
            self._start_over()
        return await asyncio.to_thread(self._run, operation, "IMMEDIATE" if writing else "")

    async def close(self) -> None:
        """Waits for what is in hand and closes the file."""
        if self._process == os.getpid():
            await asyncio.to_thread(self._close)

    def _run(self, operation: Callable[[sqlite3.Connection], T], mode: str) -> T:
        with self._lock:
            try:
                connection = self._opened()
                return _in_transaction(connection, operation, mode)
            except sqlite3.Error as error:
                if self.place != MEMORY:
                    self._drop()  # whoever mends the file may put another in its place
                raise self._explained(error) from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = sqlite3.connect(
                self.place,
                timeout=self._busy_timeout,
                isolation_level=None,  # transactions begin where `run` says so
                check_same_thread=False,  # one thread at a time, but not always the same
            )
            self._closing = weakref.finalize(self, connection.close)
            self._connection = connection
            if self.place != MEMORY:
                connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            try:
                self._prepare(connection)
            except RetrievalError:
                self._drop()
                raise
        return self._connection

    def _close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        closing, self._closing, self._connection = self._closing, None, None
        if closing is not None:
            closing()

    def _start_over(self) -> None:
        """In a forked child: another connection, and a lock that no thread of the parent holds.

        An index in memory goes on with its copy; there is no other.
        """
        self._lock = threading.Lock()
        self._process = os.getpid()
        if self._connection is not None and self.place != MEMORY:
            _inherited.append(self._connection)
            if self._closing is not None:
                self._closing.detach()
            self._connection = self._closing = None

    def _explained(self, error: sqlite3.Error) -> RetrievalError:
        if "no such module: fts5" in str(error):
            return RetrievalError(
                "The SQLite of this Python was built without FTS5, so it cannot keep an index of"
                " words; install a Python that has it, or use another retriever."
            )
        # The low byte is the kind of the error; the rest says more than a user can act on.
        kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
        sentence = _SENTENCES.get(kind, _UNKNOWN)
        return RetrievalError(sentence.format(place=self.place, cause=str(error)))


def _in_transaction(
    connection: sqlite3.Connection, operation: Callable[[sqlite3.Connection], T], mode: str
) -> T:
    connection.execute(f"BEGIN {mode}")
    try:
        result = operation(connection)
        connection.execute("COMMIT")
        return result
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
