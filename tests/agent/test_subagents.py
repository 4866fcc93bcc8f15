"""Agents as tools of agents: what is shared, what is not, and how trouble travels."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, ToolContext, Usage, tool
from retinue.chains.events import Event, TextChunk, ToolStarted, TurnEnded, TurnStarted, final_text
from retinue.errors import ModelRefused
from retinue.models.scripted import Say, Scripted, call
from retinue.tools import Sequential
from tests.agent.log import Log
from tests.agent.toolbox import look, told
from tests.strict import check_transcript
from tests.virtual_time import virtual_time


def child(*steps: Any, **options: Any) -> Agent:
    return Agent(Scripted(*steps), name="child", **options)


@pytest.mark.rule("R-TOOL-12")
async def test_a_sub_agent_gets_its_task_alone_and_gives_its_answer() -> None:
    seen: list[ToolContext] = []

    @tool
    def know(ctx: ToolContext) -> str:
        """Knows."""
        seen.append(ctx)
        return "known"

    inner = Scripted(call("know"), "forty-two")
    helper = Agent(inner, name="child", tools=[know], instructions="Be exact.")
    model = Scripted(call("child", task="count"), "it is forty-two")
    agent = Agent(model, tools=[helper.as_tool(data="the child's own")], instructions="Be kind.")
    result = await agent.run(
        "how many?", conversation="c", owner="ada", data="secret", state={"a": 1}, context={"b": 2}
    )
    assert result.text == "it is forty-two"
    assert told(result) == [(True, "forty-two")]
    (asked, _) = inner.requests
    assert [m.text for m in asked.messages] == ["count"]
    assert asked.instructions == ("Be exact.",)
    (ctx,) = seen
    assert (ctx.data, dict(ctx.state), dict(ctx.context)) == ("the child's own", {}, {})
    assert (ctx.conversation, ctx.owner) == (None, None)


@pytest.mark.rule("R-TOOL-12")
def test_a_sub_agent_is_named_and_described_for_the_model() -> None:
    spec = child("x").as_tool().spec
    assert (spec.name, spec.description) == ("child", "Gives a task to child.")
    assert list(spec.parameters["properties"]) == ["task"]
    other = child("x").as_tool("counter", "Counts things.").spec
    assert (other.name, other.description) == ("counter", "Counts things.")
    with pytest.raises(ConfigError, match="my child"):
        Agent(Scripted(), tools=[Agent(Scripted(), name="my child").as_tool()])


@pytest.mark.rule("R-TOOL-12", "R-USAGE-2")
async def test_what_a_sub_agent_uses_is_added_to_the_parent_s_account() -> None:
    grandchild = Agent(Scripted(Say(text="g", usage=Usage(input=1, output=1))), name="grandchild")
    helper = child(
        Say(calls=[call("grandchild", task="t")], usage=Usage(input=10, output=1)),
        Say(text="c", usage=Usage(input=20, output=1)),
        tools=[grandchild.as_tool()],
    )
    model = Scripted(
        Say(calls=[call("child", task="t")], usage=Usage(input=100, output=1)),
        Say(text="p", usage=Usage(input=200, output=1)),
    )
    result = await Agent(model, tools=[helper.as_tool()]).run("?")
    assert result.usage == Usage(input=331, output=5)
    assert sorted(one.usage.input or 0 for one in result.spent) == [1, 10, 20, 100, 200]


@pytest.mark.rule("R-TOOL-12", "R-USAGE-2")
async def test_what_a_failing_sub_agent_used_is_added_too() -> None:
    helper = child(
        Say(calls=[call("look", at="x")], usage=Usage(input=10, output=1)),
        ModelRefused("no such model"),
        tools=[look],
    )
    model = Scripted(call("child", task="t"), "it failed")
    result = await Agent(model, tools=[helper.as_tool()]).run("?")
    ((ok, text),) = told(result)
    assert not ok
    assert "no such model" in text
    assert result.text == "it failed"
    assert result.usage == Usage(input=10, output=1)


@pytest.mark.rule("R-TOOL-12", "R-STREAM-1")
@pytest.mark.parametrize("count", [1, 2])
async def test_events_of_a_sub_agent_are_nested_under_its_call(count: int) -> None:
    grandchild = Agent(Scripted("deep", repeat=True), name="grandchild")
    inner = call("grandchild", task="t")
    helper = Agent(
        Scripted(lambda r: inner if len(r.messages) == 1 else "mid", repeat=True),
        name="child",
        tools=[grandchild.as_tool()],
    )
    calls = [call("child", task=str(n)) for n in range(count)]
    agent = Agent(Scripted(calls, "top"), tools=[helper.as_tool()])
    turn = agent.stream("?")
    events: list[Event] = [event async for event in turn]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    texts = {(e.path, e.text) for e in events if isinstance(e, TextChunk)}
    assert texts == {
        ((), "top"),
        *(((one.id,), "mid") for one in calls),
        *(((one.id, inner.id), "deep") for one in calls),
    }
    assert sum(isinstance(e, TurnStarted) for e in events) == 1
    assert sum(isinstance(e, TurnEnded) for e in events) == 1
    nested = [e for e in events if isinstance(e, ToolStarted) and e.name == "grandchild"]
    assert [e.path for e in nested] == [(one.id,) for one in calls]
    assert final_text(events) == "top"


@pytest.mark.rule("R-TOOL-12")
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"limits": Limits(rounds=1), "tools": [look]},
            "child ended as limit: The limit of 1 round is reached.",
        ),
        ({"limits": Limits(tokens=1)}, "child ended as limit: The budget of 1 tokens is used up."),
    ],
)
async def test_a_sub_agent_that_does_not_complete_is_an_error_result(
    options: dict[str, Any], text: str
) -> None:
    helper = child(Say(text="some words", calls=[call("look", at="x")]), **options)
    model = Scripted(call("child", task="t"), "sorry")
    result = await Agent(model, tools=[helper.as_tool()]).run("?")
    assert told(result) == [(False, f"ToolError: {text}")]
    assert (result.status, result.text) == ("completed", "sorry")


@pytest.mark.rule("R-TOOL-12")
@pytest.mark.parametrize("engine", [None, Sequential])
@virtual_time
async def test_the_time_limit_of_a_sub_agent_does_not_end_its_parent(engine: Any) -> None:
    helper = child(Say(text="never", delay=60.0), limits=Limits(seconds=3.0))
    model = Scripted([call("child", task="t"), call("look", at="x")], "sorry")
    tools = [helper.as_tool(), look]
    result = await Agent(model, tools=tools, engine=engine and engine()).run("?")
    assert asyncio.get_running_loop().time() == pytest.approx(3)
    assert [ok for ok, _ in told(result)] == [False, True]
    assert "The time limit of 3 seconds is reached." in told(result)[0][1]
    assert (result.status, result.text) == ("completed", "sorry")


@pytest.mark.rule("R-TOOL-12", "R-LOOP-8")
@pytest.mark.parametrize("engine", [None, Sequential])
@virtual_time
async def test_the_time_limit_of_the_parent_ends_the_sub_agent_with_it(engine: Any) -> None:
    ended: list[str] = []

    @tool
    async def wait() -> str:
        """Waits."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "waited"

    log = Log()
    using = Usage(input=10, output=1)
    helper = child(Say(calls=[call("wait")], usage=using), tools=[wait], advisors=[log])
    model = Scripted(call("child", task="t"))
    agent = Agent(
        model,
        tools=[helper.as_tool()],
        engine=engine and engine(),
        limits=Limits(seconds=3.0),
    )
    result = await agent.run("?")
    assert (result.status, ended) == ("limit", ["cancelled"])
    assert result.usage == using
    check_transcript(result.messages)
    check_transcript(log.valid)
    assert log.closed == 1


@pytest.mark.rule("R-TOOL-12", "R-LOOP-8")
@virtual_time
async def test_cancelling_the_parent_s_task_cancels_the_sub_agent() -> None:
    helper = child(Say(text="never", delay=60.0))
    agent = Agent(Scripted(call("child", task="t")), tools=[helper.as_tool()])
    task = asyncio.create_task(agent.run("?"))
    await asyncio.sleep(1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert asyncio.get_running_loop().time() == pytest.approx(1)


@pytest.mark.rule("R-TOOL-12")
async def test_an_output_type_of_a_sub_agent_is_given_as_json() -> None:
    @dataclass
    class City:
        name: str

    helper = child('{"name": "Oslo"}', *["no JSON"] * 3, output=City)
    model = Scripted([call("child", task="a")], [call("child", task="b")], "done")
    result = await Agent(model, tools=[helper.as_tool()]).run("?")
    first, second = told(result)
    assert first == (True, '{"name":"Oslo"}')
    assert not second[0]
    assert "City" in second[1]


@pytest.mark.rule("R-TOOL-12", "R-ONION-3")
async def test_layers_of_the_parent_do_not_see_inside_the_sub_agent() -> None:
    seen: list[str] = []

    async def watch(request: Any, call_next: Any) -> Any:
        seen.append(request.messages[0].text)
        return await call_next(request)

    helper = child("answer")
    agent = Agent(
        Scripted(call("child", task="t"), "done"),
        tools=[helper.as_tool()],
        advisors=[Layer("watch", turn=watch, chat=watch)],
    )
    await agent.run("question")
    assert seen == ["question"] * 3


@pytest.mark.rule("R-TOOL-12")
async def test_one_sub_agent_serves_many_calls_at_once() -> None:
    everyone = asyncio.Barrier(8)

    async def meet(request: Any, call_next: Any) -> Any:
        async with asyncio.timeout(5):
            await everyone.wait()
        return await call_next(request)

    helper = Agent(
        Scripted(lambda request: request.messages[0].text, repeat=True),
        name="child",
        advisors=[Layer("meet", turn=meet)],
    )
    model = Scripted([call("child", task=str(n)) for n in range(8)], "done")
    result = await Agent(model, tools=[helper.as_tool()]).run("?")
    assert told(result) == [(True, str(n)) for n in range(8)]
