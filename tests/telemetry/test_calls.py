"""The span of a model call is the call itself, whatever layers do and wherever they stand."""

import asyncio
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from retinue import Agent, Usage
from retinue.advisors import UsageCollector
from retinue.chains import Refusal
from retinue.errors import ModelError, ModelOverloaded
from retinue.messages import TextDelta
from retinue.models import ModelRetry
from retinue.models.scripted import Say, Scripted, call
from tests.advisors.talking import WAYS, Way, layer, soon
from tests.telemetry.traces import Traces

ways = pytest.mark.parametrize("way", WAYS)
USAGE = Usage(input=10, output=2)


def named(name: str, *steps: Any) -> Scripted:
    return Scripted(*steps, name=name, provider="openai")


async def fall_back(request: Any, call_next: Any) -> Any:
    """Asks another model where the first one fails."""
    try:
        return await call_next(request)
    except ModelError:
        return await call_next(request.with_(model=named("m-2", Say(text="saved", usage=USAGE))))


@ways
@pytest.mark.parametrize("outermost", [True, False])
async def test_a_layer_that_falls_back_makes_two_calls_wherever_it_stands(
    traces: Traces, way: Way, outermost: bool
) -> None:
    layers = [traces.telemetry(), layer("FallBack", "chat", fall_back)]
    model = named("m-1", ModelOverloaded("busy"))
    agent = Agent(
        model,
        advisors=layers if outermost else layers[::-1],
        retry=ModelRetry(attempts=1),
    )
    assert (await way(agent, "go")).text == "saved"
    assert traces.tree() == ["invoke_agent agent", "  round", "    chat m-1", "    chat m-2"]
    first, second = traces.all("chat")
    kind = "_OTHER" if outermost else "retinue.errors.ModelOverloaded"
    assert (first.attributes or {})["error.type"] == kind
    assert first.status.status_code is StatusCode.ERROR
    assert second.status.status_code is StatusCode.UNSET
    assert (second.attributes or {})["gen_ai.usage.input_tokens"] == 10
    assert "gen_ai.usage.input_tokens" not in (first.attributes or {})


@ways
async def test_calls_that_a_layer_makes_at_once_have_a_span_each(traces: Traces, way: Way) -> None:
    async def race(request: Any, call_next: Any) -> Any:
        models = [named(f"m-{n}", Say(text=f"{n}", usage=Usage(input=n))) for n in (1, 2, 3)]
        answers = await asyncio.gather(*(call_next(request.with_(model=m)) for m in models))
        return answers[0]

    agent = Agent(named("m-0"), advisors=[traces.telemetry(), layer("Race", "chat", race)])
    assert (await way(agent, "go")).text == "1"
    tokens = {
        span.name: (span.attributes or {}).get("gen_ai.usage.input_tokens")
        for span in traces.all("chat")
    }
    assert tokens == {"chat m-1": 1, "chat m-2": 2, "chat m-3": 3}
    assert {line for line in traces.tree() if "chat" in line} == {
        "    chat m-1", "    chat m-2", "    chat m-3",
    }  # fmt: skip


@ways
async def test_the_work_of_a_layer_round_the_call_is_not_in_its_span(
    traces: Traces, way: Way
) -> None:
    async def busy(request: Any, call_next: Any) -> Any:
        with traces.tracer.start_as_current_span("before"):
            pass
        response = await call_next(request)
        with traces.tracer.start_as_current_span("after"):
            pass
        return response

    def answer(request: Any) -> str:
        with traces.tracer.start_as_current_span("HTTP POST"):
            return "hi"

    model = Scripted(answer, name="m-1")
    agent = Agent(model, advisors=[traces.telemetry(), layer("Busy", "chat", busy)])
    await way(agent, "go")
    assert traces.tree() == [
        "invoke_agent agent", "  round", "    before", "    chat m-1", "      HTTP POST",
        "    after",
    ]  # fmt: skip
    after, chat = traces.one("after"), traces.one("chat")
    assert chat.end_time is not None
    assert chat.end_time <= (after.start_time or 0)


async def test_a_call_in_a_task_of_a_layer_leaves_the_current_span_as_it_was(
    traces: Traces,
) -> None:
    current: list[Any] = []

    async def apart(request: Any, call_next: Any) -> Any:
        response = await asyncio.create_task(call_next(request))
        current.append(trace.get_current_span())
        return response

    agent = Agent(named("m-1", "hi"), advisors=[traces.telemetry(), layer("Apart", "chat", apart)])
    await agent.run("go")
    assert traces.tree() == ["invoke_agent agent", "  round", "    chat m-1"]
    assert current[0].name == "round"


@ways
async def test_side_calls_have_no_span_and_count_in_the_turn_alone(
    traces: Traces, way: Way
) -> None:
    async def judge(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        side = named("judge", Say(text="fine", usage=Usage(input=1000)))
        await request.consult("is it fine?", model=side)
        return response

    model = named("m-1", Say(text="hi", usage=USAGE))
    agent = Agent(model, advisors=[traces.telemetry(), layer("Judge", "chat", judge)])
    await way(agent, "go")
    assert (traces.one("chat").attributes or {})["gen_ai.usage.input_tokens"] == 10
    assert (traces.one("invoke_agent").attributes or {})["gen_ai.usage.input_tokens"] == 1010


@ways
async def test_a_layer_that_answers_after_the_model_does_not_lend_it_its_words(
    traces: Traces, way: Way
) -> None:
    async def replace(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return request.refuse("bad", answer="I may not say.")

    model = named("m-1", Say(text="the secret", usage=USAGE))
    telemetry = traces.telemetry(content=True)
    agent = Agent(model, advisors=[telemetry, layer("Replace", "chat", replace)])
    await way(agent, "go")
    told = dict(traces.one("chat").attributes or {})
    assert told["gen_ai.usage.input_tokens"] == 10
    assert "gen_ai.output.messages" not in told
    assert "error.type" not in told


@ways
async def test_a_transform_that_gives_the_call_up_is_named_and_no_error(
    traces: Traces, way: Way
) -> None:
    class Stop:
        def feed(self, delta: Any) -> Any:
            raise Refusal("Guard", "a bad word")

        def flush(self) -> Any:
            return ()

    agent = Agent(
        named("m-1", "bomb"),
        advisors=[traces.telemetry(), layer("Guard", "stream", lambda request: Stop())],
    )
    assert (await way(agent, "go")).status == "blocked"
    span = traces.one("chat")
    assert span.status.status_code is StatusCode.UNSET
    assert (span.attributes or {})["retinue.blocked_by"] == "Guard"


@ways
async def test_the_stream_is_as_it_is_without(traces: Traces, way: Way) -> None:
    chunks = ["a", " b", "", " c"]
    with_it = Agent(named("m-1", Say(text=chunks)), advisors=[traces.telemetry()])
    without = Agent(named("m-1", Say(text=chunks)))
    results = [await way(agent, "go") for agent in (with_it, without)]
    assert results[0].text == results[1].text == "a b c"


async def test_the_span_covers_the_whole_stream_and_tells_when_it_began(traces: Traces) -> None:
    gate = asyncio.Event()

    class Slow(Scripted):
        async def generate(self, request: Any, send: Any) -> None:
            await send(TextDelta("first"))
            await gate.wait()
            await send(TextDelta(" last"))

    agent = Agent(Slow(name="m-1"), advisors=[traces.telemetry(), UsageCollector()])
    turn = agent.stream("go")
    seen = []
    async for event in turn:
        if text := getattr(event, "text", ""):
            seen.append(text)
            assert text != "first" or traces.all("chat") == []
            gate.set()
    span = await soon(_span(traces))
    first = (span.attributes or {})["gen_ai.response.time_to_first_chunk"]
    took = ((span.end_time or 0) - (span.start_time or 0)) / 1e9
    assert 0 <= float(first) <= took  # type: ignore[arg-type]
    assert seen[:2] == ["first", " last"]


async def _span(traces: Traces) -> Any:
    return traces.one("chat")


async def test_an_answer_of_calls_alone_has_no_time_to_the_first_chunk(traces: Traces) -> None:
    agent = Agent(named("m-1", call("nothing"), "done"), advisors=[traces.telemetry()])
    async for _ in agent.stream("go"):
        pass
    first, second = traces.all("chat")
    assert "gen_ai.response.time_to_first_chunk" not in (first.attributes or {})
    assert "gen_ai.response.time_to_first_chunk" in (second.attributes or {})
