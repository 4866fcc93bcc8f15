"""Readers: slow ones, those that leave, those that come twice, and those that never read."""

import asyncio
import gc
from typing import Any

import pytest

from retinue import Agent, ConfigError, Limits, TurnResponse, tool
from retinue.advisors import Memory
from retinue.chains import Scope
from retinue.chains.channel import LIMIT
from retinue.chains.events import TextChunk, TurnEnded, TurnStarted
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.agent.reading import check, others, quiet, read, within
from tests.agent.slow_models import Chatty, Stalled

SOON = 0.1
"""Seconds within which a model call must be closed (B-ST-9)."""


# -- a slow reader -----------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-6")
@pytest.mark.behaviour("B-ST-10")
async def test_a_reader_that_falls_behind_is_waited_for() -> None:
    model = Chatty(100_000)
    ahead: list[int] = []
    read_so_far = 0
    async for event in Agent(model).stream("q"):
        if isinstance(event, TextChunk):
            read_so_far += 1
            ahead.append(model.sent - read_so_far)
            if read_so_far % 1000 == 0:
                for _ in range(5):
                    await asyncio.sleep(0)
    assert read_so_far == 100_000
    assert max(ahead) <= LIMIT


@pytest.mark.rule("R-STREAM-6")
async def test_a_turn_that_nobody_reads_yet_waits_too() -> None:
    model = Chatty(10_000)
    async with Agent(model).stream("q") as turn:
        for _ in range(1000):
            await asyncio.sleep(0)
        assert 0 < model.sent <= LIMIT
        events = await read(turn)
    assert sum(isinstance(event, TextChunk) for event in events) == 10_000


# -- a reader that leaves ----------------------------------------------------------------------


async def by_break(turn: Any) -> None:
    async for event in turn:
        if isinstance(event, TextChunk):
            break


async def by_an_exception(turn: Any) -> None:
    async def read_badly() -> None:
        async for event in turn:
            if isinstance(event, TextChunk):
                raise ValueError("the reader fails")

    with pytest.raises(ValueError, match="the reader fails"):
        await read_badly()


async def by_the_end_of_its_block(turn: Any) -> None:
    async with turn:
        async for event in turn:
            if isinstance(event, TextChunk):
                break


async def by_closing_the_events(turn: Any) -> None:
    events = aiter(turn)
    async for event in events:
        if isinstance(event, TextChunk):
            await events.aclose()
            break


async def as_a_cancelled_task(turn: Any) -> None:
    got_one = asyncio.Event()

    async def read_on() -> None:
        async for event in turn:
            if isinstance(event, TextChunk):
                got_one.set()

    task = asyncio.create_task(read_on())
    await within(got_one.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


WAYS_OUT = [
    by_break,
    by_an_exception,
    by_the_end_of_its_block,
    by_closing_the_events,
    as_a_cancelled_task,
]


@pytest.mark.rule("R-STREAM-6", "R-LOOP-8")
@pytest.mark.behaviour("B-ST-9")
@pytest.mark.parametrize("leave", WAYS_OUT)
async def test_a_reader_that_leaves_ends_the_model_call_and_leaves_no_task(leave: Any) -> None:
    store = InMemory()
    model = Stalled("par", "tial")
    turn = Agent(model, advisors=[Memory(store)]).stream("q", conversation="c")
    await leave(turn)
    await within(model.closed.wait(), SOON)
    result = await within(turn.result())
    assert (result.status, result.reason) == ("cancelled", "The reader left.")
    question, answer = [entry.message for entry in await store.tail("c")]
    assert question.text == "q"
    assert answer.partial
    assert answer.text.startswith("par")
    await quiet()


@pytest.mark.rule("R-STREAM-6")
async def test_the_end_of_the_block_has_waited_until_the_turn_had_stopped() -> None:
    model = Stalled("a")
    async with Agent(model).stream("q") as turn:
        await within(model.reached.wait())
    assert model.closed.is_set()
    assert turn.outcome is not None
    assert turn.outcome.status == "cancelled"
    assert not others()


@pytest.mark.rule("R-STREAM-6")
async def test_a_reader_that_leaves_frees_a_model_that_waits_for_it() -> None:
    model = Chatty(10_000)
    turn = Agent(model).stream("q")
    async for event in turn:
        if isinstance(event, TextChunk):
            break
    result = await within(turn.result())
    assert result.status == "cancelled"
    assert model.sent < 10_000


async def test_a_reader_may_leave_after_the_last_event() -> None:
    turn = Agent(Scripted("answer")).stream("q")
    async for event in turn:
        if isinstance(event, TurnEnded):
            break
    assert (await within(turn.result())).text == "answer"
    assert (await within(turn.result())).status == "completed"


# -- detached turns ----------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-6")
async def test_a_detached_turn_starts_at_once_and_goes_on_without_its_reader() -> None:
    model = Stalled("a")
    turn = Agent(model).stream("q", detached=True)
    await within(model.reached.wait())
    await by_break(turn)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not model.closed.is_set()
    turn.cancel()
    assert (await within(turn.result())).text == "a"


@pytest.mark.rule("R-STREAM-6")
async def test_who_stops_waiting_for_a_detached_turn_does_not_stop_it() -> None:
    model = Stalled("a")
    turn = Agent(model).stream("q", detached=True)
    waiting = asyncio.create_task(turn.result())
    await within(model.reached.wait())
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not model.closed.is_set()
    turn.cancel()
    assert (await within(turn.result())).status == "cancelled"


@pytest.mark.rule("R-STREAM-6")
async def test_a_detached_turn_lives_on_when_its_handle_is_dropped() -> None:
    model = Stalled("a")
    agent = Agent(model)
    agent.stream("q", detached=True)
    await within(model.reached.wait())
    gc.collect()
    assert not model.closed.is_set()
    (task,) = others()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- reading otherwise -------------------------------------------------------------------------


async def test_the_result_can_be_had_without_reading() -> None:
    model = Chatty(10_000)
    turn = Agent(model).stream("q")
    assert turn.outcome is None
    result = await within(turn.result())
    assert len(result.text) == 10_000
    assert turn.outcome is result


async def test_the_result_can_be_had_more_than_once_and_after_reading() -> None:
    turn = Agent(Scripted("answer")).stream("q")
    await read(turn)
    first, second = await asyncio.gather(turn.result(), turn.result())
    assert first is second is turn.outcome
    assert turn.id == first.id


async def test_the_events_can_be_read_once_and_a_second_reader_is_told_so() -> None:
    turn = Agent(Scripted("answer")).stream("q")
    await read(turn)
    with pytest.raises(ConfigError, match="iterate it first, and once"):
        await anext(aiter(turn))


async def test_a_second_reader_does_not_disturb_the_first() -> None:
    turn = Agent(Scripted(Say(text=["a", "b"]))).stream("q")
    events = aiter(turn)
    first = await anext(events)
    assert isinstance(first, TurnStarted)
    with pytest.raises(ConfigError, match="iterate it first, and once"):
        await anext(aiter(turn))
    rest = [event async for event in events]
    check([first, *rest], turn.outcome)
    assert turn.outcome is not None
    assert turn.outcome.text == "ab"


async def test_a_turn_that_was_never_started_costs_nothing() -> None:
    model = Scripted("answer")
    Agent(model).stream("q")
    await asyncio.sleep(0)
    assert not model.requests
    assert not others()


# -- many at once ------------------------------------------------------------------------------


def scopes() -> int:
    gc.collect()
    return sum(isinstance(thing, Scope) for thing in gc.get_objects())


@pytest.mark.rule("R-ONION-12", "R-STREAM-1")
async def test_a_thousand_turns_at_once_keep_apart_and_leave_nothing_behind() -> None:
    before = scopes()

    @tool
    async def echo(word: str) -> str:
        """Says it again."""
        await asyncio.sleep(0)
        return word

    def step(request: Any) -> Any:
        asked = request.turn.messages[0].text
        for result in request.messages[-1].tool_results:
            return Say(text=[result.text, "!"])
        return call("echo", word=asked)

    model = Scripted(step, repeat=True)
    agent = Agent(model, tools=[echo], limits=Limits(seconds=60))

    async def one(number: int) -> TurnResponse | None:
        if number % 3 == 0:
            return await agent.run(str(number))
        turn = agent.stream(str(number))
        if number % 3 == 1:
            await read(turn, 60)
        else:
            async with turn:
                async for event in turn:
                    if isinstance(event, TextChunk):
                        break
        return turn.outcome

    async def all_of_them() -> list[str]:
        results = await asyncio.gather(*map(one, range(1000)))
        return [result.text for result in results if result is not None]

    texts = await within(all_of_them(), 60)
    assert [text.rstrip("!") for text in texts] == [str(number) for number in range(1000)]
    model.requests.clear()  # they hold their turns
    await quiet()
    assert scopes() == before
