"""The bounded buffer between a turn and its reader (R-STREAM-6).

Events are numbered as they are put in. `put` never waits; whoever produces without end awaits
`drain` when the buffer is `full`, so a slow reader slows the producer. When the reader is gone,
events are dropped and nobody waits. Others may listen too: `taps.py`.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from retinue.chains.events import Event

if TYPE_CHECKING:
    from retinue.chains.taps import Tap

LIMIT: Final = 256
"""Events that may wait for the reader before the producer does."""


class Channel:
    """One turn's way to its reader; sub-agents write to it too.

    Attributes:
        full: whether a producer should await `drain` before it goes on.
        open: whether anybody reads.
        seq: the number of the last event.
        taps: who hears the events besides.
    """

    __slots__ = (
        "_buffer", "_closed", "_limit", "_reader", "_writers", "full", "open", "seq", "taps",
    )  # fmt: skip

    def __init__(self, limit: int = LIMIT) -> None:
        self._buffer: deque[Event] = deque()
        self._limit = limit
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self._closed = False
        self.full = False
        self.open = True
        self.seq = 0
        self.taps: list[Tap] = []

    def put(self, event: Event) -> None:
        """Hands an event over. Its number must be `seq + 1`, and `seq` moves on to it."""
        self.seq = event.seq
        for tap in self.taps:
            tap.put(event)
            self.full = self.full or (tap.full and not tap.lossy)
        if not self.open:
            return
        buffer = self._buffer
        buffer.append(event)
        if len(buffer) >= self._limit:
            self.full = True
        if self._reader is not None:
            _wake(self._reader)
            self._reader = None

    async def drain(self) -> None:
        """Waits until the reader and the taps have caught up, or have left."""
        if self.taps:
            for tap in [*self.taps]:
                if not tap.lossy:
                    await tap.drain()
            self.full = len(self._buffer) >= self._limit
        while self.full:
            writer = asyncio.get_running_loop().create_future()
            self._writers.append(writer)
            await writer

    def close(self) -> None:
        """What comes from now on is dropped; the reader ends when it has read what is there."""
        self._closed = True
        self.open = False
        self._release()
        if self._reader is not None:
            _wake(self._reader)
            self._reader = None

    def abandon(self) -> None:
        """The reader has left: what waits is dropped, and producers go on."""
        self.open = False
        self._buffer.clear()
        self._release()

    async def get(self) -> Event | None:
        """The next event, when it has come; None after the last."""
        while not self._buffer:
            if self.full:
                self._release()
            if self._closed:
                return None
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self._buffer.popleft()

    def _release(self) -> None:
        self.full = False
        for writer in self._writers:
            _wake(writer)
        self._writers.clear()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
