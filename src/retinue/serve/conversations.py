"""The conversations behind a gateway: listed, read, forked, rolled back and deleted by owners.

Whatever belongs to somebody else is not found. It works on the stores themselves, so it can read
what agents on workers write, where both have the same database.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from retinue.chains.snapshot import Snapshot
from retinue.errors import ConversationBusy, ConversationNotFound
from retinue.messages import Message
from retinue.serve.faults import Refused
from retinue.serve.jobs import Job
from retinue.stores import Branch, Entry, Point, Store, Summary, Timeline
from retinue.stores.rules import check_store
from retinue.tools import PendingCall
from retinue.tools.shapes import listed

PATIENCE: Final = 5.0
"""Seconds that a change waits for a turn that is writing the conversation."""


class Conversations:
    """What owners can do with conversations.

    Args:
        stores: where they are; each is asked in turn. Two of them may lead to one database.
        patience: seconds that a change waits for a running turn.

    Raises:
        ConfigError: the stores are no list, or one of them is none.
    """

    def __init__(self, stores: Sequence[Store], *, patience: float = PATIENCE) -> None:
        self._stores: tuple[Store, ...] = listed("stores", stores)
        for store in self._stores:
            check_store("Gateway", store)
        self._patience = patience

    def __bool__(self) -> bool:
        return bool(self._stores)

    async def recent(self, owner: str | None, limit: int) -> list[Summary]:
        """The owner's conversations, the one written last first."""
        found: dict[str, Summary] = {}
        for store in self._stores:
            for one in await store.conversations(owner=owner, limit=limit):
                found.setdefault(one.id, one)
        return sorted(found.values(), key=lambda one: -one.updated)[:limit]

    async def tree(self, owner: str | None) -> list[Branch]:
        """The owner's conversations, each with its forks."""
        found: dict[str, Branch] = {}
        for store in self._stores:
            for branch in await Timeline(store).tree(owner=owner):
                found.setdefault(branch.conversation.id, branch)
        return [*found.values()]

    async def check(self, id: str, owner: str | None) -> None:
        """Refuses a conversation that belongs to somebody else; a new one is nobody's yet.

        Raises:
            ConversationNotFound: it is not this owner's.
        """
        for store in self._stores:
            await store.tail(id, owner=owner, limit=1)

    async def entries(
        self, id: str, owner: str | None, *, before: int | None, limit: int
    ) -> Sequence[Entry]:
        """The last entries below a position, the oldest first.

        Raises:
            ConversationNotFound: there is none for this owner.
        """
        store = await self._home(id, owner)
        return await store.tail(id, owner=owner, before=before, limit=limit)

    async def points(self, id: str, owner: str | None) -> Sequence[Point]:
        """The ends of its turns, the oldest first."""
        store = await self._home(id, owner)
        return await Timeline(store).points(id, owner=owner)

    async def pending(self, id: str, owner: str | None) -> tuple[PendingCall, ...]:
        """What its paused turn waits for; empty if none is paused, or there is no conversation."""
        for store in self._stores:
            held = await store.held(id, owner=owner)
            if held is not None:
                return Snapshot.load(held.document).pending
        return ()

    async def fork(self, id: str, owner: str | None, *, new: str | None, at: str | None) -> str:
        """Makes a fork at a turn, or of the whole; gives its id."""
        store = await self._home(id, owner)
        async with self._patiently(id):
            return await Timeline(store).fork(id, new, at=at, owner=owner)

    async def rollback(self, id: str, owner: str | None, to: str | None) -> None:
        """Removes all that came after a turn."""
        store = await self._home(id, owner)
        async with self._patiently(id):
            await Timeline(store).rollback(id, to, owner=owner)

    async def delete(self, id: str, owner: str | None) -> None:
        """Removes a conversation for good."""
        store = await self._home(id, owner)
        async with self._patiently(id), store.writing(id):
            await store.delete(id, owner=owner)

    async def log(self, job: Job, turn: str) -> Sequence[Message]:
        """The stored messages of a turn."""
        if job.conversation is None:
            return ()
        for store in self._stores:
            entries = await store.tail(job.conversation, owner=job.owner, limit=_TURN)
            found = [e.message for e in entries if e.turn == turn and e.state != "superseded"]
            if found:
                return found
        return ()

    async def _home(self, id: str, owner: str | None) -> Store:
        """The store that holds the conversation."""
        missing = ConversationNotFound(f"There is no conversation {id!r}.")
        if not self._stores:
            raise Refused("not_found", "This server keeps no conversations.")
        for store in self._stores:
            try:
                if await store.tail(id, owner=owner, limit=1):
                    return store
            except ConversationNotFound:
                continue
        raise missing

    @asynccontextmanager
    async def _patiently(self, id: str) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._patience):
                yield
        except TimeoutError:
            raise ConversationBusy(
                f"A turn is writing the conversation {id!r}; cancel it, or try again later."
            ) from None


_TURN: Final = 1_000
"""Messages of one turn that a reader who missed some is shown."""
