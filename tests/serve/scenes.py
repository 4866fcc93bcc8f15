"""Agents to serve, and short ways to read what they do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.chains import ChatRequest
from retinue.chains.events import Event
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory

BOUND: Final = 30.0
"""Seconds after which a wait has failed, on the slowest machine."""


async def within(awaitable: Any, seconds: float = BOUND) -> Any:
    """What the awaitable gives, in bounded time."""
    async with asyncio.timeout(seconds):
        return await awaitable


async def all_of(running: AsyncIterator[Any], seconds: float = BOUND) -> list[Any]:
    """Everything that comes, in bounded time."""
    async with asyncio.timeout(seconds):
        return [one async for one in running]


def kinds(events: list[Event]) -> list[str]:
    """The names of the events, in order."""
    return [type(event).__name__ for event in events]


class Stuck:
    """A model that says one word and waits until it is let go; it knows whether it was stopped."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.stopped = asyncio.Event()

    async def __call__(self, request: ChatRequest) -> Say:
        self.asked.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return Say(text=["at ", "last"])


@tool(sensitive=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    return f"paid {amount}"


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def echo(request: ChatRequest) -> Say:
    """The last words of the user, in two chunks."""
    text = next(m.text for m in reversed(request.messages) if m.role == "user")
    half = len(text) // 2
    return Say(text=[text[:half] or "…", text[half:]])


def echoing(**options: Any) -> Agent:
    """An agent that says what it is told, and remembers."""
    model = Scripted(echo, repeat=True)
    return Agent(model, advisors=[Memory(InMemory())], name="echo", **options)


def paying() -> Agent:
    """An agent that asks before it pays, and remembers."""
    model = Scripted(call("pay", amount=5), "Done.")
    return Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(InMemory())], name="payer")
