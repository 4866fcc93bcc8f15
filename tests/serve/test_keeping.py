"""What is kept of one turn: bounds in bytes, readers that come at any moment, and many of them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from retinue.chains import events
from retinue.chains.events import Event
from retinue.serve.faults import Refused
from retinue.serve.keeping import Keeping
from retinue.serve.turns import Turns
from retinue.serve.wire import Resync
from tests.serve.scenes import all_of, within
from tests.serve.test_turns import Deck, job

LARGE = "x" * 10_000


class Stepping:
    """A turn whose events are let go one by one."""

    def __init__(self, made: list[Event]) -> None:
        self.id = "t"
        self.cancelled: str | None = None
        self._made = made
        self._let_go = asyncio.Semaphore(0)

    def step(self) -> None:
        self._let_go.release()

    async def __aiter__(self) -> AsyncIterator[Event]:
        for event in self._made:
            await self._let_go.acquire()
            yield event

    def cancel(self, reason: str) -> None:
        self.cancelled = reason


class Once(Deck):
    """A dispatcher for one turn."""

    def __init__(self, turn: Any) -> None:
        super().__init__()
        self.turn = turn

    async def start(self, job: Any) -> Any:
        return self.turn


def whole(*between: Event) -> list[Event]:
    made: list[Event] = [events.TurnStarted(1, 0, 0, (), "t"), *between]
    return [*made, events.TurnEnded(len(made) + 1, 1, 1, (), "t", "completed")]


def calls(count: int) -> list[Event]:
    return [
        events.ToolStarted(n, 1, 1, (), f"c{n}", "look", {"at": LARGE}) for n in range(2, count + 2)
    ]


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.rule("R-STREAM-6")
async def test_large_arguments_hold_a_turn_back_as_much_as_text_does() -> None:
    stepping = Stepping(whole(*calls(50)))
    turns = Turns(Once(stepping), keeping=Keeping(bytes=25_000))
    async with await turns.start(job()) as reader:
        for _ in range(52):
            stepping.step()
        await settled()
        assert reader.turn.last <= 5
        got = await all_of(reader.events())
    assert [event.seq for event in got] == [*range(1, 53)]


async def test_large_arguments_of_a_detached_turn_are_let_go() -> None:
    stepping = Stepping(whole(*calls(50)))
    turns = Turns(Once(stepping), keeping=Keeping(bytes=25_000))
    reader = await turns.start(job(detached=True))
    for _ in range(52):
        stepping.step()
    await within(reader.end())
    resync, *rest = await all_of(reader.turn.reader().events())
    assert isinstance(resync, Resync)
    assert len(rest) <= 4


async def test_ended_turns_are_kept_up_to_so_many_bytes() -> None:
    turns = Turns(Deck(texts=200), keeping=Keeping(total_bytes=100_000))
    done: list[str] = []
    for _ in range(4):
        async with await turns.start(job()) as reader:
            done.append((await within(reader.end())).turn)
        await settled()
    with pytest.raises(Refused):
        turns.find(done[0], None)
    assert turns.find(done[-1], None).end is not None


async def test_one_who_comes_at_any_moment_gets_the_rest_without_gap_or_double() -> None:
    words: list[Event] = [events.TextChunk(n, 1, 1, (), str(n)) for n in range(2, 12)]
    stepping = Stepping(whole(*words))
    turns = Turns(Once(stepping))
    first = await turns.start(job())
    reading = [(0, asyncio.create_task(all_of(first.events())))]
    for come in range(12):
        stepping.step()
        await settled()
        assert first.turn.last == come + 1
        for seen in {0, come, come + 1}:
            back = first.turn.reader(after=seen)
            reading.append((seen, asyncio.create_task(all_of(back.events()))))
    for seen, task in reading:
        got = await within(task)
        assert [event.seq for event in got] == [*range(seen + 1, 13)]


async def test_a_number_that_is_not_there_yet_is_one_of_another_stream() -> None:
    deck = Deck(texts=5, ends=False)
    reader = await Turns(deck).start(job(detached=True))
    await settled()
    ahead = asyncio.create_task(all_of(reader.turn.reader(after=99).events()))
    await settled()
    deck.tapes[0].finish()
    assert [event.seq for event in await within(ahead)] == [*range(1, 10)]


async def test_the_slowest_of_many_readers_holds_the_turn_back_and_each_gets_all() -> None:
    turns = Turns(Deck(texts=300), keeping=Keeping(events=16))
    slow = await turns.start(job())
    quick = [slow.turn.reader() for _ in range(100)]
    reading = [asyncio.create_task(all_of(each.events())) for each in quick]
    await settled()
    assert slow.turn.last < 40
    everything = [*range(1, 305)]
    assert [event.seq for event in await all_of(slow.events())] == everything
    for task in reading:
        assert [event.seq for event in await within(task)] == everything


async def test_one_who_leaves_twice_has_left_once() -> None:
    deck = Deck(ends=False)
    turns = Turns(deck, keeping=Keeping(linger=0.05))
    reader = await turns.start(job())
    reader.close()
    reader.close()
    back = reader.turn.reader()
    await asyncio.sleep(0.1)
    assert deck.tapes[0].cancelled is None
    back.close()
    assert (await within(back.end())).status == "cancelled"


async def test_a_reader_that_gives_up_waiting_leaves_nothing_behind() -> None:
    deck = Deck(ends=False)
    reader = await Turns(deck).start(job())
    await within(reader.next())
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await reader.next()
    deck.tapes[0].finish()
    assert [type(event).__name__ for event in await within(reader.next())] == ["TurnEnded"]
