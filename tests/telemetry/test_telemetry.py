"""What a `Telemetry` needs, what it refuses, where it stands, and what goes on after a pause."""

import builtins
import importlib
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace

from retinue import Agent, tool
from retinue.chains import Scope, TurnRequest, assemble
from retinue.errors import ConfigError, MissingExtraError
from retinue.messages import user
from retinue.models.scripted import Scripted, call
from retinue.telemetry import Telemetry
from tests.advisors.talking import WAYS, Way, layer
from tests.telemetry.traces import Traces

ways = pytest.mark.parametrize("way", WAYS)


def turn_request(**fields: Any) -> TurnRequest:
    async def consult(*_: Any) -> Any:
        raise AssertionError

    scope = Scope(consult)
    scope.agent, scope.model = "agent", Scripted(name="m-1")
    return TurnRequest(scope=scope, messages=(user("go"),), **fields)


async def paused(request: TurnRequest) -> Any:
    return request.respond("").with_(status="paused", message=None, reason="approve the call")


async def done(request: TurnRequest) -> Any:
    return request.respond("done")


async def test_a_resumed_turn_is_linked_to_the_turn_that_paused(traces: Traces) -> None:
    first = await traces.telemetry().turn(turn_request(context={"mine": 1}), paused)
    assert first.context["mine"] == 1
    # What a store keeps is plain text; another process, another advisor and agent resume.
    place = first.context["traceparent"]
    assert isinstance(place, str)
    again = turn_request(context={"traceparent": place}, resumed=True)
    second = await traces.telemetry().turn(again, paused)
    third = turn_request(context=second.context, resumed=True)
    await traces.telemetry().turn(third, done)
    one, two, three = traces.all("invoke_agent")
    assert [(one.attributes or {})["retinue.status"], len(one.links)] == ["paused", 0]
    assert (two.attributes or {})["retinue.resumed"] is True
    for later, earlier in ((two, one), (three, two)):
        (link,) = later.links
        assert earlier.context is not None
        assert link.context.span_id == earlier.context.span_id
        assert link.context.trace_id == earlier.context.trace_id
        assert later.parent is None


async def test_a_paused_turn_keeps_its_place_whatever_layers_do_to_the_context(
    traces: Traces,
) -> None:
    async def forgets(request: TurnRequest) -> Any:
        return (await paused(request)).with_(context={})

    response = await traces.telemetry().turn(turn_request(), forgets)
    assert response.context.keys() == {"traceparent"}


@pytest.mark.parametrize(
    "place", [None, 7, "", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
)
async def test_a_resumed_turn_without_a_place_to_go_on_from_has_no_link(
    traces: Traces, place: Any
) -> None:
    await traces.telemetry().turn(turn_request(context={"traceparent": place}, resumed=True), done)
    assert traces.one("invoke_agent").links == ()


async def test_what_a_caller_hands_back_is_no_parent_and_no_link(traces: Traces) -> None:
    agent = Agent(Scripted("a", "b"), advisors=[traces.telemetry()])
    result = await agent.run("go")
    await agent.run("go", context=result.context)
    first, second = traces.all("invoke_agent")
    assert second.links == ()
    assert second.parent is None
    assert first.context is not None
    assert second.context is not None
    assert first.context.trace_id != second.context.trace_id


@ways
async def test_tools_and_the_caller_are_told_the_turn_s_place_in_its_trace(
    traces: Traces, way: Way
) -> None:
    from retinue import ToolContext

    seen: list[str] = []

    @tool
    async def remote(ctx: ToolContext) -> str:
        """Calls another service."""
        seen.append(ctx.context["traceparent"])
        return "ok"

    agent = Agent(Scripted(call("remote"), "done"), tools=[remote], advisors=[traces.telemetry()])
    result = await way(agent, "go", context={"mine": 1})
    span = traces.one("invoke_agent").context
    assert span is not None
    assert seen == [f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"]
    assert result.context == {"mine": 1, "traceparent": seen[0]}


@ways
async def test_without_an_sdk_nothing_is_recorded_and_nothing_changes(way: Way) -> None:
    agent = Agent(Scripted(call("nothing"), "done"), advisors=[Telemetry()])
    result = await way(agent, "go", context={"mine": 1})
    assert result.text == "done"
    assert result.context == {"mine": 1}
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_turn_that_is_not_sampled_records_nothing_and_keeps_its_trace() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    seen: list[Any] = []

    def answer(request: Any) -> str:
        seen.append(trace.get_current_span().get_span_context())
        return "hi"

    agent = Agent(Scripted(answer), advisors=[Telemetry(tracer_provider=provider, content=True)])
    result = await agent.run("go")
    assert seen[0].is_valid
    assert not seen[0].trace_flags.sampled
    place = seen[0]
    assert (
        f"-{place.span_id:016x}-" not in result.context["traceparent"]
    )  # the turn's, not the call's
    assert f"-{place.trace_id:032x}-" in result.context["traceparent"]


def test_a_provider_that_is_set_later_is_used() -> None:
    program = """
import asyncio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from retinue import Agent
from retinue.models import Scripted
from retinue.telemetry import Telemetry

agent = Agent(Scripted("hi"), advisors=[Telemetry()])
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
asyncio.run(agent.run("go"))
print([span.name for span in exporter.get_finished_spans()])
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "['chat script', 'round', 'invoke_agent agent']"


@pytest.mark.rule("R-ONION-9")
def test_two_of_them_are_refused(traces: Traces) -> None:
    with pytest.raises(ConfigError, match="each would be counted twice"):
        Agent(Scripted(), advisors=[traces.telemetry(), traces.telemetry()])


@pytest.mark.rule("R-ONION-8")
def test_it_comes_first_when_layers_are_assembled(traces: Traces) -> None:
    async def pass_on(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    telemetry, early = traces.telemetry(), layer("Early", "turn", pass_on)
    early.order = 100
    assert assemble([early], [telemetry]) == [telemetry, early]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"content": "yes"}, "content='yes'"),
        ({"mask": None}, "mask=None"),
        ({"tracer_provider": object()}, r"tracer_provider=.*no get_tracer\(\)"),
        ({"meter_provider": object()}, r"meter_provider=.*no get_meter\(\)"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Telemetry(**options)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    really = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return really(name, *rest)

    for name in [name for name in sys.modules if name.startswith("retinue.telemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[otel\]'"):
        importlib.import_module("retinue.telemetry")
