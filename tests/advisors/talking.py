"""Short ways to talk to an agent and to see what was sent and what was kept."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final

from retinue import Agent, Layer, TurnResponse
from retinue.messages import Message
from retinue.models.scripted import Scripted, call
from retinue.stores import Entry, Store
from tests.agent.reading import read
from tests.strict import check_transcript

BOUND: Final = 10.0
"""Seconds after which a wait has failed, on the slowest machine."""

Way = Callable[..., Coroutine[Any, Any, TurnResponse]]


async def by_run(agent: Agent, question: Any, **options: Any) -> TurnResponse:
    """The turn, run."""
    return await agent.run(question, **options)


async def by_stream(agent: Agent, question: Any, **options: Any) -> TurnResponse:
    """The turn, streamed and read to its end; what it raised is raised."""
    turn = agent.stream(question, **options)
    await read(turn)
    return await turn.result()


WAYS: Final[Sequence[Way]] = (by_run, by_stream)


async def by_parent(agent: Agent, question: str, **_: Any) -> TurnResponse:
    """The turn, run as a tool of another agent; the response is the parent's."""
    parent = Agent(Scripted(call("helper", task=question), "done"), tools=[agent.as_tool("helper")])
    return await parent.run("delegate")


def layer(name: str, hook: str, function: Callable[..., Any]) -> Layer:
    """A layer with one hook, whose name comes as data."""
    hooks: dict[str, Any] = {hook: function}
    return Layer(name, **hooks)


def said(messages: Sequence[Message]) -> list[str]:
    """Messages as short texts: `user: hi`, `assistant: +search`, `tool: found`."""
    return list(map(_line, messages))


def sent(model: Scripted, number: int = -1) -> list[str]:
    """What a request to the model held, the instructions first."""
    request = model.requests[number]
    return [*(f"instructions: {text}" for text in request.instructions), *said(request.messages)]


def strictly(model: Scripted) -> None:
    """Every request that was sent would pass a strict provider."""
    for request in model.requests:
        check_transcript(request.messages)


async def kept(store: Store, conversation: str = "c", **options: Any) -> list[str]:
    """The log as short texts, those that later turns are not sent with their state before them."""
    return list(_entries(await store.tail(conversation, **options)))


async def soon(work: Awaitable[Any]) -> Any:
    """What the work gives, in bounded time."""
    async with asyncio.timeout(BOUND):
        return await work


def _entries(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        yield (f"({entry.state}) " if entry.state else "") + _line(entry.message)


def _line(message: Message) -> str:
    told = [message.text] if message.text else []
    told += [f"+{one.name}" for one in message.tool_calls]
    told += [one.text for one in message.tool_results]
    return f"{message.role}: {' '.join(told)}" + (" …" if message.partial else "")
