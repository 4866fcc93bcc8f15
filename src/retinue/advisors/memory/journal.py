"""How a turn is written into the log of its conversation."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from retinue.messages import Message
from retinue.stores import Entry, EntryState, Store


class Log:
    """One conversation of a store, for one owner."""

    def __init__(self, store: Store, conversation: str, owner: str | None) -> None:
        self.store = store
        self.conversation = conversation
        self.owner = owner

    async def append(
        self,
        messages: Sequence[Message],
        turn: str,
        states: Mapping[str, EntryState] | None = None,
    ) -> None:
        """Stores messages of a turn, and states."""
        await self.store.append(
            self.conversation, messages, turn=turn, owner=self.owner, states=states
        )

    async def revise(self, message: Message) -> None:
        """Replaces a stored message."""
        await self.store.revise(self.conversation, message, owner=self.owner)

    async def keep_healed(self, entries: Sequence[Entry], healed: Sequence[Message]) -> None:
        """Stores the results that healing added at the end of the log, where they belong."""
        stored = {entry.message.id for entry in entries}
        added: list[Message] = []
        for message in reversed(healed):
            if message.id in stored:
                break
            added.insert(0, message)
        if added:
            await self.append(added, entries[-1].turn)


class Journal:
    """Writes one turn into the log, as the loop goes on with it."""

    def __init__(self, log: Log, turn: str, hold: AsyncExitStack, known: set[str]) -> None:
        self._log = log
        self._turn = turn
        self._hold = hold
        self._known = known
        self._doubtful: dict[str, Message] = {}  # a cancelled write may have stored them, or not
        self._one_at_a_time = asyncio.Lock()  # layers may call their inner ones at once
        self._unanswered: list[str] = []
        self._answered = False
        self._superseded: frozenset[str] = frozenset()

    async def append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        """Stores what is new. A question waits as unanswered until the first answer comes."""
        async with self._one_at_a_time:
            await self._append(messages, superseded)

    async def _append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        new = self._doubtful | {m.id: m for m in messages if m.id not in self._known}
        answered = self._answered or any(message.role == "assistant" for message in messages)
        states: dict[str, EntryState] = {}
        if answered:
            states |= dict.fromkeys(self._unanswered, "")
        else:
            self._unanswered = [message.id for message in messages]
            states |= dict.fromkeys(self._unanswered, "unanswered")
        marked = {one for one in superseded - self._superseded if one in self._known or one in new}
        states |= dict.fromkeys(marked, "superseded")
        self._doubtful = new
        if new or (states and answered):
            await self._log.append([*new.values()], self._turn, states)
        self._doubtful = {}
        self._known.update(new)
        self._answered = answered
        self._superseded |= marked
        if answered:
            self._unanswered = []

    async def revise(self, message: Message) -> None:
        """Replaces what the log has under this id."""
        await self._log.revise(message)

    async def close(self) -> None:
        """Lets the conversation go."""
        await self._hold.aclose()
