"""The tree of spans: the same when run, streamed, in parallel and in sub-agents."""

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from retinue import Agent, Limits, Usage, tool
from retinue.errors import ModelOverloaded, ModelRefused, ToolError
from retinue.models import ModelRetry
from retinue.models.scripted import Say, Scripted, call
from retinue.tools import ProcessPool, Sequential, ThreadPool
from tests.advisors.talking import WAYS, Way, by_parent, by_stream, layer, soon
from tests.telemetry.traces import Traces

ways = pytest.mark.parametrize("way", WAYS)


@tool
async def search(query: str) -> str:
    """Looks it up."""
    return f"found {query}"


@tool
def count(text: str) -> int:
    """Counts letters, in a thread."""
    return len(text)


@tool(isolation="process")
def square(number: int) -> int:
    """Squares, in a process."""
    return number * number


def asking(*answers: Any, **options: Any) -> Scripted:
    return Scripted(*answers, name="m-1", provider="openai", **options)


TREE = [
    "invoke_agent agent",
    "  round",
    "    chat m-1",
    "    execute_tool search",
    "    execute_tool count",
    "  round",
    "    chat m-1",
]


@pytest.mark.rule("R-ONION-5")
@ways
@pytest.mark.parametrize("engine", [None, Sequential, lambda: ThreadPool(2)])
async def test_a_turn_holds_rounds_and_these_their_model_call_and_tools(
    traces: Traces, way: Way, engine: Any
) -> None:
    model = asking([call("search", query="x"), call("count", text="abc")], "done")
    agent = Agent(
        model, tools=[search, count], advisors=[traces.telemetry()], engine=engine and engine()
    )
    result = await way(agent, "go", conversation="c-1")
    assert result.text == "done"
    assert traces.tree() == TREE
    assert len({span.context.trace_id for span in traces.spans if span.context}) == 1
    assert {span.status.status_code for span in traces.spans} == {StatusCode.UNSET}
    await agent.close()


async def test_a_tool_in_a_process_has_its_span_in_the_round(traces: Traces) -> None:
    model = asking([call("square", number=3), call("square", number=4)], "done")
    async with Agent(
        model, tools=[square], advisors=[traces.telemetry()], engine=ProcessPool(1)
    ) as agent:
        await agent.run("go")
    assert traces.tree()[1:5] == [
        "  round", "    chat m-1", "    execute_tool square", "    execute_tool square",
    ]  # fmt: skip


@pytest.mark.rule("R-TOOL-11")
async def test_what_a_tool_records_in_its_thread_or_task_is_below_its_span(traces: Traces) -> None:
    @tool
    def threaded() -> str:
        """Works in a thread."""
        with traces.tracer.start_as_current_span("in a thread"):
            return "ok"

    @tool
    async def tasked() -> str:
        """Works in a task."""
        with traces.tracer.start_as_current_span("in a task"):
            return "ok"

    model = asking([call("threaded"), call("tasked")], "done")
    await Agent(model, tools=[threaded, tasked], advisors=[traces.telemetry()]).run("go")
    tree = traces.tree()
    assert tree[tree.index("    execute_tool threaded") + 1] == "      in a thread"
    assert tree[tree.index("    execute_tool tasked") + 1] == "      in a task"


@ways
async def test_the_attributes_are_those_of_the_conventions(traces: Traces, way: Way) -> None:
    usage = Usage(input=100, output=20, cache_read=60, cache_write=10, reasoning=5)
    model = asking(
        Say(calls=[call("search", query="x")], usage=usage), Say(text="done", usage=usage)
    )
    agent = Agent(model, tools=[search], advisors=[traces.telemetry()], name="finder")
    result = await way(agent, "go", conversation="c-1")
    turn = dict(traces.one("invoke_agent").attributes or {})
    assert turn == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "finder",
        "gen_ai.provider.name": "openai", "gen_ai.request.model": "m-1",
        "gen_ai.conversation.id": "c-1", "retinue.turn.id": result.id,
        "retinue.status": "completed", "retinue.rounds": 2,
        "gen_ai.usage.input_tokens": 200, "gen_ai.usage.output_tokens": 40,
        "gen_ai.usage.cache_read.input_tokens": 120,
        "gen_ai.usage.cache_creation.input_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 10,
    }  # fmt: skip
    first, last = traces.all("chat")
    assert (first.kind, first.name) == (SpanKind.CLIENT, "chat m-1")
    told = dict(first.attributes or {})
    assert told.get("gen_ai.request.stream") is (True if way is by_stream else None)
    for name in ("gen_ai.request.stream", "gen_ai.response.time_to_first_chunk"):
        told.pop(name, None)
    assert told == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1", "gen_ai.response.model": "m-1",
        "gen_ai.conversation.id": "c-1", "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "gen_ai.usage.reasoning.output_tokens": 5,
    }  # fmt: skip
    assert (last.attributes or {})["gen_ai.response.finish_reasons"] == ("stop",)
    assert dict(traces.one("execute_tool").attributes or {}) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": result.messages[1].tool_calls[0].id,
    }  # fmt: skip
    assert [dict(span.attributes or {})["retinue.round"] for span in traces.all("round")] == [1, 2]


@pytest.mark.rule("R-TOOL-12")
@ways
async def test_a_sub_agent_nests_under_the_call_that_runs_it(traces: Traces, way: Way) -> None:
    helper = Agent(asking("helped"), advisors=[traces.telemetry()], name="helper")
    model = asking([call("helper", task="a"), call("search", query="b")], "done")
    agent = Agent(model, tools=[helper.as_tool(), search], advisors=[traces.telemetry()])
    await way(agent, "go")
    tree = traces.tree()
    at = tree.index("    execute_tool helper")
    assert tree[at + 1 : at + 4] == [
        "      invoke_agent helper", "        round", "          chat m-1",
    ]  # fmt: skip
    assert tree.count("    execute_tool search") == 1


async def test_a_traced_sub_agent_of_a_parent_without_is_a_trace_of_its_own(traces: Traces) -> None:
    await by_parent(Agent(asking("hi"), advisors=[traces.telemetry()], name="helper"), "go")
    assert traces.tree() == ["invoke_agent helper", "  round", "    chat m-1"]


@ways
async def test_the_current_span_of_the_caller_is_the_parent(traces: Traces, way: Way) -> None:
    agent = Agent(asking("hi"), advisors=[traces.telemetry()])
    with traces.tracer.start_as_current_span("request") as span:
        await way(agent, "go")
        assert trace.get_current_span() is span
    assert traces.tree()[:2] == ["request", "  invoke_agent agent"]
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.rule("R-ONION-12")
async def test_concurrent_turns_of_one_agent_do_not_mix(traces: Traces) -> None:
    @tool
    async def together(name: str) -> str:
        """Waits until all turns are here."""
        await barrier.wait()
        return name

    barrier = asyncio.Barrier(5)

    def answer(request: Any) -> Any:
        asked = request.messages[-1]
        return "done" if asked.role == "tool" else call("together", name=asked.text)

    model = Scripted(answer, repeat=True, name="m-1")
    agent = Agent(model, tools=[together], advisors=[traces.telemetry()])
    await soon(asyncio.gather(*(agent.run(f"turn {n}") for n in range(5))))
    tree = traces.tree()
    one = [
        "invoke_agent agent", "  round", "    chat m-1", "    execute_tool together", "  round",
        "    chat m-1",
    ]  # fmt: skip
    assert tree == one * 5


@ways
async def test_a_failed_model_call_is_an_error_all_the_way_up(traces: Traces, way: Way) -> None:
    error = ModelRefused("The provider says no (key sk-12345678901).", status=400)
    agent = Agent(asking(error), advisors=[traces.telemetry()])
    with pytest.raises(ModelRefused):
        await way(agent, "go")
    assert len(traces.spans) == 3
    for span in traces.spans:
        told = dict(span.attributes or {})
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == "The provider says no (key ***)."
        assert told["error.type"] == "retinue.errors.ModelRefused"
        assert told["http.response.status_code"] == 400


async def test_what_an_error_of_others_says_is_content(traces: Traces) -> None:
    async def broken(request: Any, call_next: Any) -> Any:
        raise ValueError("the patient is called Ada")

    for content in (False, True):
        agent = Agent(
            asking(), advisors=[traces.telemetry(content=content), layer("x", "turn", broken)]
        )
        with pytest.raises(ValueError, match="Ada"):
            await agent.run("go")
    plain, full = traces.all("invoke_agent")
    assert (plain.attributes or {})["error.type"] == "ValueError"
    assert plain.status.description is None
    assert full.status.description == "the patient is called Ada"


async def test_retries_of_a_model_call_are_events_of_its_one_span(traces: Traces) -> None:
    model = asking(ModelOverloaded("busy", status=529), ModelOverloaded("busy"), "hi")
    agent = Agent(model, advisors=[traces.telemetry()], retry=ModelRetry(base=0.001))
    await agent.run("go")
    first, second = traces.one("chat").events
    told = dict(first.attributes or {})
    assert first.name == second.name == "retinue.model_retry"
    assert told.pop("retinue.wait") >= 0  # type: ignore[operator]
    assert told == {
        "error.type": "retinue.errors.ModelOverloaded", "http.response.status_code": 529,
    }  # fmt: skip
    assert traces.one("chat").status.status_code is StatusCode.UNSET


@ways
async def test_each_run_of_a_tool_that_is_retried_has_its_span(traces: Traces, way: Way) -> None:
    tries: list[int] = []

    @tool(retry=2)
    async def shaky() -> str:
        """Works the second time."""
        tries.append(1)
        if len(tries) == 1:
            raise ToolError("later", failure="transient", retry_after=0.001)
        return "ok"

    agent = Agent(asking(call("shaky"), "done"), tools=[shaky], advisors=[traces.telemetry()])
    await way(agent, "go")
    first, second = traces.all("execute_tool")
    assert first.status.status_code is StatusCode.ERROR
    assert first.status.description is None  # what a tool says is told to the model: content
    assert (first.attributes or {})["retinue.failure"] == "transient"
    assert (first.attributes or {})["error.type"] == "retinue.errors.ToolError"
    assert second.status.status_code is StatusCode.UNSET
    assert (second.attributes or {})["retinue.attempt"] == 2


async def test_an_invented_tool_has_a_span_whose_name_does_not_vary(traces: Traces) -> None:
    agent = Agent(asking(call("serach", q="x"), "done"), advisors=[traces.telemetry()])
    await agent.run("go")
    span = traces.one("execute_tool")
    assert span.name == "execute_tool"
    assert (span.attributes or {})["gen_ai.tool.name"] == "serach"
    assert (span.attributes or {})["error.type"] == "semantic"
    durations = [told for told, _ in traces.points("gen_ai.client.operation.duration")]
    assert {"gen_ai.operation.name": "execute_tool", "error.type": "semantic"} in durations


@ways
async def test_a_block_is_a_status_and_no_error(traces: Traces, way: Way) -> None:
    async def guard(request: Any, call_next: Any) -> Any:
        return request.refuse("the word 'bomb'")

    for hook, depth in (("turn", 1), ("round", 2), ("chat", 2)):
        agent = Agent(asking(), advisors=[traces.telemetry(), layer("Guard", hook, guard)])
        await way(agent, "go")
        turn = traces.all("invoke_agent")[-1]
        told = dict(turn.attributes or {})
        assert (told["retinue.status"], told["retinue.blocked_by"]) == ("blocked", "Guard")
        assert "retinue.reason" not in told  # it may quote the question
        assert turn.status.status_code is StatusCode.UNSET
        assert max(line.count("  ") for line in traces.tree()) < depth
    assert traces.all("chat") == []


async def test_a_tool_that_a_layer_refuses_is_no_error(traces: Traces) -> None:
    async def deny(request: Any, call_next: Any) -> Any:
        return request.refuse("not allowed")

    model = asking(call("search", query="x"), "done")
    agent = Agent(model, tools=[search], advisors=[traces.telemetry(), layer("Deny", "tool", deny)])
    await agent.run("go")
    span = traces.one("execute_tool")
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["retinue.blocked_by"] == "Deny"


@ways
async def test_a_limit_is_a_status_with_its_reason(traces: Traces, way: Way) -> None:
    model = asking(call("search", query="x"), repeat=True)
    agent = Agent(model, tools=[search], advisors=[traces.telemetry()], limits=Limits(rounds=2))
    result = await way(agent, "go")
    told = dict(traces.one("invoke_agent").attributes or {})
    assert told["retinue.status"] == "limit"
    assert told["retinue.reason"] == result.reason
    assert traces.one("invoke_agent").status.status_code is StatusCode.UNSET


async def test_a_cancel_is_a_status_of_all_that_it_reaches(traces: Traces) -> None:
    begun = asyncio.Event()

    @tool
    async def endless() -> str:
        """Never ends."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    usage = Usage(input=7, output=1)
    model = asking(Say(calls=[call("endless")], usage=usage))
    agent = Agent(model, tools=[endless], advisors=[traces.telemetry()])
    turn = agent.stream("go", detached=True)
    await soon(begun.wait())
    turn.cancel()
    assert (await soon(turn.result())).status == "cancelled"
    for name in ("invoke_agent", "round", "execute_tool"):
        span = traces.one(name)
        assert (span.attributes or {})["retinue.status"] == "cancelled"
        assert span.status.status_code is StatusCode.UNSET
    assert (traces.one("invoke_agent").attributes or {})["gen_ai.usage.input_tokens"] == 7
    assert "retinue.status" not in (traces.one("chat").attributes or {})
    for told, _ in traces.points("gen_ai.client.operation.duration"):
        assert "error.type" not in told


@pytest.mark.rule("R-STREAM-6")
async def test_a_reader_that_leaves_ends_all_spans_as_cancelled(traces: Traces) -> None:
    agent = Agent(asking(Say(text=["a", "b"] * 500)), advisors=[traces.telemetry()])
    async with agent.stream("go") as turn:
        async for event in turn:
            if getattr(event, "text", "") == "a":
                break
    for span in traces.spans:
        assert (span.attributes or {})["retinue.status"] == "cancelled"
    assert traces.tree() == ["invoke_agent agent", "  round", "    chat m-1"]


async def test_a_cancelled_model_call_keeps_what_it_had_used(traces: Traces) -> None:
    from retinue.messages import UsageDelta

    begun = asyncio.Event()

    class Stuck(Scripted):
        async def generate(self, request: Any, send: Any) -> None:
            await send(UsageDelta(Usage(input=9)))
            begun.set()
            await asyncio.Event().wait()

    agent = Agent(Stuck(name="m-1"), advisors=[traces.telemetry()])
    turn = agent.stream("go", detached=True)
    await soon(begun.wait())
    turn.cancel()
    await soon(turn.result())
    told = dict(traces.one("chat").attributes or {})
    assert told["retinue.status"] == "cancelled"
    assert told["gen_ai.usage.input_tokens"] == 9
