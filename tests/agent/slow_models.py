"""Models that do not come to an end by themselves, and tell when they were stopped."""

import asyncio
from collections.abc import Mapping
from typing import Any

from retinue import ChatRequest
from retinue.messages import Delta, TextDelta
from retinue.models.base import Send


class _Model:
    name = "slow"
    provider = "test"

    async def close(self) -> None:
        """Nothing is held."""


class Stalled(_Model):
    """Sends its deltas, then nothing more.

    Attributes:
        reached: all deltas were sent.
        closed: the call is over, whichever way.
    """

    def __init__(self, *deltas: Delta | str) -> None:
        self.reached = asyncio.Event()
        self.closed = asyncio.Event()
        self._deltas = [TextDelta(d) if isinstance(d, str) else d for d in deltas]

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Sends, then waits for ever."""
        try:
            for delta in self._deltas:
                await send(delta)
            self.reached.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()
        return None


class Chatty(_Model):
    """Sends `count` chunks as fast as it is let.

    Attributes:
        sent: how many it has sent so far.
    """

    def __init__(self, count: int) -> None:
        self.sent = 0
        self._count = count

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Sends; only `send` can make it wait."""
        for _ in range(self._count):
            await send(TextDelta("x"))
            self.sent += 1
        return None
