"""`ToolSearch` with found tools shown in the search's result, and called through one tool."""

from typing import Any

import pytest

from bench.headline.caching import many_tools
from retinue import Agent, Layer, Proceed, Reject, events
from retinue.messages import TextDelta, ToolCall
from retinue.models.scripted import Say, Scripted, call
from tests.advisors.searching import EMAIL, FIND, WEATHER, agent, search, shown
from tests.advisors.talking import WAYS, Way, by_parent, sent, strictly


@pytest.mark.parametrize("way", [*WAYS, by_parent])
async def test_a_tool_shown_in_a_result_is_called_through_one_tool_that_never_changes(
    way: Way,
) -> None:
    wrapped = call("call_tool", name="get_weather", arguments={"city": "Oslo"})
    chat, model = agent(WEATHER, wrapped, "done", reveal="result")
    result = await way(chat, "?")
    assert result.text == "done"
    assert [shown(model, at) for at in range(3)] == [[FIND, "call_tool"]] * 3
    assert '"parameters":{"type":"object"' in sent(model)[2]
    strictly(model)
    (again,) = model.requests[-1].messages[-2].tool_calls
    assert (again.name, again.arguments) == (wrapped.name, wrapped.arguments)


@pytest.mark.rule("R-STREAM-3", "R-HITL-1")
async def test_gate_layers_events_and_log_see_the_real_call() -> None:
    seen: list[Any] = []

    def gate(request: Any) -> Any:
        seen.append(("gate", request.call.name, request.arguments))
        return Reject("not today") if request.call.name == "sendEmail" else Proceed()

    async def watch(request: Any, call_next: Any) -> Any:
        seen.append(("tool", request.call.name, request.arguments))
        return await call_next(request)

    steps = [
        [WEATHER, EMAIL],
        [
            call("call_tool", name="get_weather", arguments={"city": "Oslo"}),
            call("call_tool", name="sendEmail", arguments={"city": "Rome"}),
        ],
        "done",
    ]
    model = Scripted(*steps)
    chat = Agent(
        model,
        tools=many_tools(20),
        advisors=[search(reveal="result"), Layer("watch", tool=watch)],
        gate=gate,
    )
    turn = chat.stream("?")
    started = [e.name async for e in turn if isinstance(e, events.ToolStarted)]
    result = await turn.result()
    assert started == [FIND, FIND, "get_weather"]
    asked = {"city": "Oslo"}
    assert ("gate", "sendEmail", {"city": "Rome"}) in seen
    assert ("tool", "get_weather", asked) in seen
    assert [c.name for m in result.messages for c in m.tool_calls][2:] == [
        "get_weather", "sendEmail",
    ]  # fmt: skip
    assert "not today" in sent(model)[-1]


@pytest.mark.rule("R-STREAM-3")
async def test_the_log_keeps_what_the_model_said_beside_a_call_that_is_read() -> None:
    class Loud:
        delivery_only = True

        def feed(self, delta: Any) -> Any:
            return (TextDelta(delta.text.upper()) if isinstance(delta, TextDelta) else delta,)

        def flush(self) -> Any:
            return ()

    wrapped = call("call_tool", name="get_weather", arguments={})
    model = Scripted(WEATHER, Say(text="I look.", calls=[wrapped]), "done")
    layers = [search(reveal="result"), Layer("loud", stream=lambda _: Loud())]
    result = await Agent(model, tools=many_tools(20), advisors=layers).run("?")
    spoken = next(m for m in result.messages if m.text.lower() == "i look.")
    assert spoken.text == "I look."
    assert spoken.tool_calls[0].name == "get_weather"


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('{"name":"get_weather","arguments":{"city":1}}', "city"),
        ('{"name":"get_weather","arguments":"{\\"city\\":\\"Oslo\\"}"}', "ran for Oslo"),
        ('{"name":"get_weather","city":"Oslo"}', "ran for Oslo"),
        ('{"name":"get_weather"}', "ran for Oslo"),
        ('{"name":"no_such_tool","arguments":{}}', "'no_such_tool'"),
        ('{"name":"call_tool","arguments":{}}', "search_tools has found"),
        ('{"name":"get_weather","arguments":[1]}', "arguments"),
        ('{"name":"get_wea', "no valid JSON"),
        ('{"arguments":{}}', "name"),
    ],
)
async def test_however_a_call_is_written_the_model_gets_a_result_it_can_act_on(
    written: str, told: str
) -> None:
    odd = ToolCall("odd", "call_tool", written)
    chat, model = agent(WEATHER, odd, "done", reveal="result")
    result = await chat.run("?")
    assert result.status == "completed"
    assert told in sent(model)[-1]
    strictly(model)


async def test_a_definition_that_the_model_has_is_not_sent_again() -> None:
    chat, model = agent(WEATHER, call(FIND, query="weather again"), "done", reveal="result")
    await chat.run("?")
    first, second = sent(model)[2], sent(model)[4]
    assert '"parameters"' in first
    assert '"parameters"' not in second
    assert '"get_weather"' in second
