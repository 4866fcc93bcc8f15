"""Turns of whole agents, and the tools that their models call."""

import asyncio
from collections.abc import AsyncIterable
from typing import Any, Protocol

import pytest

from retinue import Agent, Image, TurnResponse, events, tool
from retinue.chains.events import Event
from retinue.errors import ModelError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


@tool
def weather(city: str) -> str:
    """The weather now."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"sunny in {city}"


@tool
def photo(city: str) -> list[Any]:
    """A picture."""
    return [f"{city} from above", Image(data=PNG)]


async def talk(agent: Agent, question: Any, *, stream: bool = False, **rest: Any) -> TurnResponse:
    """One turn; where it is read as a stream, what was shown is what is returned."""
    if not stream:
        return await agent.run(question, **rest)
    seen: list[Event] = []
    turn = agent.stream(question, **rest)
    async with turn:
        await read(turn, seen)
    result = await turn.result()
    assert text_of(seen).endswith(result.text)
    return result


async def read(turn: AsyncIterable[Event], seen: list[Event]) -> None:
    """Reads a turn to its end; what was read before an error is there too."""
    async for event in turn:
        seen.append(event)


def text_of(seen: list[Event]) -> str:
    """The text that was shown."""
    return "".join(event.text for event in seen if isinstance(event, events.TextChunk))


class Holding(Protocol):
    """A vendor that stops in the middle of an answer."""

    holding: asyncio.Event
    left: asyncio.Event


async def cancel_and_go_on(agent: Agent, at: Holding) -> None:
    """Cancels a turn in the middle of its answer, and asks something else, which must go well."""
    turn = agent.stream("Weather?", conversation="c")
    reading = asyncio.create_task(read(turn, []))
    async with asyncio.timeout(5):
        await at.holding.wait()
        turn.cancel("Never mind.")
        await reading
        await at.left.wait()
    assert (await turn.result()).status == "cancelled"
    assert (await agent.run("And now?", conversation="c")).text == "Fine."


async def break_off(agent: Agent, *, shown: str, told: str) -> None:
    """A turn that fails in the middle of its answer: what was shown stays, and nobody asks anew."""
    seen: list[Event] = []
    with pytest.raises(ModelError, match=told):
        await read(agent.stream("Go"), seen)
    assert text_of(seen) == shown
    assert not any(isinstance(event, events.AttemptDiscarded) for event in seen)
