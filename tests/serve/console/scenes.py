"""Agents that the console is shown with."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.chains import CallNext, ChatRequest, Layer, TurnRequest, TurnResponse
from retinue.messages import FinishDelta, TextDelta, Usage
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory, Store

USED: Final = Usage(input=1200, output=80, cache_read=1000)


class Held:
    """A model that says its first words, waits for `go`, and says the rest.

    Args:
        before, after: the chunks on either side of the wait.

    Attributes:
        said: the first words are said.
        go: let it go on.
        stopped: it was cancelled while it waited.
    """

    name = "held"
    provider = "scripted"
    capabilities = UNKNOWN

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        self.said = asyncio.Event()
        self.go = asyncio.Event()
        self.stopped = asyncio.Event()
        self._before = before
        self._after = after

    async def generate(self, request: ChatRequest, send: Send) -> None:
        """Says what it has to say."""
        for chunk in self._before:
            await send(TextDelta(chunk))
        self.said.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        for chunk in self._after:
            await send(TextDelta(chunk))
        await send(FinishDelta("stop"))

    async def close(self) -> None:
        """Nothing is held."""

    def agent(self) -> Agent:
        """An agent with this model, which remembers."""
        return Agent(self, advisors=[Memory(InMemory())], name="speaker")


@tool(sensitive=True)
def pay(amount: int, to: str) -> str:
    """Pays an amount to somebody."""
    return f"paid {amount} to {to}"


@tool
def weather(city: str) -> dict[str, str]:
    """The weather in a city."""
    return {"city": city, "sky": "rain"}


async def _guard(
    request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
) -> TurnResponse:
    return await call_next(request)


def adviser(store: Store | None = None) -> Agent:
    """An agent that looks at the weather, thinks, and has layers."""
    looking = Say(
        thinking="Oslo is meant, the one in Norway.",
        text="Let me look.",
        calls=[call("weather", city="Oslo")],
        usage=USED,
    )
    answer = Say(text=["It will ", "**rain** in ", "Oslo."], usage=USED)
    return Agent(
        Scripted(looking, answer, "You are welcome.", name="gpt-5-mini", provider="openai"),
        tools=[weather],
        advisors=[Layer("Guard", turn=_guard), Memory(store or InMemory())],
        name="adviser",
    )


def payer(*steps: Any, store: Store | None = None) -> Agent:
    """An agent that asks before it pays."""
    script = steps or (call("pay", amount=5, to="Ann"), "It is done.")
    return Agent(
        Scripted(*script),
        tools=[pay],
        gate="sensitive",
        advisors=[Memory(store or InMemory())],
        name="payer",
    )


def saying(*steps: Any, store: Store | None = None) -> Agent:
    """An agent that says what the script says, and remembers."""
    return Agent(Scripted(*steps), advisors=[Memory(store or InMemory())], name="speaker")
