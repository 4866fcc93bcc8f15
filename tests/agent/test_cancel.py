"""Cancelling, wherever the turn stands: it stops, keeps what came, and leaves nothing running."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, Message, ToolContext, tool
from retinue.advisors import Memory
from retinue.chains.events import TurnEnded
from retinue.errors import ModelRefused
from retinue.messages import TextDelta
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory
from retinue.tools import Concurrent, Engine, Sequential
from tests.agent.reading import quiet, read, within
from tests.agent.standstills import (
    STANDS,
    Stand,
    in_a_layer_after_the_answer,
    in_the_model,
    in_two_tools_of_which_one_is_done,
)
from tests.strict import check_transcript
from tests.virtual_time import virtual_time

SOON = 0.1
"""Seconds within which what runs must have seen the cancel."""


async def goes_on(agent: Agent, store: InMemory) -> list[Message]:
    """A next turn on the same log works, and a strict provider takes what it sends."""
    entries = await store.tail("c")
    model = Scripted("fine")
    later = agent.with_(model=model, advisors=agent.advisors[:1])
    assert (await within(later.run("and now?", conversation="c"))).text == "fine"
    check_transcript(model.requests[0].messages)
    return [entry.message for entry in entries]


@pytest.mark.rule("R-LOOP-8", "R-STREAM-1", "R-STREAM-5")
@pytest.mark.behaviour("B-ST-13", "B-LO-14")
@pytest.mark.parametrize("stand", STANDS)
async def test_a_turn_can_be_cancelled_wherever_it_stands(stand: Callable[[Memory], Stand]) -> None:
    store = InMemory()
    agent, there = stand(Memory(store))
    turn = agent.stream("q", conversation="c")
    reading = asyncio.create_task(read(turn))
    await within(there.wait())
    turn.cancel("No longer wanted.")
    events = await within(reading, SOON)
    result = await turn.result()
    assert (result.status, result.reason) == ("cancelled", "No longer wanted.")
    assert result.error is None
    assert isinstance(events[-1], TurnEnded)
    await quiet()
    check_transcript([m for m in result.messages if m.parts])
    await goes_on(agent, store)


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.parametrize("stand", STANDS)
async def test_a_cancelled_task_gets_its_cancellation_and_the_log_is_kept(
    stand: Callable[[Memory], Stand],
) -> None:
    store = InMemory()
    agent, there = stand(Memory(store))
    task = asyncio.create_task(agent.run("q", conversation="c"))
    await within(there.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task, SOON)
    assert task.cancelled()
    await quiet()
    await goes_on(agent, store)


@pytest.mark.rule("R-LOOP-3", "R-LOOP-8")
@pytest.mark.behaviour("B-LO-16")
@pytest.mark.parametrize("stand", STANDS)
@virtual_time
async def test_a_deadline_ends_a_turn_wherever_it_stands(stand: Callable[[Memory], Stand]) -> None:
    store = InMemory()
    agent, _ = stand(Memory(store))
    slow = agent.with_(limits=Limits(seconds=3))
    began = asyncio.get_running_loop().time()
    turn = slow.stream("q", conversation="c")
    events = await read(turn, 60)
    assert turn.outcome is not None
    assert turn.outcome.status == "limit"
    assert turn.outcome.reason == "The time limit of 3 seconds is reached."
    assert asyncio.get_running_loop().time() - began == pytest.approx(3)
    assert isinstance(events[-1], TurnEnded)
    await quiet()
    await goes_on(agent, store)


@pytest.mark.rule("R-LOOP-8", "R-STREAM-5")
async def test_what_came_of_an_answer_is_kept_marked_partial() -> None:
    store = InMemory()
    agent, there = in_the_model(Memory(store))
    turn = agent.stream("q", conversation="c")
    reading = asyncio.create_task(read(turn))
    await within(there.wait())
    turn.cancel()
    await reading
    assert turn.outcome is not None
    assert turn.outcome.message is not None
    assert (turn.outcome.text, turn.outcome.message.partial) == ("partial", True)
    assert (await goes_on(agent, store))[-1] == turn.outcome.messages[-1] == turn.outcome.message


@pytest.mark.rule("R-LOOP-8")
async def test_an_answer_that_a_layer_still_holds_is_kept_too() -> None:
    store = InMemory()
    agent, there = in_a_layer_after_the_answer(Memory(store))
    turn = agent.stream("q", conversation="c")
    reading = asyncio.create_task(read(turn))
    await within(there.wait())
    turn.cancel()
    await reading
    assert turn.outcome is not None
    assert turn.outcome.text == "answer"
    assert [m.text for m in await goes_on(agent, store)] == ["q", "answer"]


@pytest.mark.rule("R-LOOP-3", "R-LOOP-8")
@pytest.mark.behaviour("B-LO-16")
@pytest.mark.parametrize("seconds", [None, 2.0])
@virtual_time
async def test_results_that_were_there_are_kept_and_open_calls_are_closed(
    seconds: float | None,
) -> None:
    store = InMemory()
    agent, there = in_two_tools_of_which_one_is_done(Memory(store))
    turn = agent.with_(limits=Limits(seconds=seconds)).stream("q", conversation="c")
    reading = asyncio.create_task(read(turn, 60))
    await there.wait()
    if seconds is None:
        turn.cancel("Stop.")
    await reading
    why = "Stop." if seconds is None else "The time limit of 2 seconds is reached."
    messages = await goes_on(agent, store)
    results = [result for message in messages for result in message.tool_results]
    assert [(result.name, result.ok, result.text) for result in results] == [
        ("quick", True, "quick is done"),  # the log has them in the order in which they came
        ("slow", False, f"Not finished. {why}"),
    ]


@pytest.mark.rule("R-LOOP-8", "R-TOOL-9")
@pytest.mark.behaviour("B-LO-14")
@pytest.mark.parametrize("engine", [Concurrent, Sequential])
async def test_a_long_async_tool_sees_the_cancel_at_once(engine: Callable[[], Engine]) -> None:
    running, seen = asyncio.Event(), asyncio.Event()
    asked: list[ToolContext] = []

    @tool
    async def long(ctx: ToolContext) -> str:
        """Takes an hour."""
        asked.append(ctx)
        running.set()
        try:
            await asyncio.sleep(3600)
        finally:
            seen.set()
        return "done"

    agent = Agent(Scripted(call("long"), "next"), tools=[long], engine=engine())
    turn = agent.stream("q")
    result = asyncio.create_task(turn.result())
    await within(running.wait())
    turn.cancel()
    await within(seen.wait(), SOON)
    assert (await within(result, SOON)).status == "cancelled"
    assert asked[0].cancel.cancelled
    assert (await agent.run("again")).text == "next"


@pytest.mark.rule("R-LOOP-8", "R-TOOL-9")
async def test_a_sync_tool_is_given_up_and_can_see_that_it_was() -> None:
    running, stopped = threading.Event(), threading.Event()

    @tool
    def long(ctx: ToolContext) -> str:
        """Works until it is told to stop."""
        running.set()
        while not ctx.cancel.cancelled:
            pass
        stopped.set()
        return "too late"

    agent = Agent(Scripted(call("long")), tools=[long])
    turn = agent.stream("q")
    result = asyncio.create_task(turn.result())
    assert await asyncio.to_thread(running.wait, 5)
    turn.cancel()
    assert (await within(result, 1)).status == "cancelled"
    assert await asyncio.to_thread(stopped.wait, 5)
    await agent.close()


async def careless(request: Any, call_next: Any) -> Any:
    """Asks twice at once, and leaves the other call behind if one fails."""
    answers = [asyncio.ensure_future(call_next(request)) for _ in range(2)]
    return (await asyncio.gather(*answers))[0]


async def test_a_model_call_that_a_layer_leaves_behind_ends_with_the_turn() -> None:
    left = asyncio.Event()

    class Second(Scripted):
        async def generate(self, request: Any, send: Any) -> Any:
            if len(self.requests) == 0:
                await super().generate(request, send)
            try:
                while True:
                    await send(TextDelta("x"))
                    await asyncio.sleep(0)
            finally:
                left.set()

    store = InMemory()
    model = Second(ModelRefused("no"))
    agent = Agent(model, advisors=[Memory(store), Layer("l", chat=careless)])
    await read(agent.stream("q", conversation="c"))
    await within(left.wait(), SOON)
    await quiet()
    await goes_on(agent, store)


async def test_a_tool_that_a_layer_leaves_behind_writes_nothing_into_the_log() -> None:
    running, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Ends when it may."""
        running.set()
        await may_end.wait()
        return "too late"

    class Fails(Scripted):
        async def generate(self, request: Any, send: Any) -> Any:
            if len(self.requests) == 1:
                await running.wait()
            return await super().generate(request, send)

    store = InMemory()
    model = Fails(call("slow"), ModelRefused("no"))
    agent = Agent(model, tools=[slow], advisors=[Memory(store), Layer("l", round=careless)])
    await read(agent.stream("q", conversation="c"))
    before = await store.tail("c")
    may_end.set()
    await quiet()
    assert await store.tail("c") == before


@pytest.mark.rule("R-TOOL-11")
@pytest.mark.behaviour("B-LO-10")
@pytest.mark.parametrize("engine", [Concurrent, Sequential])
@pytest.mark.parametrize("streamed", [True, False])
async def test_the_caller_s_context_variables_are_seen_in_every_tool(
    engine: Callable[[], Engine], streamed: bool
) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    @tool
    async def in_a_task() -> str:
        """Says who asks."""
        return who.get()

    @tool
    def in_a_thread() -> str:
        """Says who asks."""
        return who.get()

    calls = [call("in_a_task"), call("in_a_thread")]
    agent = Agent(Scripted(calls, "done"), tools=[in_a_task, in_a_thread], engine=engine())
    who.set("ann")
    if streamed:
        turn = agent.stream("q")
        await read(turn)
        result = await turn.result()
    else:
        result = await agent.run("q")
    assert [r.text for m in result.messages for r in m.tool_results] == ["ann", "ann"]
    await agent.close()
