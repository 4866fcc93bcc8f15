"""The way of a turn's events to who reads them, as long as both are in this process."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from retinue.chains import TurnResponse
from retinue.chains.events import Event

WAITING: Final = 256
"""Events that may wait before the turn does."""


class Reader:
    """Events on their way from a turn to who reads them. A slow reader slows the turn."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(WAITING)
        self._ended = asyncio.Event()
        self._left = False

    async def pump(self, events: AsyncIterator[Event]) -> None:
        """Takes the events of the turn."""
        async for event in events:
            if not self._left:
                await self._queue.put(event)

    def end(self, outcome: "asyncio.Future[TurnResponse]") -> None:
        """The turn has ended."""
        if not outcome.cancelled():
            outcome.exception()  # looked at, in case the reader has left
        self._ended.set()

    def leave(self) -> None:
        """Nobody reads any more; the turn goes on."""
        self._left = True
        while not self._queue.empty():
            self._queue.get_nowait()

    async def __aiter__(self) -> AsyncGenerator[Event]:
        over = asyncio.ensure_future(self._ended.wait())
        try:
            while not (over.done() and self._queue.empty()):
                waiting = asyncio.ensure_future(self._queue.get())
                await asyncio.wait({waiting, over}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                    continue
                yield waiting.result()
        finally:
            over.cancel()
