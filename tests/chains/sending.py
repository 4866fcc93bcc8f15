"""Transforms of every kind, and one model call sent through them."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, NamedTuple

from retinue.chains import Scope, Transform
from retinue.chains.channel import Channel
from retinue.chains.events import Event, TextChunk, ThinkingChunk
from retinue.chains.send import Delivery
from retinue.messages import Delta, Message, TextDelta, ThinkingDelta


def scope_of(channel: Channel | None = None, *, tokens: int | None = None) -> Scope:
    async def consult(*_: Any) -> Any:
        raise AssertionError("nobody asks on the side")

    return Scope(consult, channel, tokens)


async def read(channel: Channel) -> list[Event]:
    channel.close()
    events: list[Event] = []
    while (event := await channel.get()) is not None:
        events.append(event)
    return events


class Sent(NamedTuple):
    """What came of one model call."""

    events: list[Event]
    shown: Message
    logged: Message

    @property
    def shown_text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextChunk))

    @property
    def shown_thinking(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ThinkingChunk))


async def send(
    deltas: Iterable[Delta], *transforms: Transform, watched: bool = True, final_only: bool = False
) -> Sent:
    channel = Channel(10_000) if watched else None
    scope = scope_of(channel)
    scope.final_only = final_only
    delivery = Delivery(scope, transforms, model="m", provider="p")
    for delta in deltas:
        await delivery(delta)
    await delivery.finish()
    shown = delivery.message()
    return Sent([] if channel is None else await read(channel), shown, scope.log.logged(shown))


# -- transforms of every kind ------------------------------------------------------------------


class Each:
    """A transform without a state: one text or thinking becomes any number, in any iterable."""

    def __init__(self, kind: str, *, late: bool = False) -> None:
        self.kind = kind
        self.delivery_only = late

    def __repr__(self) -> str:
        return f"Each({self.kind!r}, late={self.delivery_only})"

    def feed(self, delta: Delta) -> Iterable[Delta]:
        assert isinstance(delta, (TextDelta, ThinkingDelta)), "transforms see words only"
        match self.kind:
            case "drop":
                return ()
            case "upper":
                return (type(delta)(delta.text.upper()),)
            case "split":
                return [type(delta)(letter) for letter in delta.text]
            case "twice":
                return iter((delta, delta))
            case "turn to text":
                return (TextDelta(delta.text),)
            case _:
                return self._generated(delta)

    def _generated(self, delta: Delta) -> Iterator[Delta]:
        yield delta
        yield TextDelta("+")

    def flush(self) -> Iterable[Delta]:
        return ()


class Buffered:
    """A transform that gives only every third delta on, and the rest at the end."""

    def __init__(self, kind: str, *, late: bool = False) -> None:
        self.kind = kind
        self.delivery_only = late
        self.held: list[Delta] = []

    def __repr__(self) -> str:
        return f"Buffered({self.kind!r}, late={self.delivery_only})"

    def feed(self, delta: Delta) -> list[Delta]:
        self.held.append(delta)
        if len(self.held) < 3:
            return []
        out, self.held = self.held, []
        return out

    def flush(self) -> Iterable[Delta] | Awaitable[Iterable[Delta]]:
        tail = [*self.held, TextDelta(".")]
        if self.kind == "async":
            return self._later(tail)
        return iter(tail) if self.kind == "iterator" else tail

    async def _later(self, tail: list[Delta]) -> list[Delta]:
        await asyncio.sleep(0)
        return tail
