"""Turns for another task to read: `async for turn in feed`, and `async for event in turn`."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

from retinue.chains import TurnRequest
from retinue.chains.events import AttemptDiscarded, AttemptStarted, Event, TextChunk
from retinue.errors import ConfigError

_AHEAD: Final = 16  # events that a turn hands over before they are read


class Feed:
    """The turns of the agents that forward to it, in the order in which they begin.

    A turn waits for its reader as it waits for any consumer. Where turns run at the same time,
    read each in a task of its own.
    """

    def __init__(self) -> None:
        self._turns: asyncio.Queue[Heard | None] = asyncio.Queue()
        self._open = True

    def close(self) -> None:
        """No more turns: the loop over them ends behind those that have begun."""
        if self._open:
            self._open = False
            self._turns.put_nowait(None)

    def begin(self, request: TurnRequest) -> "Heard | None":
        """The way for the events of one more turn; None once the feed is closed."""
        if not self._open:
            return None
        heard = Heard(request.turn_id, request.conversation)
        self._turns.put_nowait(heard)
        return heard

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> "Heard":
        turn = await self._turns.get()
        if turn is None:
            self._turns.put_nowait(None)  # for whoever asks again
            raise StopAsyncIteration
        return turn


class Heard:
    """One turn, as the reader of a feed sees it: `async for event in turn`, once.

    A reader that leaves the loop early has seen enough: the turn goes on without it.

    Attributes:
        id: the turn's id.
        conversation: the id under which it is stored, or None.
    """

    def __init__(self, id: str, conversation: str | None) -> None:
        self.id = id
        self.conversation = conversation
        self._waiting: deque[Event] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._over = False
        self._read = False
        self._path: tuple[str, ...] | None = None
        self._chunks: list[str] = []

    @property
    def text(self) -> str:
        """The text of the last attempt, as far as it has been read; at the end the final text."""
        return "".join(self._chunks)

    async def put(self, event: Event) -> None:
        """Hands an event over; waits until there is room, or the reader has left."""
        await self._room.wait()
        if self._over:
            return
        self._waiting.append(event)
        if len(self._waiting) >= _AHEAD:
            self._room.clear()
        self._changed.set()

    def end(self) -> None:
        """No more events will come; those that are there can still be read."""
        self._over = True
        self._room.set()
        self._changed.set()

    def leave(self) -> None:
        """There is no reader any more; the turn goes on, and waits for nobody."""
        self._waiting.clear()
        self.end()

    def __aiter__(self) -> AsyncGenerator[Event]:
        if self._read:
            raise ConfigError("The events of this turn are being read; iterate it once.")
        self._read = True
        return self._events()

    async def _events(self) -> AsyncGenerator[Event]:
        try:
            while self._waiting or not self._over:
                if not self._waiting:
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                event = self._waiting.popleft()
                self._room.set()
                self._fold(event)
                yield event
        finally:
            self.leave()

    def _fold(self, event: Event) -> None:
        if self._path is None:
            self._path = event.path
        if event.path != self._path:
            return
        if isinstance(event, (AttemptStarted, AttemptDiscarded)):
            self._chunks.clear()
        elif isinstance(event, TextChunk):
            self._chunks.append(event.text)
