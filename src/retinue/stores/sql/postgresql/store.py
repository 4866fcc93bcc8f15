"""PostgreSQL: how many connections it has, how its tables begin, and how writers are kept apart."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from retinue.errors import ConfigError, StoreError
from retinue.stores import rules
from retinue.stores.alone import alone
from retinue.stores.polling import until_taken
from retinue.stores.sql.postgresql import failures
from retinue.stores.sql.postgresql.address import Address, parse
from retinue.stores.sql.postgresql.locks import SessionLocks
from retinue.stores.sql.postgresql.session import connect
from retinue.stores.sql.store import SQLStore

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_SHORTEST: Final = 0.001  # seconds that a statement may take; PostgreSQL counts milliseconds
_LONGEST: Final = 1_000_000.0  # seconds; it has 32 bits for them
_MAKING_TABLES: Final = 0x726574696E7565  # "retinue"; an advisory lock of the database


class PostgreSQL(SQLStore):
    """Conversations in a PostgreSQL database, shared by processes of any number of machines.

    The first call makes or migrates the tables, all named `retinue_…`; processes that start
    together wait for each other there. It takes at most `pool` connections for its work, and one
    more once a conversation is written (`writing`). That one holds the locks of all conversations
    that this store writes, as advisory locks of its session, so whoever waits for one keeps no
    connection. A process that dies holds no longer, at once; a machine that is lost, or cut off,
    after 25 seconds. Within a process a second writer gets its turn in order of arrival; between
    processes whoever asks first, ten times a second.

    A connection that broke while it was idle is replaced unnoticed. If it breaks within a call,
    the call raises StoreError, and the next one connects anew. A holder whose lock went with its
    connection is told by a StoreError when it leaves. Times are those of the machine that writes.

    Args:
        url: postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with any parameter of libpq after `?`.
            What it leaves out is taken as psql takes it: PGPASSWORD, ~/.pgpass, and so on. A
            pooler in between must keep sessions (PgBouncer: pool_mode = session).
        schema: the schema for the tables, made if it is not there; None for the first one in the
            user's search path, usually `public`.
        pool: connections at most for reading and storing, 4 by default.
        timeout: seconds that one statement may take, 30 by default.

    Raises:
        ConfigError: the URL cannot be read, the schema is no name, or a number makes no sense.
        MissingExtraError: psycopg or SQLAlchemy is not installed.
    """

    extra: ClassVar[str] = "postgres"

    def __init__(
        self, url: str, *, schema: str | None = None, pool: int = 4, timeout: float = 30.0
    ) -> None:
        rules.check_pool(pool)
        if not rules.is_between(timeout, _SHORTEST, _LONGEST):
            raise ConfigError(f"timeout={timeout!r} makes no sense; give seconds, more than 0.")
        self._address: Address = parse(url, schema, self.extra)
        self._pool = pool
        self._timeout = timeout
        super().__init__(str(self._address), threads=pool)
        self._locks = SessionLocks(
            partial(connect, self._address, timeout),
            partial(failures.explain, address=self._address, timeout=timeout),
            partial(failures.lost_lock, self._address),
            schema,
        )

    def __repr__(self) -> str:
        return f"<{self._place}>"

    async def close(self) -> None:
        """Lets go of connections and threads, after what was asked for has been done.

        The connection that holds locks stays until the last of them is freed.
        """
        await super().close()
        await self._locks.close()

    def _engine(self) -> "Engine":
        from sqlalchemy import create_engine

        return create_engine(
            "postgresql+psycopg://",
            creator=partial(connect, self._address, self._timeout),
            isolation_level="READ COMMITTED",  # the server may have another default
            pool_size=self._pool,
            max_overflow=0,
            pool_pre_ping=True,
            hide_parameters=True,
        )

    def _prepare(self, connection: "Connection") -> None:
        from sqlalchemy import func, select
        from sqlalchemy.schema import CreateSchema

        connection.execute(select(func.pg_advisory_xact_lock(_MAKING_TABLES)))
        if connection.scalar(select(func.current_schema())) is None:
            schema = self._address.schema
            if schema is None:
                raise failures.nowhere(self._address)
            connection.execute(CreateSchema(schema))

    def _explain(self, error: Exception) -> StoreError | None:
        return failures.explain(error, self._address, self._timeout)

    def _spoils(self, error: Exception) -> bool:
        return failures.tables_are_gone(error)

    def _collides(self, error: Exception) -> bool:
        return failures.collides(error)

    @asynccontextmanager
    async def _held(self, conversation: str, wait: bool) -> AsyncGenerator[None]:
        place = (self._address.server, self._address.database, self._address.schema)
        async with alone(place, conversation, wait=wait):
            await until_taken(partial(self._locks.take, conversation), conversation, wait=wait)
            try:
                yield
            except BaseException:
                self._locks.release(conversation)
                raise
            await self._locks.free(conversation)

    def _writing(self, conversation: str, wait: bool) -> AbstractAsyncContextManager[None]:
        return self._held(conversation, wait)
