"""What layers, transforms and callers do wrong is told at once, with their name."""

from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, TurnResponse, Usage, assistant, user
from retinue.chains.events import ToolArguments, ToolStarted
from retinue.messages import ThinkingDelta, ToolCall
from retinue.models import Say, Scripted, call
from tests.agent.reading import read
from tests.agent.toolbox import look


class Gives:
    """A transform that gives whatever it is told to."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def feed(self, delta: Any) -> Any:
        return self.what

    def flush(self) -> Any:
        return ()


@pytest.mark.rule("R-STREAM-2", "R-FAIL-3")
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("HELLO", "The transform Gives gave str"),
        (None, "The transform Gives gave NoneType"),
        (ThinkingDelta("hm"), "The transform Gives gave ThinkingDelta"),
        (["HELLO"], "'HELLO' is no delta"),
        (("HELLO",), "'HELLO' is no delta"),
    ],
)
async def test_a_transform_that_gives_no_deltas_is_told_so(what: Any, told: str) -> None:
    agent = Agent(Scripted("hi"), advisors=[Layer("loud", stream=lambda _: Gives(what))])
    with pytest.raises(ConfigError, match=told):
        await agent.run("?")


@pytest.mark.rule("R-STREAM-2", "R-FAIL-3")
async def test_a_stream_hook_that_gives_no_transform_is_named() -> None:
    wrong: Any = lambda _: "no transform"  # noqa: E731
    with pytest.raises(ConfigError, match="stream hook of loud gave str"):
        await Agent(Scripted("hi"), advisors=[Layer("loud", stream=wrong)]).run("?")


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    "change",
    [
        {"instructions": "Be brief"},
        {"messages": ["hi"]},
        {"tools": [print]},
        {"messages": user("hi")},
    ],
)
async def test_a_request_takes_no_field_of_a_wrong_kind(change: dict[str, Any]) -> None:
    async def meddle(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(**change))

    with pytest.raises(ConfigError, match=rf"with_\({next(iter(change))}=.*give a list of"):
        await Agent(Scripted("hi"), advisors=[Layer("meddle", chat=meddle)]).run("?")


async def test_a_list_does_for_a_field_that_holds_several_things() -> None:
    async def brief(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(instructions=[*request.instructions, "Be brief."]))

    model = Scripted("hi")
    await Agent(model, instructions="Be kind.", advisors=[Layer("brief", chat=brief)]).run("?")
    assert model.requests[0].instructions == ("Be kind.", "Be brief.")


@pytest.mark.rule("R-ONION-1", "R-FAIL-3")
async def test_a_layer_that_returns_a_response_of_another_hook_is_named() -> None:
    async def mixed(request: Any, call_next: Any) -> Any:
        return TurnResponse(id="1", message=assistant("hi"))

    with pytest.raises(ConfigError, match="mixed returned TurnResponse, not ChatResponse"):
        await Agent(Scripted("hi"), advisors=[Layer("mixed", chat=mixed)]).run("?")


@pytest.mark.rule("R-LOOP-5")
async def test_a_layer_asks_again_after_what_an_inner_layer_answered() -> None:
    async def cache(request: Any, call_next: Any) -> Any:
        return request.respond("kept") if not request.reentry else await call_next(request)

    async def insist(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Say more."))

    model = Scripted("more")
    advisors = [Layer("insist", turn=insist), Layer("cache", turn=cache)]
    assert (await Agent(model, advisors=advisors).run("?")).text == "more"
    assert [m.text for m in model.requests[0].messages] == ["?", "kept", "Say more."]


@pytest.mark.rule("R-LOOP-5")
async def test_a_layer_asks_again_after_what_an_inner_layer_made_of_the_answer() -> None:
    async def hide(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=assistant("hidden"))

    async def insist(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Say more."))

    model = Scripted("secret", "more")
    advisors = [Layer("insist", turn=insist), Layer("hide", turn=hide)]
    await Agent(model, advisors=advisors).run("?")
    assert [m.text for m in model.requests[1].messages] == ["?", "hidden", "Say more."]


@pytest.mark.rule("R-TOOL-5")
async def test_a_call_id_that_a_provider_uses_again_becomes_another_one() -> None:
    again = ToolCall("call_0", "look", '{"at": "it"}')
    model = Scripted(again, again, "done")
    turn = Agent(model, tools=[look]).stream("?")
    events = await read(turn)
    started = [event.call_id for event in events if isinstance(event, ToolStarted)]
    written = [event.call_id for event in events if isinstance(event, ToolArguments)]
    assert started[0] == "call_0"
    assert len(set(started)) == 2
    assert started == written
    sent = model.requests[2].messages
    assert [r.call_id for m in sent for r in m.tool_results] == started


@pytest.mark.rule("R-LOOP-3")
async def test_a_budget_of_tokens_holds_where_nobody_reports_them() -> None:
    model = Scripted(call("look", at="x" * 4000), repeat=True)
    result = await Agent(model, tools=[look], limits=Limits(tokens=2500, repeats=None)).run("?")
    assert (result.status, result.reason) == ("limit", "The budget of 2500 tokens is used up.")
    assert len(model.requests) <= 3


@pytest.mark.rule("R-TOOL-12", "R-LOOP-3")
async def test_a_parent_s_budget_binds_its_sub_agents() -> None:
    child = Agent(
        Scripted(Say(calls=[call("look", at="it")], usage=Usage(input=90)), repeat=True),
        tools=[look],
        name="child",
    )
    parent = Agent(
        Scripted(Say(calls=[call("child", task="go")], usage=Usage(input=50)), repeat=True),
        tools=[child.as_tool()],
        limits=Limits(tokens=100),
    )
    result = await parent.run("?")
    assert result.status == "limit"
    assert result.usage.total == 140


@pytest.mark.rule("R-LOOP-3")
def test_a_limit_to_the_cost_of_what_has_no_price_is_refused() -> None:
    with pytest.raises(ConfigError, match="no price of scripted:script is known"):
        Agent(Scripted(), limits=Limits(cost=1))


async def test_events_that_were_dropped_for_the_result_are_not_read_afterwards() -> None:
    turn = Agent(Scripted("hi")).stream("?")
    await turn.result()
    with pytest.raises(ConfigError, match="dropped when result"):
        await anext(aiter(turn))
