"""How a turn is written into the log of its conversation."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import takewhile

from retinue.errors import PauseNotFound
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
        last = takewhile(lambda message: message.role == "tool", reversed(healed))
        added = [message for message in last if message.id not in stored][::-1]
        if added:
            await self.append(added, entries[-1].turn)


def gone_on(conversation: str) -> PauseNotFound:
    """Two have gone on with one turn, and this is the second."""
    return PauseNotFound(
        f"The turn of conversation {conversation!r} has been gone on with elsewhere; nothing was"
        " done."
    )


class Journal:
    """Writes one turn into the log, as the loop goes on with it.

    Args:
        log: where to.
        turn: the id of the turn.
        hold: what is held while the turn runs.
        past: the entries of the log that the turn may meet again.
        known: the ids of messages that are in the log besides.
        pause: the id of the pause that the turn goes on from, or None.
        replaced: the ids of messages that its first answer takes the place of.
    """

    def __init__(
        self,
        log: Log,
        turn: str,
        hold: AsyncExitStack,
        past: Sequence[Entry],
        *,
        known: Collection[str] = (),
        pause: str | None = None,
        replaced: Collection[str] = (),
    ) -> None:
        self._log = log
        self._turn = turn
        self._hold = hold
        self._known = {entry.message.id for entry in past} | set(known)
        self._own = {entry.message.id: entry.message for entry in past if entry.turn == turn}
        self._pause = pause
        self._replaced = replaced
        self._doubtful: dict[str, Message] = {}  # a cancelled write may have stored them, or not
        self._one_at_a_time = asyncio.Lock()  # layers may call their inner ones at once
        self._unanswered: list[str] = []
        self._answered = False
        self._superseded: frozenset[str] = frozenset()

    async def append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        """Stores what is new. A question waits as unanswered until the first answer comes."""
        async with self._one_at_a_time:
            await self._append(messages, superseded)
            await self._mend(messages)

    async def _append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        new = self._doubtful | {m.id: m for m in messages if m.id not in self._known}
        answered = self._answered or any(message.role == "assistant" for message in messages)
        states: dict[str, EntryState] = {}
        if answered:
            states |= dict.fromkeys(self._unanswered, "")
            states |= dict.fromkeys(self._replaced, "superseded")
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
            self._replaced = ()

    async def _mend(self, messages: Sequence[Message]) -> None:
        """Results that a resume has stored before it died, and that this one has otherwise."""
        for message in messages if self._own else ():
            if self._own.pop(message.id, message) != message:
                await self._log.revise(message)

    async def revise(self, message: Message) -> None:
        """Replaces what the log has under this id."""
        await self._log.revise(message)

    async def pause(self, id: str, document: bytes) -> None:
        """Keeps what the turn goes on from."""
        await self._log.store.hold(self._log.conversation, id, document, owner=self._log.owner)

    async def go_on(self) -> None:
        """Uses up the pause.

        Raises:
            PauseNotFound: another process has gone on with the turn.
        """
        if self._pause is not None:
            log = self._log
            if not await log.store.release(log.conversation, self._pause, owner=log.owner):
                raise gone_on(log.conversation)
            self._pause = None

    async def close(self) -> None:
        """Lets the conversation go."""
        await self._hold.aclose()
