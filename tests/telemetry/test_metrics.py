"""Tokens and times are measured with the attributes and bounds of the conventions."""

import re
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes
from opentelemetry.semconv.schemas import Schemas

from retinue import Agent, Settings, Usage, tool
from retinue.errors import ModelRefused
from retinue.models.scripted import Say, Scripted, call
from retinue.telemetry import conventions
from retinue.telemetry.conventions import asked, provider_name
from tests.advisors.talking import WAYS, Way, by_stream, layer
from tests.telemetry.traces import Traces

ways = pytest.mark.parametrize("way", WAYS)
DURATION = "gen_ai.client.operation.duration"


@tool
async def search(query: str) -> str:
    """Looks it up."""
    return f"found {query}"


def model(*steps: Any) -> Scripted:
    return Scripted(*steps, name="m-1", provider="mistral")


@ways
async def test_tokens_are_measured_by_model_and_type(traces: Traces, way: Way) -> None:
    usage = Usage(input=300, output=20)
    scripted = model(Say(calls=[call("search", query="x")], usage=usage), Say(text="", usage=usage))
    await way(Agent(scripted, tools=[search], advisors=[traces.telemetry()]), "go")
    points = {
        told.pop("gen_ai.token.type"): (told, point)
        for told, point in traces.points("gen_ai.client.token.usage")
    }
    assert points.keys() == {"input", "output"}
    for kind, count in (("input", 300), ("output", 20)):
        told, point = points[kind]
        assert told == {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "mistral_ai",
            "gen_ai.request.model": "m-1", "gen_ai.response.model": "m-1",
        }  # fmt: skip
        assert (point.count, point.sum) == (2, 2 * count)
        assert point.explicit_bounds == (
            1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216,
            67108864,
        )  # fmt: skip


@ways
async def test_turns_model_calls_and_tools_are_timed_apart(traces: Traces, way: Way) -> None:
    scripted = model(call("search", query="x"), "done")
    await way(Agent(scripted, tools=[search], advisors=[traces.telemetry()]), "go")
    counts = {}
    for told, point in traces.points(DURATION):
        counts[told["gen_ai.operation.name"]] = point.count
        assert point.sum > 0
        assert point.explicit_bounds == (
            0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
        )  # fmt: skip
    assert counts == {"invoke_agent": 1, "chat": 2, "execute_tool": 1}


@ways
async def test_a_span_is_as_long_as_its_metric_says(traces: Traces, way: Way) -> None:
    scripted = model(call("search", query="x"), "done")
    await way(Agent(scripted, tools=[search], advisors=[traces.telemetry()]), "go")
    points = traces.points(DURATION)
    assert len(points) == 3
    for told, point in points:
        spans = traces.all(told["gen_ai.operation.name"])
        lengths = [(span.end_time or 0) - (span.start_time or 0) for span in spans]
        assert point.sum == pytest.approx(sum(lengths) / 1e9, rel=1e-9)


@ways
async def test_the_first_chunk_is_timed_where_somebody_reads_along(
    traces: Traces, way: Way
) -> None:
    await way(Agent(model("hi"), advisors=[traces.telemetry()]), "go")
    points = traces.points("gen_ai.client.operation.time_to_first_chunk")
    assert [point.count for _, point in points] == ([1] if way is by_stream else [])


async def test_an_error_tells_its_kind_in_the_durations(traces: Traces) -> None:
    agent = Agent(model(ModelRefused("no")), advisors=[traces.telemetry()])
    with pytest.raises(ModelRefused):
        await agent.run("go")
    kinds = {told["error.type"] for told, _ in traces.points(DURATION)}
    assert kinds == {"retinue.errors.ModelRefused"}
    assert traces.points("gen_ai.client.token.usage") == []


async def test_unknown_tokens_are_not_measured_as_none(traces: Traces) -> None:
    agent = Agent(model(Say(text="hi", usage=Usage(output=3))), advisors=[traces.telemetry()])
    await agent.run("go")
    ((told, _),) = traces.points("gen_ai.client.token.usage")
    assert told["gen_ai.token.type"] == "output"


async def test_a_measurement_knows_the_span_it_belongs_to(traces: Traces) -> None:
    await Agent(model("hi"), advisors=[traces.telemetry()]).run("go")
    spans = {span.context.span_id for span in traces.spans if span.context}
    exemplars = [one for _, point in traces.points(DURATION) for one in point.exemplars]
    assert exemplars
    assert {one.span_id for one in exemplars} <= spans


async def test_settings_are_told_when_the_span_begins(traces: Traces) -> None:
    settings = Settings(temperature=0.5, top_p=0.9, max_tokens=100, seed=7, stop=("END",))
    await Agent(model("1"), advisors=[traces.telemetry()], settings=settings, output=int).run("go")
    told = dict(traces.one("chat").attributes or {})
    assert {k: v for k, v in told.items() if ".request." in k or ".type" in k} == {
        "gen_ai.request.model": "m-1", "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9, "gen_ai.request.max_tokens": 100, "gen_ai.request.seed": 7,
        "gen_ai.request.stop_sequences": ("END",), "gen_ai.output.type": "json",
    }  # fmt: skip


def test_every_name_is_known_to_the_conventions() -> None:
    known = {
        value
        for module in (gen_ai_attributes, gen_ai_metrics, error_attributes, http_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    source = Path(conventions.__file__).read_text("utf-8")
    ours = {
        *re.findall(r'"(gen_ai\.[a-z_.]+)"', source),
        conventions.ERROR,
        conventions.HTTP_STATUS,
    }
    assert len(ours) > 25
    assert ours - known == set()
    assert Schemas.V1_41_0.value == conventions.SCHEMA_URL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openai:gpt-5-mini", ("openai", "gpt-5-mini")),
        ("ollama:qwen3:8b", ("ollama", "qwen3:8b")),
        ("openai-responses:gpt-5", ("openai-responses", "gpt-5")),
        ("bridge:bedrock:amazon.nova", ("bedrock", "amazon.nova")),
        ("local", ("local", "local")),
    ],
)
async def test_a_model_given_as_text_is_told_by_provider_and_name(
    text: str, expected: tuple[str, str]
) -> None:
    seen: list[tuple[str, str]] = []

    async def look(request: Any, call_next: Any) -> Any:
        seen.append(asked(request.with_(model=text)))
        return await call_next(request)

    await Agent(model("hi"), advisors=[layer("Look", "chat", look)]).run("go")
    assert seen == [expected]


def test_providers_have_the_names_of_the_conventions() -> None:
    known = {each.value for each in gen_ai_attributes.GenAiProviderNameValues}
    ours = (
        "openai", "openai-responses", "azure", "anthropic", "gemini", "gemini-openai", "deepseek",
        "mistral", "groq", "xai", "bedrock", "cohere", "google-vertex",
    )  # fmt: skip
    assert {provider_name(provider) for provider in ours} <= known
    assert provider_name("ollama") == "ollama"
