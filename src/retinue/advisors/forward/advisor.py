"""The advisor: it taps the turn, once, with a line to each consumer.

It has one hook, `turn`. What it forwards is what the reader of a stream sees, also where the turn
is run and nobody reads.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

from retinue.advisors.forward.feed import Feed
from retinue.advisors.forward.line import Encode, Line, Terms, called, way_to
from retinue.chains import Advisor, CallNext, TurnRequest, TurnResponse
from retinue.chains.callables import takes
from retinue.errors import ConfigError
from retinue.messages.masking import error_words
from retinue.tools.options import is_positive

Consumer = Any
"""A function of an event, plain or async; a `Feed`; an `asyncio.Queue`; or an object with a method
`send`, `write` or `put` that takes one, such as the stream of an RPC."""

ForTurn = Callable[[TurnRequest], Consumer | Awaitable[Consumer]]
"""Gives the consumer of one turn, or None where it has none; it may be `async`."""

_CHOICES: Final = {
    "on_failure": ("stop", "drop", "detach"),
    "on_slow": ("wait", "drop", "detach"),
}
_logger: Final = logging.getLogger("retinue")


class Forward(Advisor):
    """Sends every event of a turn to others, in order.

    Each consumer has a task of its own, and the turn ends when they have taken the last event, at
    the latest 5 seconds after it. A plain function is called in the event loop, which it blocks.

    Args:
        consumers: who gets the events of all turns.
        for_turn: gives the consumer of one turn, such as the connection of whoever asked.
        encode: makes of an event what the consumers take; None leaves the event out.
        on_failure: what becomes of a consumer that raises. "stop": the turn stops and raises the
            error. "drop": he misses that event. "detach": he gets no more. The last two are a
            warning in the log "retinue".
        on_slow: what becomes of one for whom `limit` events wait. "wait": the turn waits for him.
            "drop": he misses pieces of text, reasoning and arguments, but no other event; the last
            event has the whole text. "detach": he gets no more.
        limit: how many events may wait for each consumer, 256 by default.
        patience: seconds that an async consumer may take for one event, 30 by default, or None.
            One that takes longer has failed.

    Raises:
        ConfigError: there is no consumer, or a value cannot be used.
    """

    order = 500  # the slot of forwarding (R-ONION-8)
    traits = frozenset({"forwards"})

    def __init__(
        self,
        *consumers: Consumer,
        for_turn: ForTurn | None = None,
        encode: Encode | None = None,
        on_failure: Literal["stop", "drop", "detach"] = "stop",
        on_slow: Literal["wait", "drop", "detach"] = "wait",
        limit: int = 256,
        patience: float | None = 30.0,
    ) -> None:
        if not consumers and for_turn is None:
            raise ConfigError("Forward() has no consumer; give one, or for_turn=...")
        for name, function in (("for_turn", for_turn), ("encode", encode)):
            if function is not None and not takes(function, 1):
                raise ConfigError(f"Forward({name}={function!r}): give a function of one thing.")
        for name, value in (("on_failure", on_failure), ("on_slow", on_slow)):
            if value not in _CHOICES[name]:
                raise ConfigError(f"Forward({name}={value!r}): give one of {_CHOICES[name]}.")
        if type(limit) is not int or limit < 1:
            raise ConfigError(f"Forward(limit={limit!r}): give a whole number, 1 or more.")
        if patience is not None and not is_positive(patience):
            raise ConfigError(f"Forward(patience={patience!r}): give seconds, or None.")
        for consumer in consumers:
            _check(consumer)
        self._consumers = consumers
        self._for_turn = for_turn
        self._terms = Terms(
            on_failure=on_failure,
            on_slow=on_slow,
            limit=limit,
            patience=patience,
            encode=encode,
        )

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Taps the turn, at its first entry."""
        mine = request.local(self)
        if not mine.setdefault("tapped", False):
            mine["tapped"] = True
            for line in await self._lines(request):
                request.tap(line.pump, limit=self._terms.limit)
        return await call_next(request)

    async def _lines(self, request: TurnRequest) -> Sequence[Line]:
        consumers = [
            consumer.begin(request) if isinstance(consumer, Feed) else consumer
            for consumer in (*self._consumers, await self._own(request))
        ]
        return [Line(consumer, self._terms) for consumer in consumers if consumer is not None]

    async def _own(self, request: TurnRequest) -> Consumer:
        """The consumer of this turn alone."""
        if self._for_turn is None:
            return None
        try:
            consumer = self._for_turn(request)
            if inspect.isawaitable(consumer):
                consumer = await consumer
        except Exception as error:
            if self._terms.on_failure == "stop":
                raise
            told = error_words(error)
            _logger.warning("%s gave Forward no consumer: %s", called(self._for_turn), told)
            return None
        if consumer is not None:
            _check(consumer)
        return consumer


def _check(consumer: Consumer) -> None:
    if not isinstance(consumer, Feed):
        way_to(consumer)
