"""Taps: what else hears a turn, in run and stream alike, and what happens when it fails."""

import asyncio
from collections.abc import Iterator

import pytest

from retinue import Agent, Layer, TurnRequest, tool
from retinue.chains.events import Event, TextChunk, TurnEnded, TurnStarted
from retinue.messages import Delta, TextDelta
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from tests.advisors.talking import WAYS, Way, soon
from tests.agent.reading import read


def listening(pump, **options) -> Layer:
    async def turn(request: TurnRequest, call_next):
        request.tap(pump, **options)
        return await call_next(request)

    return Layer("listen", turn=turn)


class Heard:
    def __init__(self) -> None:
        self.events: list[Event] = []

    async def __call__(self, tap) -> None:
        async for event in tap:
            self.events.append(event)


@pytest.mark.parametrize("way", WAYS)
async def test_a_pump_hears_the_whole_turn_before_the_caller_has_the_result(way: Way) -> None:
    heard = Heard()
    await way(Agent(Scripted(Say(text=["a", "b"])), advisors=[listening(heard)]), "Go.")
    assert isinstance(heard.events[0], TurnStarted)
    assert isinstance(heard.events[-1], TurnEnded)
    assert [one.seq for one in heard.events] == list(range(1, len(heard.events) + 1))
    assert "".join(one.text for one in heard.events if isinstance(one, TextChunk)) == "ab"


async def test_what_a_pump_hears_of_a_run_is_what_a_reader_sees_of_a_stream() -> None:
    heard = Heard()
    agent = Agent(Scripted("hi", repeat=True), advisors=[listening(heard)])
    await agent.run("Go.")
    events = await read(agent.stream("Go."))
    assert [type(one) for one in heard.events[: len(events)]] == [type(one) for one in events]


@pytest.mark.parametrize("way", WAYS)
async def test_a_pump_that_fails_stops_the_turn_which_raises_its_error(way: Way) -> None:
    async def fail(tap) -> None:
        async for event in tap:
            if isinstance(event, TextChunk):
                raise LookupError("no room left")

    never = asyncio.Event()

    @tool
    async def wait() -> None:
        """Waits."""
        await never.wait()

    model = Scripted(Say(text="I wait.", calls=[call("wait")]), "done")
    agent = Agent(model, tools=[wait], advisors=[listening(fail)])
    with pytest.raises(LookupError, match="no room left"):
        await soon(way(agent, "Go."))
    assert len(model.requests) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_pump_that_leaves_early_holds_nobody_up(way: Way) -> None:
    async def one(tap) -> None:
        await anext(aiter(tap))

    agent = Agent(Scripted(Say(text=["x"] * 1000)), advisors=[listening(one, limit=2)])
    assert (await soon(way(agent, "Go."))).text == "x" * 1000


@pytest.mark.rule("R-STREAM-6")
async def test_a_slow_pump_slows_the_model_and_a_lossy_one_loses_events() -> None:
    gate = asyncio.Event()
    heard: list[Event] = []

    async def slow(tap) -> None:
        await gate.wait()
        async for event in tap:
            heard.append(event)

    asked = asyncio.Event()
    sent: list[int] = []

    def chunks() -> Iterator[Delta]:
        asked.set()
        for number in range(100):
            sent.append(number)
            yield TextDelta("x")

    agent = Agent(Scripted(Say(deltas=chunks())), advisors=[listening(slow, limit=10)])
    running = asyncio.create_task(agent.run("Go."))
    await soon(asked.wait())
    for _ in range(300):
        await asyncio.sleep(0)
    assert len(sent) <= 10
    gate.set()
    await soon(running)
    assert sum(isinstance(one, TextChunk) for one in heard) == 100

    heard.clear()
    gate.clear()

    async def late(tap) -> None:
        await gate.wait()
        async for event in tap:
            heard.append(event)

    async def open_gate(request, call_next):
        response = await call_next(request)
        gate.set()
        return response

    layers = [Layer("open", turn=open_gate), listening(late, limit=10, lossy=True)]
    await soon(Agent(Scripted(Say(text=["x"] * 100)), advisors=layers).run("Go."))
    assert len(heard) == 10


async def test_a_pump_of_a_sub_agent_hears_that_agent_alone() -> None:
    heard, all_heard = Heard(), Heard()
    child = Agent(Scripted("from the child"), advisors=[listening(heard)], name="child")
    parent = Agent(
        Scripted(Say(text="first", calls=[call("child", task="go")]), "from the parent"),
        tools=[child.as_tool()],
        advisors=[listening(all_heard)],
    )
    await parent.run("Go.")
    texts = [one.text for one in heard.events if isinstance(one, TextChunk)]
    assert texts == ["from the child"]
    texts = [one.text for one in all_heard.events if isinstance(one, TextChunk)]
    assert texts == ["first", "from the child", "from the parent"]
