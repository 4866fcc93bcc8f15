"""The store over any SQL database: checks the input, and runs one transaction per call."""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, ClassVar, Concatenate, Final, ParamSpec, TypeVar

from retinue.errors import MissingExtraError, StoreError
from retinue.messages import Message
from retinue.messages.codec import FormatError
from retinue.stores import rules
from retinue.stores.base import Asker, Entry, EntryState, Held, Summary
from retinue.stores.sql.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS: Final = 3
"""How often a transaction is run that another one got in the way of."""


class SQLStore(ABC):
    """What all SQL databases share; a subclass opens the engine and words its errors.

    A call that is cancelled while the database works is still finished there: it happens as a
    whole, unseen by the caller. Storing again is harmless.

    Args:
        place: the database's name in errors.
        volatile: the database is gone with its connection.
        threads: how many calls the database works on at a time.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
    """

    extra: ClassVar[str] = "sqlite"
    """The extra of pip that brings what the store needs."""

    def __init__(self, place: str, *, volatile: bool = False, threads: int = 1) -> None:
        if importlib.util.find_spec("sqlalchemy") is None:
            raise MissingExtraError(
                f"{type(self).__name__} keeps conversations through SQLAlchemy, which is not"
                f" installed: pip install 'retinue[{self.extra}]'."
            )
        self._place = place
        self._worker = Worker(
            self._open, self._explain, self._spoils, volatile=volatile, threads=threads
        )

    @abstractmethod
    def _engine(self) -> "Engine":
        """A new engine. Its transactions lock for writing under the option `writing=True`."""

    @abstractmethod
    def _prepare(self, connection: "Connection") -> None:
        """Called first in the transaction that makes or migrates the tables (`schema.ensure`)."""

    @abstractmethod
    def _explain(self, error: Exception) -> StoreError | None:
        """The sentence for an error of the database, or None if it is not one."""

    @abstractmethod
    def _spoils(self, error: Exception) -> bool:
        """Whether the engine is of no use after this error, and a new one may be."""

    @abstractmethod
    def _writing(self, conversation: str, wait: bool) -> AbstractAsyncContextManager[None]:
        """See `Store.writing`; the id is checked."""

    def _collides(self, error: Exception) -> bool:
        """Whether a write failed only because another was in its way, so that it can be redone."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._place!r})"

    async def append(
        self,
        conversation: str,
        messages: Sequence[Message],
        *,
        turn: str,
        owner: Asker = None,
        states: Mapping[str, EntryState] | None = None,
    ) -> None:
        """See `Store.append`."""
        rules.check_address(conversation, owner)
        rules.check_id("turn", turn)
        states = dict(states) if states else {}
        rules.check_states(states)
        forms = rules.encoded(messages)
        from retinue.stores.sql import log

        await self._write(log.append, conversation, owner, forms, turn, states)

    async def revise(self, conversation: str, message: Message, *, owner: Asker = None) -> None:
        """See `Store.revise`."""
        rules.check_address(conversation, owner)
        rules.check_id("message id", message.id)
        body = rules.body_of(message)
        from retinue.stores.sql import log

        await self._write(log.revise, conversation, owner, message, body)

    async def tail(
        self,
        conversation: str,
        *,
        owner: Asker = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> Sequence[Entry]:
        """See `Store.tail`."""
        rules.check_address(conversation, owner)
        most, end = rules.check_limit(limit), rules.end_of(before)
        from retinue.stores.sql import log

        with self._telling_of_rows(conversation):
            return await self._read(log.tail, conversation, owner, most, end)

    async def head(
        self, conversation: str, *, owner: Asker = None, limit: int | None = None
    ) -> Sequence[Entry]:
        """See `Store.head`."""
        rules.check_address(conversation, owner)
        most = rules.check_limit(limit)
        from retinue.stores.sql import log

        with self._telling_of_rows(conversation):
            return await self._read(log.head, conversation, owner, most)

    async def known(
        self, conversation: str, ids: Sequence[str], *, owner: Asker = None
    ) -> frozenset[str]:
        """See `Store.known`."""
        rules.check_address(conversation, owner)
        from retinue.stores.sql import log

        return await self._read(log.known, conversation, owner, list(ids))

    async def conversations(self, *, owner: Asker = None, limit: int = 100) -> Sequence[Summary]:
        """See `Store.conversations`."""
        rules.check_owner(owner)
        most = rules.check_limit(limit)
        from retinue.stores.sql import log

        return await self._read(log.conversations, owner, most)

    async def delete(self, conversation: str, *, owner: Asker = None) -> None:
        """See `Store.delete`."""
        rules.check_address(conversation, owner)
        from retinue.stores.sql import log

        await self._write(log.remove, conversation, owner)

    async def hold(
        self, conversation: str, id: str, document: bytes, *, owner: Asker = None
    ) -> None:
        """See `Store.hold`."""
        rules.check_address(conversation, owner)
        rules.check_id("pause id", id)
        from retinue.stores.sql import timeline

        await self._write(timeline.hold, conversation, owner, id, document)

    async def held(self, conversation: str, *, owner: Asker = None) -> Held | None:
        """See `Store.held`."""
        rules.check_address(conversation, owner)
        from retinue.stores.sql import timeline

        return await self._read(timeline.held, conversation, owner)

    async def release(self, conversation: str, id: str, *, owner: Asker = None) -> bool:
        """See `Store.release`."""
        rules.check_address(conversation, owner)
        from retinue.stores.sql import timeline

        return await self._write(timeline.release, conversation, owner, id)

    async def fork(
        self, conversation: str, new: str, *, at: int | None = None, owner: Asker = None
    ) -> None:
        """See `Store.fork`."""
        rules.check_address(conversation, owner)
        rules.check_id("conversation id", new)
        from retinue.stores.sql import timeline

        end = None if at is None else rules.end_of(at)
        await self._write(timeline.fork, conversation, owner, new, end)

    async def rollback(self, conversation: str, *, after: int, owner: Asker = None) -> None:
        """See `Store.rollback`."""
        rules.check_address(conversation, owner)
        from retinue.stores.sql import timeline

        await self._write(timeline.rollback, conversation, owner, rules.end_of(after))

    async def prune(self, conversation: str, *, before: int, owner: Asker = None) -> None:
        """See `Store.prune`."""
        rules.check_address(conversation, owner)
        from retinue.stores.sql import timeline

        await self._write(timeline.prune, conversation, owner, rules.end_of(before))

    def writing(self, conversation: str, *, wait: bool = True) -> AbstractAsyncContextManager[None]:
        """See `Store.writing`."""
        rules.check_id("conversation id", conversation)
        return self._writing(conversation, wait)

    async def close(self) -> None:
        """Lets go of connections and threads, after what was asked for has been done."""
        await self._worker.close()

    @contextmanager
    def _telling_of_rows(self, conversation: str) -> Generator[None]:
        try:
            yield
        except FormatError as error:
            raise StoreError(
                f"Conversation {rules.quoted(conversation)} in {self._place} holds a row that is no"
                f" message; restore it from a backup. {error}"
            ) from error

    async def _read(
        self,
        operation: "Callable[Concatenate[Connection, P], T]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        def transaction(engine: "Engine") -> T:
            with engine.begin() as connection:
                return operation(connection, *args, **kwargs)

        return await self._worker.run(transaction)

    async def _write(
        self,
        operation: "Callable[Concatenate[Connection, P], T]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        def transaction(engine: "Engine") -> T:
            with (
                engine.connect().execution_options(writing=True) as connection,
                connection.begin(),
            ):
                return operation(connection, *args, **kwargs)

        def persist(engine: "Engine") -> T:
            for _ in range(_ATTEMPTS - 1):
                try:
                    return transaction(engine)
                except Exception as error:
                    if not self._collides(error):
                        raise
            return transaction(engine)

        return await self._worker.run(persist)

    def _open(self) -> "Engine":
        from retinue.stores.sql import schema

        engine = self._engine()
        try:
            schema.ensure(engine, self._place, self._prepare)
        except BaseException:
            engine.dispose()
            raise
        return engine
