"""What arrives at a real collector over OTLP, as its file has it."""

import re
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from retinue import Agent, Usage, tool
from retinue.models.scripted import Say, Scripted, call
from retinue.telemetry import Telemetry
from tests.advisors.talking import WAYS, Way
from tests.telemetry.conftest import Collector


@tool
def search(query: str) -> str:
    """Looks it up, in a thread."""
    return f"found {query}"


def spans_in(text: str) -> list[dict[str, str]]:
    """The spans in a collector's file, by their fields and attributes."""
    # A span's lines follow its heading; what comes after the last one begins with a resource.
    blocks = re.findall(
        r"^Span #\d+\n(.*?)(?=^Span #|^Resource|\Z)", text, re.DOTALL | re.MULTILINE
    )
    fields = re.compile(r"^ +(Parent ID|ID|Name|Kind|Status code) *: (.*)$", re.MULTILINE)
    attributes = re.compile(r"^ +-> ([\w.]+): (.*)$", re.MULTILINE)
    return [dict(fields.findall(block) + attributes.findall(block)) for block in blocks]


def tree(spans: list[dict[str, str]], parent: str = "", depth: int = 0) -> list[Any]:
    """The names of the spans, each indented under its parent."""
    found: list[str] = []
    for span in spans:
        if span["Parent ID"] == parent:
            found += ["  " * depth + span["Name"], *tree(spans, span["ID"], depth + 1)]
    return found


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_arrives_at_a_collector_as_it_was(collector: Collector, way: Way) -> None:
    traces = TracerProvider(shutdown_on_exit=False)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
    exporter = OTLPMetricExporter(f"{collector.url}/v1/metrics")
    metrics = MeterProvider([PeriodicExportingMetricReader(exporter)], shutdown_on_exit=False)
    telemetry = Telemetry(tracer_provider=traces, meter_provider=metrics, content=True)
    usage = Usage(input=100, output=20, cache_read=60)
    helper = Agent(Scripted("helped", name="m-2"), advisors=[telemetry], name="helper")
    calls = [call("search", query="ø"), call("helper", task="x")]
    model = Scripted(Say(calls=calls, usage=usage), Say(text="done", usage=usage), name="m-1")
    agent = Agent(model, tools=[search, helper.as_tool()], advisors=[telemetry])
    await way(agent, "go", conversation="c-1")
    traces.shutdown()
    metrics.shutdown()
    text = collector.stop()

    spans = spans_in(text)
    shown = tree(spans)
    assert sorted(shown) == sorted([
        "invoke_agent agent", "  round", "    chat m-1", "    execute_tool search",
        "    execute_tool helper", "      invoke_agent helper", "        round",
        "          chat m-2", "  round", "    chat m-1",
    ])  # fmt: skip
    turn = next(span for span in spans if span["Name"] == "invoke_agent agent")
    assert turn["gen_ai.operation.name"] == "Str(invoke_agent)"
    assert turn["gen_ai.conversation.id"] == "Str(c-1)"
    assert turn["gen_ai.usage.input_tokens"] == "Int(200)"
    assert turn["gen_ai.usage.cache_read.input_tokens"] == "Int(120)"
    chat = next(span for span in spans if span["Name"] == "chat m-1")
    assert chat["Kind"] == "SPAN_KIND_CLIENT"
    assert "Str(tool_calls)" in chat["gen_ai.response.finish_reasons"]
    for metric in ("token.usage", "operation.duration"):
        assert f"gen_ai.client.{metric}" in text
    assert "https://opentelemetry.io/schemas/1.41.0" in text
