"""Batches of calls: their order, the time they take, and direct answers."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from retinue import Agent, Slot, ToolContext, ToolReturn, tool
from retinue.chains.events import TurnEnded
from retinue.messages import ToolCall
from retinue.models.scripted import Scripted, call
from retinue.tools import Concurrent, Sequential, ThreadPool
from tests.agent.log import Log
from tests.agent.toolbox import look, told
from tests.strict import check_transcript
from tests.virtual_time import virtual_time


@pytest.mark.rule("R-TOOL-5", "R-TOOL-8")
@pytest.mark.behaviour("B-LO-8")
@pytest.mark.parametrize("serial", [False, True])
@virtual_time
async def test_four_calls_of_a_second_take_a_second_and_with_a_serial_one_four(
    serial: bool,
) -> None:
    order: list[str] = []

    async def body(name: str, seconds: float) -> str:
        order.append(f"+{name}")
        await asyncio.sleep(seconds)
        order.append(f"-{name}")
        return name

    free = tool(name="free", description="Waits.")(body)
    alone = tool(name="alone", description="Waits.", serial=True)(body)
    calls = [call("free", name=n, seconds=s) for n, s in (("a", 1.0), ("b", 0.9), ("c", 0.8))]
    calls.append(call("alone" if serial else "free", name="d", seconds=0.7))
    result = await Agent(Scripted(calls, "done"), tools=[free, alone]).run("?")
    took = asyncio.get_running_loop().time()
    assert [text for _, text in told(result)] == ["a", "b", "c", "d"]
    if serial:
        assert took == pytest.approx(3.4)
        assert order == ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "-d"]
    else:
        assert took == pytest.approx(1.0)
        assert order == ["+a", "+b", "+c", "+d", "-d", "-c", "-b", "-a"]


@pytest.mark.rule("R-TOOL-8", "R-TOOL-4")
async def test_a_serial_batch_still_sees_one_snapshot_of_the_state() -> None:
    @tool(serial=True)
    def add(ctx: ToolContext) -> ToolReturn:
        """Adds."""
        return ToolReturn(ctx.state["n"], {"n": ctx.state["n"] + 1})

    agent = Agent(Scripted([call("add"), call("add")], "ok"), tools=[add], slots=[Slot("n")])
    result = await agent.run("?", state={"n": 0})
    assert told(result) == [(True, "0"), (True, "0")]
    assert result.state == {"n": 1}


who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


@pytest.mark.rule("R-TOOL-11")
@pytest.mark.behaviour("B-LO-10")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("engine", [Concurrent, Sequential, lambda: ThreadPool(2)])
async def test_context_variables_of_the_caller_are_visible_in_every_tool(
    engine: Any, streamed: bool
) -> None:
    @tool
    async def asynchronous() -> str:
        """Says who."""
        return who.get()

    @tool
    def synchronous() -> str:
        """Says who, from another thread."""
        assert threading.current_thread() is not threading.main_thread()
        return who.get()

    model = Scripted([call("asynchronous"), call("synchronous")], "done")
    agent = Agent(model, tools=[asynchronous, synchronous], engine=engine())
    token = who.set("ada")
    try:
        result = await (agent.stream("?").result() if streamed else agent.run("?"))
    finally:
        who.reset(token)
    assert told(result) == [(True, "ada"), (True, "ada")]
    await agent.close()


@tool(return_direct=True)
def fetch(what: str) -> str:
    """Fetches."""
    if what == "trouble":
        raise ValueError("no such thing")
    return f"<{what}>"


@pytest.mark.rule("R-TOOL-7", "R-LOOP-2")
@pytest.mark.behaviour("B-LO-12")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("whats", [["a"], ["a", "b", "c"]])
async def test_results_of_direct_tools_are_the_answer_and_the_model_is_not_asked_again(
    whats: list[str], streamed: bool
) -> None:
    log = Log()
    model = Scripted([call("fetch", what=what) for what in whats], "it was a")
    agent = Agent(model, tools=[fetch], advisors=[log])
    if streamed:
        events = [event async for event in agent.stream("?")]
        end = events[-1]
        assert isinstance(end, TurnEnded)
        text = end.text
    else:
        text = (await agent.run("?")).text
    assert text == "\n".join(f"<{what}>" for what in whats)
    assert len(model.requests) == 1
    assert [m.role for m in log.valid] == ["user", "assistant", *["tool"] * len(whats)]
    result = await agent.run("what was it?")
    assert result.text == "it was a"
    check_transcript(model.requests[1].messages)
    assert [m.text for m in model.requests[1].messages if m.role == "user"] == [
        "?",
        "what was it?",
    ]


@pytest.mark.rule("R-TOOL-7")
@pytest.mark.behaviour("B-LO-12")
@pytest.mark.parametrize(
    "calls",
    [
        [call("fetch", what="a"), call("look", at="b")],
        [call("look", at="b"), call("fetch", what="a")],
        [call("fetch", what="a"), call("fetch", what="trouble")],
        [call("fetch", what="a"), call("no_such_tool")],
    ],
    ids=["mixed", "mixed the other way", "one failing", "one invented"],
)
async def test_a_batch_that_is_not_wholly_direct_goes_back_to_the_model(
    calls: list[ToolCall],
) -> None:
    model = Scripted(calls, "the model's words")
    result = await Agent(model, tools=[fetch, look]).run("?")
    assert result.text == "the model's words"
    assert len(model.requests) == 2
    check_transcript(result.messages)


@pytest.mark.rule("R-TOOL-7", "R-TOOL-4")
async def test_a_direct_answer_keeps_its_writes() -> None:
    @tool(return_direct=True)
    def save() -> ToolReturn:
        """Saves."""
        return ToolReturn("saved", {"saved": True})

    result = await Agent(Scripted(call("save")), tools=[save]).run("?")
    assert (result.text, result.state) == ("saved", {"saved": True})
