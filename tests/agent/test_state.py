"""State in a turn: one snapshot for a batch, writes folded in call order."""

import asyncio
import random
from typing import Any

import pytest

from retinue import Agent, Layer, Slot, ToolContext, ToolReturn, tool
from retinue.models.scripted import Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import told
from tests.strict import check_transcript
from tests.virtual_time import virtual_time


def appended(old: Any, new: Any) -> list[Any]:
    return [*(old or []), new]


@tool
async def write(value: int, ctx: ToolContext) -> ToolReturn:
    """Writes its value, after a random while."""
    await asyncio.sleep(random.random())
    return ToolReturn(f"saw {ctx.state.get('slot')}", {"slot": value})


@pytest.mark.rule("R-TOOL-4")
@pytest.mark.behaviour("B-LO-9")
@pytest.mark.parametrize("reduced", [True, False])
@virtual_time
async def test_writers_of_one_slot_give_the_same_state_whoever_is_faster(reduced: bool) -> None:
    slot = Slot("slot", reducer=appended if reduced else None, default=[])
    model = Scripted([call("write", value=n) for n in range(5)], "done")
    for _ in range(100):
        model.requests.clear()
        result = await Agent(model, tools=[write], slots=[slot]).run("?")
        assert result.state == {"slot": [0, 1, 2, 3, 4] if reduced else 4}
        assert told(result) == [(True, "saw []")] * 5


@pytest.mark.rule("R-TOOL-4")
async def test_two_writers_of_an_undeclared_slot_are_warned_about() -> None:
    @tool
    def put(value: int) -> ToolReturn:
        """Puts."""
        return ToolReturn(value, {"loose": value})

    model = Scripted([call("put", value=1), call("put", value=2)], call("put", value=3), "done")
    with pytest.warns(UserWarning, match="'loose', which is not declared") as caught:
        result = await Agent(model, tools=[put]).run("?")
    assert len(caught) == 1
    assert result.state == {"loose": 3}


@pytest.mark.rule("R-TOOL-4")
async def test_the_next_round_sees_what_was_written_and_so_do_layers_and_the_caller() -> None:
    seen: list[Any] = []

    async def read(request: Any, call_next: Any) -> Any:
        seen.append(request.state["count"])
        return await call_next(request)

    @tool
    def add(ctx: ToolContext) -> ToolReturn:
        """Adds."""
        return ToolReturn("ok", {"count": ctx.state["count"] + 1})

    model = Scripted(call("add"), call("add"), "done")
    layers = [Layer("read", chat=read)]
    agent = Agent(model, tools=[add], slots=[Slot("count", default=0)], advisors=layers)
    assert (await agent.run("?", state={"count": 5})).state == {"count": 7}
    assert seen == [5, 6, 7]
    model.requests.clear()
    assert (await agent.run("?")).state == {"count": 2}


@pytest.mark.rule("R-TOOL-4")
async def test_only_calls_that_went_well_write() -> None:
    @tool
    def put(name: str) -> ToolReturn:
        """Puts."""
        if name == "failed":
            raise ValueError("no")
        return ToolReturn(name, {"names": name})

    @tool(timeout=0.05)
    async def late() -> ToolReturn:
        """Comes too late."""
        await asyncio.sleep(60)
        return ToolReturn("late", {"names": "late"})

    async def spoil(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        if request.arguments.get("name") == "refused afterwards":
            return request.refuse("no").with_(writes=response.writes)
        return response

    names = ["good", "failed", "refused afterwards", "better"]
    model = Scripted([*(call("put", name=name) for name in names), call("late")], "done")
    agent = Agent(
        model,
        tools=[put, late],
        slots=[Slot("names", reducer=appended)],
        advisors=[Layer("spoil", tool=spoil)],
    )
    result = await agent.run("?")
    assert result.state == {"names": ["good", "better"]}
    assert [ok for ok, _ in told(result)] == [True, False, False, True, False]


@pytest.mark.rule("R-TOOL-4", "R-FAIL-3")
async def test_a_reducer_that_raises_is_the_caller_s_error_and_keeps_the_results() -> None:
    def broken(old: Any, new: Any) -> Any:
        raise ArithmeticError("cannot fold")

    @tool
    def put() -> ToolReturn:
        """Puts."""
        return ToolReturn("put it", {"slot": 1})

    log = Log()
    agent = Agent(
        Scripted(call("put")), tools=[put], slots=[Slot("slot", reducer=broken)], advisors=[log]
    )
    with pytest.raises(ArithmeticError, match="cannot fold"):
        await agent.run("?")
    assert log.valid[-1].tool_results[0].text == "put it"
    check_transcript(log.valid)
