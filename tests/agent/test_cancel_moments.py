"""Cancels at odd times: before the start, after the end, from within, twice, too late."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, Turn, TurnResponse, tool
from retinue.chains.events import TextChunk
from retinue.models.scripted import Say, Scripted, call
from tests.agent.reading import kinds, read, within
from tests.agent.slow_models import Stalled
from tests.strict import check_transcript

SOON = 0.1
"""Seconds within which what runs must have seen the cancel."""


async def test_a_turn_that_is_cancelled_before_it_starts_asks_nobody() -> None:
    model = Scripted("never")
    turn = Agent(model).stream("q")
    turn.cancel("Changed my mind.")
    events = await read(turn)
    assert kinds(events) == ["TurnStarted", "TurnEnded"]
    result = await turn.result()
    assert (result.status, result.reason, result.rounds) == ("cancelled", "Changed my mind.", 0)
    assert not model.requests


async def test_a_cancel_after_the_end_changes_nothing() -> None:
    turn = Agent(Scripted("answer")).stream("q")
    await read(turn)
    turn.cancel()
    assert (await turn.result()).status == "completed"
    await asyncio.sleep(0)


async def test_a_reader_may_cancel_between_two_events_and_reads_to_the_end() -> None:
    model = Stalled("a", "b")
    turn = Agent(model).stream("q")
    seen: list[str] = []
    async for event in turn:
        seen.append(type(event).__name__)
        if isinstance(event, TextChunk):
            turn.cancel()
            turn.cancel("a second time")
    assert seen[-1] == "TurnEnded"
    assert turn.outcome is not None
    assert turn.outcome.reason == "The turn was cancelled."


async def test_a_tool_may_cancel_its_own_turn() -> None:
    turns: list[Turn] = []

    @tool
    async def stop() -> str:
        """Stops."""
        turns[0].cancel("The tool says so.")
        return "stopped"

    turns.append(Agent(Scripted(call("stop"), "never"), tools=[stop]).stream("q"))
    await read(turns[0])
    result = await turns[0].result()
    assert (result.status, result.reason) == ("cancelled", "The tool says so.")
    check_transcript(result.messages)


async def test_a_cancel_that_comes_too_late_does_not_hit_what_comes_next() -> None:
    turns: list[Turn] = []

    async def late(request: Any, call_next: Any) -> Any:
        answer = await call_next(request)
        turns[0].cancel()
        return answer

    turns.append(Agent(Scripted("answer"), advisors=[Layer("l", turn=late)]).stream("q"))
    async with turns[0] as turn:
        result = await turn.result()
    assert result.text == "answer"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_turn_can_be_cancelled_after_it_ran_into_a_limit() -> None:
    there = asyncio.Event()

    async def reports(request: Any, call_next: Any) -> TurnResponse:
        response = await call_next(request)
        assert response.status == "limit"
        there.set()
        return await asyncio.Future()

    agent = Agent(
        Scripted(Say(text=["abcd"] * 100)),
        limits=Limits(tokens=3),
        advisors=[Layer("reports", turn=reports)],
    )
    turn = agent.stream("q")
    reading = asyncio.create_task(read(turn))
    await within(there.wait())
    turn.cancel("Enough.")
    await within(reading, SOON)
    assert turn.outcome is not None
    assert (turn.outcome.status, turn.outcome.reason) == ("cancelled", "Enough.")
    assert turn.outcome.text == "abcd" * 3


async def test_a_cancel_from_outside_wins_over_one_from_within() -> None:
    there = asyncio.Event()
    turns: list[Any] = []

    async def keeps(request: Any, call_next: Any) -> Any:
        turns.append(request)
        return await call_next(request)

    @tool
    async def slow() -> str:
        """Never ends."""
        there.set()
        return await asyncio.Future()

    agent = Agent(Scripted(call("slow")), tools=[slow], advisors=[Layer("l", turn=keeps)])
    task = asyncio.create_task(agent.run("q"))
    await within(there.wait())
    turns[0].scope.stopping.halt("cancelled", "from within")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
