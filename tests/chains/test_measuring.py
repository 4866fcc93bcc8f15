"""Measured turns: what each layer took, and what each model call cost."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from retinue import Agent, ConfigError, tool
from retinue.chains import Advisor, ChatRequest, Layer, events
from retinue.chains.measuring import Times
from retinue.messages import Delta, TextDelta, Usage
from retinue.models.scripted import Say, Scripted, call


async def measured(agent: Agent, question: str = "Hello") -> list[events.Event]:
    """The events of a turn that is measured."""
    return [event async for event in agent.stream(question).prepare(measure=True)]


def times_of(got: list[events.Event]) -> dict[tuple[str, str], events.LayerTime]:
    """The times by hook and name."""
    (told,) = (event for event in got if isinstance(event, events.LayersTimed))
    return {(one.hook, one.name): one for one in told.layers}


async def take(request: Any, call_next: Any) -> Any:
    """A hook that takes its time before and after what is inside."""
    await asyncio.sleep(0.01)
    response = await call_next(request)
    await asyncio.sleep(0.01)
    return response


async def pass_on(request: Any, call_next: Any) -> Any:
    """A hook that does nothing."""
    return await call_next(request)


async def test_each_layer_is_told_its_own_time_and_not_that_of_those_inside() -> None:
    layers = [Layer("light", turn=pass_on), Layer("heavy", turn=take, chat=take)]
    got = await measured(Agent(Scripted("Hello"), advisors=layers))
    times = times_of(got)
    assert [*times] == [
        ("turn", "light"),
        ("turn", "heavy"),
        ("chat", "heavy"),
        ("model", "script"),
    ]
    assert times["turn", "light"].seconds < 0.01
    assert 0.019 < times["turn", "heavy"].seconds < 0.035
    assert 0.019 < times["chat", "heavy"].seconds < 0.035
    assert all(one.calls == 1 for one in times.values())
    assert isinstance(got[-1], events.TurnEnded)
    assert [event.seq for event in got] == [*range(1, len(got) + 1)]


async def test_calls_of_layers_and_models_add_up() -> None:
    @tool
    async def wait() -> str:
        """Waits."""
        await asyncio.sleep(0.01)
        return "done"

    script = Scripted([call("wait"), call("wait")], "Done.")
    agent = Agent(script, tools=[wait], advisors=[Layer("audit", tool=take, round=pass_on)])
    times = times_of(await measured(agent))
    assert times["tool", "audit"].calls == 2
    assert times["round", "audit"].calls == times["model", "script"].calls == 2
    assert times["tool", "audit"].seconds > 0.039


async def test_inner_layers_at_the_same_time_stop_the_watch_once() -> None:
    times = Times()
    watch = times.watch("layer", "turn", "fan")
    await asyncio.gather(*(watch.inside(asyncio.sleep(0.02)) for _ in range(3)))
    watch.stop()
    (row,) = times.taken()
    assert row.seconds < 0.015


async def test_a_layer_that_raises_is_measured_too() -> None:
    async def fail(request: Any, call_next: Any) -> Any:
        await asyncio.sleep(0.01)
        raise RuntimeError("no")

    agent = Agent(Scripted(), advisors=[Layer("guard", turn=fail)])
    got: list[events.Event] = []
    with contextlib.suppress(RuntimeError):
        async for event in agent.stream("Hello").prepare(measure=True):
            got.append(event)
    assert times_of(got)["turn", "guard"].seconds > 0.009


class Slowly:
    """A transform that gives its deltas one by one, late."""

    def feed(self, delta: Delta, /) -> Iterator[Delta]:
        yield TextDelta(delta.text.upper()) if isinstance(delta, TextDelta) else delta

    async def flush(self) -> list[Delta]:
        await asyncio.sleep(0.01)
        return [TextDelta("!")]


class Loud(Advisor):
    def stream(self, request: ChatRequest) -> Slowly:
        return Slowly()


async def test_transforms_are_measured_and_do_what_they_did() -> None:
    got = await measured(Agent(Scripted(Say(text=["he", "llo"])), advisors=[Loud()]))
    assert got[-1].text == "HELLO!"  # pyright: ignore[reportAttributeAccessIssue]
    row = times_of(got)["stream", "Loud"]
    assert row.calls == 1
    assert row.seconds > 0.009


async def test_a_measured_turn_tells_what_its_model_calls_cost() -> None:
    used = Usage(input=1_000, output=100)
    inner = Agent(
        Scripted(Say(text="4", usage=used), name="gpt-5-mini", provider="openai"), name="child"
    )
    script = Scripted(
        Say(calls=[call("child", task="Add.")], usage=used),
        Say(text="4", usage=used),
        name="unheard-of",
        provider="nobody",
    )
    got = await measured(Agent(script, tools=[inner.as_tool()]))
    costs = {event.path: event.cost for event in _usages(got)}
    assert costs.pop(()) is None
    (cost,) = costs.values()
    assert cost is not None
    assert 0 < cost < 0.01


async def test_a_turn_that_nobody_measures_tells_nothing_of_it() -> None:
    script = Scripted(
        Say(text="a", usage=Usage(input=1, output=1)), name="gpt-5-mini", provider="openai"
    )
    agent = Agent(script, advisors=[Layer("heavy", turn=take)])
    got = [event async for event in agent.stream("Hello")]
    assert not [event for event in got if isinstance(event, events.LayersTimed)]
    assert [event.cost for event in _usages(got)] == [None]


async def test_a_turn_on_its_way_cannot_be_measured_any_more() -> None:
    async with Agent(Scripted("Hello")).stream("Hello") as turn:
        with pytest.raises(ConfigError, match="before the turn starts"):
            turn.prepare(measure=True)


def _usages(got: list[events.Event]) -> list[events.UsageReported]:
    return [event for event in got if isinstance(event, events.UsageReported)]
