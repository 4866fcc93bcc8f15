"""What a turn has and has used goes on over a pause (R-LOOP-3, R-LOOP-5)."""

from typing import Any

import pytest

from retinue import Agent, Approve, Layer, Limits, Slot, ToolReturn, Usage, tool
from retinue.models.scripted import Say, Scripted, call
from tests.agent.till import Till, asking, later
from tests.agent.toolbox import told


async def test_state_context_usage_and_rounds_go_on_after_a_pause() -> None:
    @tool(sensitive=True)
    def note(text: str) -> ToolReturn:
        """Notes."""
        return ToolReturn("noted", writes={"notes": [text]})

    seen: list[Any] = []

    async def look(request: Any, call_next: Any) -> Any:
        seen.append((dict(request.state), dict(request.context), request.round))
        return await call_next(request)

    agent = Agent(
        Scripted(call("note", text="a"), call("note", text="b"), "done"),
        tools=[note],
        gate="sensitive",
        slots=[Slot("notes", reducer=lambda old, new: old + new, default=[])],
        advisors=[Layer("look", chat=look)],
    )
    result = await agent.run("Note.", context={"who": "ada", "lives": object()})
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    result = await agent.resume(
        later(result), {result.pending[0].id: Approve()}, context={"extra": 1}
    )
    assert result.text == "done"
    assert result.state["notes"] == ["a", "b"]
    assert result.rounds == 3
    assert [(state["notes"], number) for state, _, number in seen] == [
        ([], 1), (["a"], 2), (["a", "b"], 3),
    ]  # fmt: skip
    assert seen[2][1] == {"who": "ada", "extra": 1}


async def test_the_limit_of_rounds_counts_over_a_pause() -> None:
    till = Till()
    model = Scripted(call("pay", amount=1), call("pay", amount=2), repeat=True)
    agent = asking(model, till, limits=Limits(rounds=2))
    result = await agent.run("Pay.")
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert result.status == "paused"
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert (result.status, till.did) == ("limit", ["pay 1"])
    assert [ok for ok, _ in told(result)] == [True, False]


@pytest.mark.rule("R-LOOP-3", "R-LOOP-5")
async def test_a_budget_of_tokens_counts_over_a_pause_also_where_they_are_estimated() -> None:
    till = Till()
    script = [call("pay", amount=1), call("pay", amount=2), "never"]
    agent = asking(Scripted(*script), till, limits=Limits(tokens=1_500))
    result = await agent.run("x" * 4_000)  # about 1,000 tokens a round
    while result.status == "paused":
        result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert (result.status, till.did) == ("limit", ["pay 1"])
    assert result.reason is not None
    assert "1500 tokens" in result.reason


@pytest.mark.rule("R-LOOP-5", "R-TOOL-12")
async def test_a_sub_agents_budget_counts_over_a_pause_and_its_parent_is_charged_once() -> None:
    till = Till()
    used = Usage(input=40, output=10)
    inner = Scripted(*(Say(calls=[call("pay", amount=n)], usage=used) for n in (1, 2)), "never")
    child = asking(inner, till, name="child", limits=Limits(tokens=100))
    outer = Scripted(Say(calls=[call("child", task="Pay.")], usage=used), "done")
    parent = Agent(outer, tools=[child.as_tool()], limits=Limits(tokens=500))
    result = await parent.run("Go.")
    while result.status == "paused":
        result = await parent.resume(later(result), {result.pending[0].id: Approve()})
    assert till.did == ["pay 1"]
    assert (len(inner.requests), result.usage.total) == (2, 150)
    (told_of,) = told(result)
    assert "100 tokens" in told_of[1]
