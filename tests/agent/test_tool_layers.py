"""Tools that layers add, remove and change, and what a tool knows of its turn."""

from typing import Any

import pytest

from retinue import Agent, Layer, ToolContext, tool
from retinue.models.scripted import Say, Scripted, call
from tests.agent.toolbox import look, told


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-17")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
async def test_a_tool_that_a_layer_adds_runs(hook: str) -> None:
    async def add(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(tools=(*request.tools, look)))

    hooks: dict[str, Any] = {hook: add}
    model = Scripted(call("look", at="it"), "done")
    result = await Agent(model, advisors=[Layer("add", **hooks)]).run("?")
    assert told(result) == [(True, "it is here")]
    assert [[one.name for one in r.tools] for r in model.requests] == [["look"]] * 2


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-17")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
async def test_a_tool_that_a_layer_removes_is_refused_with_the_valid_names(hook: str) -> None:
    async def remove(request: Any, call_next: Any) -> Any:
        kept = tuple(one for one in request.tools if one.name != "look")
        return await call_next(request.with_(tools=kept))

    hooks: dict[str, Any] = {hook: remove}
    model = Scripted(call("look", at="it"), "done")
    agent = Agent(
        model, tools=[look, look.with_(name="fetch")], advisors=[Layer("remove", **hooks)]
    )
    result = await agent.run("?")
    assert told(result) == [(False, "There is no tool 'look'. The tools are: fetch.")]


async def test_a_tool_layer_may_change_the_arguments_and_the_log_keeps_the_model_s() -> None:
    async def change(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(arguments={"at": "elsewhere"}))

    model = Scripted(call("look", at="it"), "done")
    result = await Agent(model, tools=[look], advisors=[Layer("change", tool=change)]).run("?")
    assert told(result) == [(True, "elsewhere is here")]
    assert result.messages[1].tool_calls[0].arguments == '{"at":"it"}'


async def test_a_tool_layer_may_lend_a_tool_to_a_name_that_has_none() -> None:
    async def lend(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(tool=look))

    model = Scripted(call("glance", at="it"), "done")
    result = await Agent(model, advisors=[Layer("lend", tool=lend)]).run("?")
    assert told(result) == [(True, "it is here")]


@pytest.mark.rule("R-TOOL-3")
async def test_a_tool_knows_the_turn_it_runs_in() -> None:
    seen: list[ToolContext] = []

    @tool
    def know(ctx: ToolContext) -> str:
        """Knows."""
        seen.append(ctx)
        return "known"

    one = call("know")
    agent = Agent(Scripted(one, "done"), tools=[know])
    result = await agent.run("?", conversation="c", owner="ada", data=[1], state={"a": 1})
    (ctx,) = seen
    loose: Any = ctx
    assert (ctx.call_id, ctx.turn_id, ctx.conversation, ctx.owner, ctx.data, ctx.state) == (
        one.id, result.id, "c", "ada", [1], {"a": 1},
    )  # fmt: skip
    assert ctx.idempotency_key == f"c:{result.id}:{one.id}"
    with pytest.raises(AttributeError):
        loose.data = None


@pytest.mark.rule("R-TOOL-5")
async def test_text_before_the_calls_and_many_calls_keep_their_order() -> None:
    calls = [call("look", at=str(n)) for n in range(30)]
    result = await Agent(Scripted(Say(text="look:", calls=calls), "ok"), tools=[look]).run("?")
    assert [r.call_id for m in result.messages for r in m.tool_results] == [c.id for c in calls]
    assert told(result) == [(True, f"{n} is here") for n in range(30)]
