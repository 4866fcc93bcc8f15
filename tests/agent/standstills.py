"""Where a turn can stand still: one agent for each place."""

import asyncio
from typing import Any

from retinue import Agent, Layer, Proceed, tool
from retinue.advisors import Memory
from retinue.errors import ModelOverloaded
from retinue.models import ModelRetry
from retinue.models.scripted import Say, Scripted, call
from tests.agent.slow_models import Stalled

Stand = tuple[Agent, asyncio.Event]
"""An agent whose turn stands still, and the event that says it does."""


def in_the_model(memory: Memory) -> Stand:
    model = Stalled("par", "tial")
    return Agent(model, advisors=[memory]), model.reached


def in_an_async_tool(memory: Memory) -> Stand:
    running = asyncio.Event()

    @tool
    async def slow() -> str:
        """Never ends."""
        running.set()
        return await asyncio.Future()

    return Agent(Scripted(call("slow")), tools=[slow], advisors=[memory]), running


def in_two_tools_of_which_one_is_done(memory: Memory) -> Stand:
    running, done = asyncio.Event(), asyncio.Event()

    @tool
    async def quick() -> str:
        """Ends at once."""
        done.set()
        return "quick is done"

    @tool
    async def slow() -> str:
        """Never ends."""
        await done.wait()
        running.set()
        return await asyncio.Future()

    calls = Say(text="let me see", calls=[call("slow"), call("quick")])
    return Agent(Scripted(calls), tools=[quick, slow], advisors=[memory]), running


def in_the_gate(memory: Memory) -> Stand:
    asked = asyncio.Event()

    async def gate(request: Any) -> Proceed:
        asked.set()
        return await asyncio.Future()

    @tool
    async def sensitive() -> str:
        """Must not run."""
        raise AssertionError("ran without a decision")

    model = Scripted(call("sensitive"))
    return Agent(model, tools=[sensitive], gate=gate, advisors=[memory]), asked


def between_two_rounds(memory: Memory) -> Stand:
    there = asyncio.Event()

    async def waits(request: Any, call_next: Any) -> Any:
        if request.round == 2:
            there.set()
            await asyncio.Future()
        return await call_next(request)

    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    model = Scripted(Say(text="hm", calls=[call("look")]), "never")
    return Agent(model, tools=[look], advisors=[memory, Layer("l", round=waits)]), there


def in_a_layer_after_the_answer(memory: Memory) -> Stand:
    there = asyncio.Event()

    async def waits(request: Any, call_next: Any) -> Any:
        answer = await call_next(request)
        there.set()
        await asyncio.Future()
        return answer

    return Agent(Scripted("answer"), advisors=[memory, Layer("l", chat=waits)]), there


def in_a_layer_before_the_loop(memory: Memory) -> Stand:
    there = asyncio.Event()

    async def waits(request: Any, call_next: Any) -> Any:
        there.set()
        return await asyncio.Future()

    return Agent(Scripted("never"), advisors=[memory, Layer("l", turn=waits)]), there


def in_a_flush(memory: Memory) -> Stand:
    there = asyncio.Event()

    class Moderated:
        def feed(self, delta: Any) -> tuple[Any]:
            return (delta,)

        async def flush(self) -> Any:
            there.set()
            return await asyncio.Future()

    layer = Layer("l", stream=lambda request: Moderated())
    return Agent(Scripted("answer"), advisors=[memory, layer]), there


def before_a_retry(memory: Memory) -> Stand:
    there = asyncio.Event()

    def busy(request: Any) -> Any:
        there.set()
        return ModelOverloaded("busy", retry_after=1000.0)

    agent = Agent(Scripted(busy), advisors=[memory], retry=ModelRetry(cap=2000.0))
    return agent, there


STANDS = [
    in_the_model,
    in_an_async_tool,
    in_two_tools_of_which_one_is_done,
    in_the_gate,
    between_two_rounds,
    in_a_layer_after_the_answer,
    in_a_layer_before_the_loop,
    in_a_flush,
    before_a_retry,
]
