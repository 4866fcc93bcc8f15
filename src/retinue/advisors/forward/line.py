"""The way of one turn's events to one consumer, and what becomes of it when that fails or is slow.

A line that waits is a loop. One that drops or lets go has two tasks of its own, so that the turn
never waits: one takes the events in, the other hands them over.
"""

import asyncio
import inspect
import logging
import queue
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from retinue.advisors.forward.feed import Heard
from retinue.chains.callables import takes
from retinue.chains.events import Event, TextChunk, ThinkingChunk, ToolArguments
from retinue.chains.taps import Tap
from retinue.errors import ConfigError
from retinue.messages.masking import error_words

Encode = Callable[[Event], Any]
"""Makes of an event what the consumer takes; None leaves the event out."""

_METHODS: Final = ("send", "write", "put")
_CHUNKS: Final = (TextChunk, ThinkingChunk, ToolArguments)
_logger: Final = logging.getLogger("retinue")


class Terms(Struct, frozen=True, kw_only=True):
    """What holds for all lines of one `Forward`; its arguments say what each thing means."""

    on_failure: Literal["stop", "drop", "detach"]
    on_slow: Literal["wait", "drop", "detach"]
    limit: int
    patience: float | None
    encode: Encode | None


def called(consumer: object) -> str:
    """What a consumer is called in messages."""
    return getattr(consumer, "__qualname__", "") or type(consumer).__name__


def way_to(consumer: Any) -> Callable[[Any], Any]:
    """The function that a consumer is handed each event by.

    Raises:
        ConfigError: it has none, or one that would block the event loop.
    """
    if _is_of_threads(consumer) and consumer.maxsize > 0:
        raise ConfigError(
            "Forward cannot wait for room in a queue of threads; give its put_nowait, or an"
            " asyncio.Queue."
        )
    if consumer is not None and not isinstance(consumer, type):
        if callable(consumer):
            return _taking_one(consumer)
        for name in _METHODS:
            method = getattr(consumer, name, None)
            if callable(method):
                return _taking_one(method)
    raise ConfigError(
        f"Forward cannot send events to {consumer!r}; give a function of an event, a Feed, an"
        f" asyncio.Queue, or an object with one of the methods {', '.join(_METHODS)}."
    )


def _is_of_threads(consumer: Any) -> bool:
    return isinstance(consumer, queue.Queue)


def _taking_one(function: Callable[..., Any]) -> Callable[[Any], Any]:
    if not takes(function, 1):
        raise ConfigError(f"The consumer {called(function)} must take one event.")
    return function


class Line:
    """Takes one turn's events to one consumer.

    Args:
        consumer: whom it leads to.
        terms: what holds when he fails or is slow.

    Raises:
        ConfigError: it is no consumer.
    """

    def __init__(self, consumer: Any, terms: Terms) -> None:
        self._consumer = consumer
        self._way = way_to(consumer)
        self._terms = terms
        self._dropped = 0
        self._failed = False

    async def pump(self, events: Tap) -> None:
        """Hands over all events; ends early where the consumer is let go."""
        try:
            if self._terms.on_slow == "wait":
                async for event in events:
                    if not await self._hand_over(event):
                        return
            else:
                await self._through_buffer(events)
        except asyncio.CancelledError:
            self._warn("did not take the last events in time, and was cut off")
            raise
        finally:
            if isinstance(self._consumer, Heard):
                self._consumer.end()
            if self._dropped:
                self._warn(f"was too slow for {self._dropped} pieces of text, which it missed")

    async def _through_buffer(self, events: Tap) -> None:
        waiting: asyncio.Queue[Event | None] = asyncio.Queue()
        reading = asyncio.create_task(self._take_in(events, waiting))
        handing = asyncio.create_task(self._hand_out(waiting))
        try:
            await asyncio.wait({reading, handing}, return_when=asyncio.FIRST_COMPLETED)
            if handing.done() or reading.result():
                await handing
        finally:
            reading.cancel()
            handing.cancel()

    async def _take_in(self, events: Tap, waiting: asyncio.Queue[Event | None]) -> bool:
        """Takes the events in until the last one; False if the consumer is let go before."""
        async for event in events:
            if waiting.qsize() >= self._terms.limit:
                await asyncio.sleep(0)  # a burst is no slowness: he may take what he can
            if waiting.qsize() >= self._terms.limit:
                if self._terms.on_slow == "detach":
                    self._warn(f"let {waiting.qsize()} events wait, and gets no more")
                    return False
                if isinstance(event, _CHUNKS):
                    self._dropped += 1
                    continue
            waiting.put_nowait(event)
        waiting.put_nowait(None)
        return True

    async def _hand_out(self, waiting: asyncio.Queue[Event | None]) -> None:
        while (event := await waiting.get()) is not None:
            if not await self._hand_over(event):
                return

    async def _hand_over(self, event: Event) -> bool:
        """Hands over one event. Gives whether there may be more."""
        terms = self._terms
        try:
            thing = event if terms.encode is None else terms.encode(event)
            if thing is None:
                return True
            given = self._way(thing)
            if inspect.isawaitable(given):
                await self._in_time(given)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            gone = ConnectionAbortedError("It was cancelled.")  # his own doing, not the turn's
            gone.__cause__ = error
            return self._on_failure(gone)
        except Exception as error:
            return self._on_failure(error)
        return True

    async def _in_time(self, given: Any) -> None:
        limit = asyncio.timeout(self._terms.patience)
        try:
            async with limit:
                await given
        except TimeoutError as error:
            if not limit.expired():
                raise  # the consumer's own
            raise TimeoutError(
                f"The consumer {called(self._consumer)} took longer than"
                f" {self._terms.patience:g} seconds for one event; make it quicker, or give"
                " Forward more patience."
            ) from error

    def _on_failure(self, error: Exception) -> bool:
        terms = self._terms
        if terms.on_failure == "stop":
            error.add_note(f"Raised by the consumer {called(self._consumer)} of Forward.")
            raise error
        if not self._failed:  # once a turn will do
            rest = "gets no more" if terms.on_failure == "detach" else "missed an event"
            self._warn(f"failed and {rest}: {error_words(error)}")
        self._failed = True
        return terms.on_failure == "drop"

    def _warn(self, what: str) -> None:
        _logger.warning("The consumer %s of Forward %s", called(self._consumer), what)
