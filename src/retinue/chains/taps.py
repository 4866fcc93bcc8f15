"""Taps: others who hear the events of a turn, beside its reader or where there is none.

A tap is a channel that hears what another one is given. What reads it is a pump,
`async def pump(events)`, in a task of its own. The turn ends when its pumps have.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from retinue.chains.channel import LIMIT, Channel
from retinue.chains.events import Event

GRACE: Final = 5.0
"""Seconds that a pump may take after the last event; then it is cancelled."""

Pump = Callable[["Tap"], Awaitable[None]]
"""Reads a turn's events: `async for event in tap`. One that returns hears no more."""


class Tap(Channel):
    """The events of one turn, and of its sub-agents, as they come.

    Args:
        path: whose events: those of the (sub-)agent at this path, and below it.
        limit: events that may wait here.
        lossy: whether events are dropped when it is full; otherwise the turn waits.
    """

    __slots__ = ("_path", "lossy")

    def __init__(self, path: tuple[str, ...] = (), limit: int = LIMIT, *, lossy: bool = False):
        super().__init__(limit)
        self._path = path
        self.lossy = lossy

    def put(self, event: Event) -> None:
        """Takes an event, if it is one of the turn's and there is room."""
        if event.path[: len(self._path)] == self._path and not (self.lossy and self.full):
            super().put(event)

    def __aiter__(self) -> "Tap":
        return self

    async def __anext__(self) -> Event:
        event = await self.get()
        if event is None:
            raise StopAsyncIteration
        return event


class Pumps:
    """The pumps of one turn.

    Args:
        fail: stops the turn with the error that a pump raised.
    """

    __slots__ = ("_fail", "_running")

    def __init__(self, fail: Callable[[Exception], Any]) -> None:
        self._fail = fail
        self._running: list[tuple[Tap, Channel, asyncio.Task[None]]] = []

    def start(self, tap: Tap, channel: Channel, pump: Pump) -> None:
        """Lets a pump read what the channel is given from now on."""
        channel.taps.append(tap)
        task = asyncio.create_task(self._pump(tap, pump))
        self._running.append((tap, channel, task))

    async def end(self) -> None:
        """The turn has told all: waits until its pumps have read it."""
        for tap, channel, _ in self._running:
            tap.close()
            channel.taps.remove(tap)
        tasks = {task for _, _, task in self._running}
        self._running.clear()
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=GRACE)
        finally:
            for task in tasks:
                task.cancel()  # those that are done do not mind

    async def _pump(self, tap: Tap, pump: Pump) -> None:
        try:
            await pump(tap)
        except Exception as error:
            if not self._fail(error):
                _log.exception("A listener failed after the turn had ended.")
        finally:
            tap.abandon()


_log: Final = logging.getLogger("retinue")
