"""Turns and their readers, without any wire: buffers, back-pressure, lost dispatchers, keeping."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import ConfigError, user
from retinue.chains import events
from retinue.chains.events import Event, final_text
from retinue.messages import Message, ToolCall, ToolResult, Usage, assistant
from retinue.serve.cards import AgentCard
from retinue.serve.dispatch import Load
from retinue.serve.faults import Refused
from retinue.serve.jobs import Job
from retinue.serve.keeping import Keeping
from retinue.serve.picture import Picture
from retinue.serve.turns import Turns
from retinue.serve.wire import Resync
from tests.serve.scenes import all_of, within


class Tape:
    """A turn whose events come from a list, or one by one as they are let go."""

    def __init__(self, job: str, texts: int = 0, *, ends: bool = True) -> None:
        self.id = job
        self.cancelled: str | None = None
        self.taken = 0
        self.error: Exception | None = None
        self._texts = texts
        self._ends = ends
        self._more = asyncio.Event()
        self._go = asyncio.Event()

    def finish(self) -> None:
        self._go.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        yield events.TurnStarted(1, 0, 0, (), self.id)
        yield events.RoundStarted(2, 1, 0, ())
        yield events.AttemptStarted(3, 1, 1, ())
        for n in range(self._texts):
            self.taken = n + 1
            yield events.TextChunk(4 + n, 1, 1, (), f"{n} ")
        if not self._ends:
            await self._go.wait()
        if self.error is not None:
            raise self.error
        status = "completed" if self.cancelled is None else "cancelled"
        yield events.TurnEnded(4 + self._texts, 1, 1, (), self.id, status, usage=Usage())

    def cancel(self, reason: str) -> None:
        self.cancelled = reason
        self._go.set()


class Deck:
    """A dispatcher that plays tapes."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.tapes: list[Tape] = []
        self.refusal: Exception | None = None
        self.cards: Mapping[str, AgentCard] = {}
        self.held = asyncio.Event()
        self.held.set()

    async def start(self, job: Job) -> Tape:
        await self.held.wait()
        if self.refusal is not None:
            raise self.refusal
        tape = Tape(job.id, **self.options)
        self.tapes.append(tape)
        return tape

    def agents(self) -> Mapping[str, AgentCard]:
        return self.cards

    def load(self) -> Load:
        return Load(0)

    async def drain(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


def job(**options: Any) -> Job:
    return Job(agent="a", messages=(user("go"),), **options)


async def test_a_reader_gets_every_event_once_whatever_it_does_in_between() -> None:
    turns = Turns(Deck(texts=200))
    async with await turns.start(job()) as reader:
        got = await all_of(reader.events())
    assert [event.seq for event in got] == [*range(1, 205)]


@pytest.mark.rule("R-STREAM-6")
async def test_a_slow_reader_holds_the_turn_back() -> None:
    deck = Deck(texts=500)
    turns = Turns(deck, keeping=Keeping(events=10))
    async with await turns.start(job()) as reader:
        await within(reader.next())
        for _ in range(50):
            await asyncio.sleep(0)
        assert deck.tapes[0].taken < 30
        assert len([event async for event in reader.events()]) > 400
    assert deck.tapes[0].cancelled is None


async def test_a_turn_that_must_end_waits_for_no_reader() -> None:
    deck = Deck(texts=500)
    turns = Turns(deck, keeping=Keeping(events=10))
    async with await turns.start(job()) as reader:
        await within(reader.next())
        await within(turns.close())
        got = await all_of(reader.events())
    assert isinstance(got[0], Resync)
    assert got[-1].status == "cancelled"
    assert turns.running(None) == 0


async def test_the_last_reader_who_leaves_ends_the_turn() -> None:
    deck = Deck(ends=False)
    turns = Turns(deck)
    first = await turns.start(job(request="r"))
    second = await turns.start(job(request="r"))
    first.close()
    assert deck.tapes[0].cancelled is None
    second.close()
    assert deck.tapes[0].cancelled == "The reader left."
    await within(turns.close())


async def test_a_reader_may_come_back_while_the_turn_lingers() -> None:
    deck = Deck(ends=False)
    turns = Turns(deck, keeping=Keeping(linger=60))
    reader = await turns.start(job())
    await within(reader.next())
    reader.close()
    assert deck.tapes[0].cancelled is None
    back = reader.turn.reader(reader.after)
    deck.tapes[0].finish()
    got = await all_of(back.events())
    assert got[-1].status == "completed"
    back.close()


async def test_nobody_who_comes_back_ends_a_turn_that_lingers() -> None:
    deck = Deck(ends=False)
    turns = Turns(deck, keeping=Keeping(linger=0.01))
    reader = await turns.start(job())
    reader.close()
    assert (await within(reader.end())).status == "cancelled"


async def test_a_detached_turn_drops_what_nobody_reads_and_shows_where_it_stands() -> None:
    deck = Deck(texts=500)
    turns = Turns(deck, keeping=Keeping(events=10))
    reader = await turns.start(job(detached=True))
    reader.close()
    await within(reader.end())
    got = await all_of(reader.turn.reader(after=5).events())
    assert isinstance(got[0], Resync)
    assert got[0].text == "".join(f"{n} " for n in range(500))
    assert [event.seq for event in got[1:]] == [504]


async def test_a_reader_within_what_is_kept_needs_no_resync() -> None:
    turns = Turns(Deck(texts=500), keeping=Keeping(events=10))
    reader = await turns.start(job(detached=True))
    await within(reader.end())
    got = await all_of(reader.turn.reader(after=499).events())
    assert [event.seq for event in got] == [*range(500, 505)]


async def test_a_turn_that_the_dispatcher_loses_ends_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deck = Deck(texts=2, ends=False)
    turns = Turns(deck)
    async with await turns.start(job()) as reader:
        await within(reader.next())
        deck.tapes[0].error = RuntimeError("socket to db.internal")
        deck.tapes[0].finish()
        end = await within(reader.end())
    assert (end.status, end.error) == ("failed", "RuntimeError")
    assert end.reason == "The server failed; its log says why."
    assert "db.internal" in caplog.text


async def test_a_request_that_was_refused_may_be_made_again() -> None:
    deck = Deck()
    turns = Turns(deck)
    deck.refusal = Refused("unavailable", "full")
    with pytest.raises(Refused, match="full"):
        await turns.start(job(request="r"))
    deck.refusal = None
    async with await turns.start(job(request="r")) as reader:
        assert (await within(reader.end())).status == "completed"


async def test_one_who_joins_a_request_that_is_given_up_is_told() -> None:
    deck = Deck()
    deck.held.clear()
    turns = Turns(deck)
    first = asyncio.create_task(turns.start(job(request="r")))
    await asyncio.sleep(0)
    second = asyncio.create_task(turns.start(job(request="r")))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(Refused, match="given up"):
        await within(second)
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_ended_turns_are_kept_for_so_many_and_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns(Deck(), keeping=Keeping(turns=2, seconds=100))
    done: list[str] = []
    for n in range(3):
        async with await turns.start(job(request=f"r{n}")) as reader:
            done.append((await within(reader.end())).turn)
        await asyncio.sleep(0)
    with pytest.raises(Refused, match="There is no turn"):
        turns.find(done[0], None)
    assert turns.find(done[2], None).turn == done[2]
    assert turns.running(None) == 0
    now = time.monotonic()
    monkeypatch.setattr("retinue.serve.turns.time.monotonic", lambda: now + 101)
    with pytest.raises(Refused):
        turns.find(done[2], None)
    async with await turns.start(job(request="r2")) as reader:
        assert (await within(reader.end())).turn not in done


async def test_closing_ends_what_runs() -> None:
    deck = Deck(ends=False)
    turns = Turns(deck)
    async with await turns.start(job(detached=True)) as reader:
        await within(turns.close())
        assert (await within(reader.end())).status == "cancelled"


@pytest.mark.parametrize("wrong", [{"events": 0}, {"seconds": -1}, {"linger": -1}])
def test_what_cannot_be_kept_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Keeping(**wrong)


chunks = st.lists(st.text("ab ", min_size=1, max_size=3), max_size=6)
attempts = st.lists(st.tuples(chunks, st.booleans()), min_size=1, max_size=4)


def told(script: list[tuple[list[str], bool]]) -> list[Event]:
    """Events of one round with attempts, of which some are discarded."""
    made: list[Event] = [events.RoundStarted(1, 1, 0, ())]
    for number, (texts, discarded) in enumerate(script, 1):
        made.append(events.AttemptStarted(len(made) + 1, 1, number, ()))
        made += [
            events.TextChunk(len(made) + 1 + at, 1, number, (), t) for at, t in enumerate(texts)
        ]
        if discarded:
            made.append(events.AttemptDiscarded(len(made) + 1, 1, number, (), "no"))
    return made


@pytest.mark.rule("R-STREAM-5")
@given(attempts, st.integers(0, 40))
def test_a_picture_and_the_rest_are_the_whole(
    script: list[tuple[list[str], bool]], cut: int
) -> None:
    made = told(script)
    cut = min(cut, len(made))
    picture = Picture()
    for event in made[:cut]:
        picture.add(event)
    shown = picture.resync("t", None, ())
    page, attempt = shown.text, shown.attempt
    for event in made[cut:]:
        if isinstance(event, events.AttemptStarted | events.AttemptDiscarded):
            page = ""
        elif isinstance(event, events.TextChunk):
            page += event.text
        attempt = event.attempt
    assert page == final_text(made)
    assert attempt == made[-1].attempt


def test_a_round_stands_in_the_picture_or_in_the_log_and_never_in_both() -> None:
    asked = assistant("Let me see.", calls=[ToolCall("c", "look", "{}")])
    result = Message("tool", (ToolResult("c", "look"),))
    log = (user("go"), asked, result)
    picture = Picture()
    for event in (
        events.RoundStarted(1, 1, 0, ()),
        events.AttemptStarted(2, 1, 1, ()),
        events.TextChunk(3, 1, 1, (), "Let me see."),
        events.ToolArguments(4, 1, 1, (), 0, "c", "look", "{"),
        events.ToolArguments(5, 1, 1, (), 0, "", "", "}"),
        events.ToolStarted(6, 1, 1, (), "c", "look", {}),
        events.ToolFinished(7, 1, 1, (), "c", "look", True, "seen", 0.1),
    ):
        picture.add(event)
    shown = picture.resync("t", "c-1", log)
    assert shown.messages == log[:1]
    (one,) = shown.calls
    assert (one.name, one.arguments, one.started, one.ok, one.text) == (
        "look", "{}", True, True, "seen",
    )  # fmt: skip
    picture.add(events.RoundStarted(8, 2, 1, ()))
    assert picture.resync("t", "c-1", log).messages == log
    assert picture.resync("t", "c-1", log).calls == ()
