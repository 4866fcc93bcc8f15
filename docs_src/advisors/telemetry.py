import asyncio

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from retinue import Agent, Usage, tool
from retinue.models import Scripted
from retinue.models.scripted import Say, call
from retinue.telemetry import Telemetry

spans = InMemorySpanExporter()  # an application has an OTLPSpanExporter here
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
telemetry = Telemetry(tracer_provider=provider)


@tool
async def weather(city: str) -> str:
    """Tells the weather."""
    return f"Rain in {city}."


researcher = Agent(Scripted("Oslo lies by the sea."), advisors=[telemetry], name="researcher")
agent = Agent(
    Scripted(
        Say(
            calls=[call("weather", city="Oslo"), call("researcher", task="Where is Oslo?")],
            usage=Usage(input=120, output=30),
        ),
        Say(text="It rains by the sea.", usage=Usage(input=190, output=8)),
        name="gpt-5-mini",
        provider="openai",
    ),
    tools=[weather, researcher.as_tool()],
    advisors=[telemetry],
    name="guide",
)


def show(parent=None, depth=0):
    for span in sorted(spans.get_finished_spans(), key=lambda span: span.start_time):
        if (span.parent.span_id if span.parent else None) == parent:
            tokens = span.attributes.get("gen_ai.usage.input_tokens")
            print("  " * depth + span.name + (f" ({tokens} tokens in)" if tokens else ""))
            show(span.context.span_id, depth + 1)


asyncio.run(agent.run("How is the weather in Oslo?", conversation="c-1"))
show()
