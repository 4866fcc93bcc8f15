"""Turns that are stopped while the log is being written, or by a limit: the log stays whole."""

import asyncio
import itertools
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, StoreError, Turn, tool
from retinue.advisors import Memory
from retinue.chains.events import TurnEnded
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.agent.reading import kinds, quiet, read, within
from tests.agent.slow_models import Chatty
from tests.strict import check_transcript


class Slow(InMemory):
    """A store whose append number `at` stands still, before or after the write itself.

    Attributes:
        there: it stands.
    """

    def __init__(self, at: int, *, written: bool) -> None:
        super().__init__()
        self.there = asyncio.Event()
        self._left = at
        self._written = written

    async def append(self, *args: Any, **options: Any) -> None:
        self._left -= 1
        if self._left == 0 and not self._written:
            await self._stand()
        await super().append(*args, **options)
        if self._left == 0 and self._written:
            await self._stand()

    async def _stand(self) -> None:
        self.there.set()
        await asyncio.Future()


@tool
async def look() -> str:
    """Looks."""
    return "seen"


def looking(store: InMemory) -> Agent:
    model = Scripted(Say(text="let me see", calls=[call("look")]), "answer")
    return Agent(model, tools=[look], advisors=[Memory(store)])


async def sent_later(store: InMemory) -> list[str]:
    """The texts that a next turn sends, which a strict provider takes."""
    model = Scripted("fine")
    later = Agent(model, advisors=[Memory(store)])
    assert (await within(later.run("and now?", conversation="c"))).text == "fine"
    check_transcript(model.requests[0].messages)
    return [m.text or m.tool_results[0].text for m in model.requests[0].messages]


@pytest.mark.rule("R-LOOP-8", "R-MEM-1", "R-MEM-2")
@pytest.mark.behaviour("B-LO-16", "B-ME-5")
@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(
    ("at", "kept"),
    [
        (1, []),
        (2, ["q", "let me see", "Not finished. Stop."]),
        (3, ["q", "let me see", "seen"]),
        (4, ["q", "let me see", "seen", "answer"]),
    ],
)
async def test_a_cancel_during_a_write_loses_nothing_that_was_said(
    at: int, kept: list[str], written: bool
) -> None:
    store = Slow(at, written=written)
    turn = looking(store).stream("q", conversation="c")
    reading = asyncio.create_task(read(turn))
    await within(store.there.wait())
    turn.cancel("Stop.")
    await within(reading)
    assert turn.outcome is not None
    assert turn.outcome.status == "cancelled"
    await quiet()
    assert await sent_later(store) == [*kept, "and now?"]


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.parametrize("at", [2, 3, 4])
async def test_a_cancelled_task_has_its_log_written_before_it_ends(at: int) -> None:
    store = Slow(at, written=False)
    task = asyncio.create_task(looking(store).run("q", conversation="c"))
    await within(store.there.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)
    assert (await sent_later(store))[:2] == ["q", "let me see"]


@pytest.mark.rule("R-MEM-1", "R-STREAM-3")
@pytest.mark.parametrize("written", [False, True])
async def test_an_answer_that_a_layer_gives_up_while_it_is_written_is_not_sent_later(
    written: bool,
) -> None:
    store = Slow(2, written=written)

    async def gives_up(request: Any, call_next: Any) -> Any:
        inner = asyncio.ensure_future(call_next(request))
        await within(store.there.wait())
        inner.cancel()
        await asyncio.gather(inner, return_exceptions=True)
        return request.respond("instead")

    layer = Layer("gives up", round=gives_up)
    agent = Agent(Scripted("too late"), advisors=[Memory(store), layer])
    assert (await agent.run("q", conversation="c")).text == "instead"
    assert await sent_later(store) == ["q", "instead", "and now?"]


@pytest.mark.rule("R-MEM-1", "R-ONION-3", "R-STREAM-3")
async def test_of_two_answers_written_at_once_the_one_given_up_is_not_sent_later() -> None:
    class Two(InMemory):
        """A store whose second append waits, and whose third stands when it has written."""

        def __init__(self) -> None:
            super().__init__()
            self.second, self.third, self.may_go_on = (asyncio.Event() for _ in range(3))
            self._count = 0

        async def append(self, *args: Any, **options: Any) -> None:
            self._count += 1
            number = self._count
            if number == 2:
                self.second.set()
                await self.may_go_on.wait()
            await super().append(*args, **options)
            if number == 3:
                self.third.set()
                await asyncio.Future()

    class InTurn(Scripted):
        """Gives its first answer when it was asked twice, its second when the first is written."""

        async def generate(self, request: Any, send: Any) -> Any:
            number = next(numbers)
            if number == 1:
                await within(asked_twice.wait())
            else:
                asked_twice.set()
                await within(store.second.wait())
            return await super().generate(request, send)

    store, asked_twice, numbers = Two(), asyncio.Event(), itertools.count(1)

    async def both(request: Any, call_next: Any) -> Any:
        kept = asyncio.ensure_future(call_next(request))
        given_up = asyncio.ensure_future(call_next(request))
        for _ in range(20):
            await asyncio.sleep(0)
        store.may_go_on.set()
        answer = await within(kept)
        await within(store.third.wait())
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        return answer

    agent = Agent(InTurn("one", "two"), advisors=[Memory(store), Layer("both", round=both)])
    assert (await agent.run("q", conversation="c")).text == "one"
    assert await sent_later(store) == ["q", "one", "and now?"]


class Failing(InMemory):
    """A store that takes the question and nothing more."""

    async def append(self, *args: Any, **options: Any) -> None:
        if any(message.role == "assistant" for message in args[1]):
            raise StoreError("The disk is full.")
        await super().append(*args, **options)


@pytest.mark.rule("R-STREAM-1", "R-FAIL-3")
@pytest.mark.behaviour("B-ST-13")
async def test_a_store_that_fails_fails_the_turn_and_what_was_shown_is_told() -> None:
    turn = looking(Failing()).stream("q", conversation="c")
    events = await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.status == "failed"
    assert turn.outcome.reason == "The disk is full."
    assert turn.outcome.text == "let me see"
    assert isinstance(events[-1], TurnEnded)


@pytest.mark.rule("R-STREAM-1", "R-LOOP-8")
async def test_a_cancelled_turn_whose_log_cannot_be_written_says_that_it_failed() -> None:
    there = asyncio.Event()

    class Stands(Scripted):
        async def generate(self, request: Any, send: Any) -> Any:
            await super().generate(request, send)
            there.set()
            await asyncio.Future()

    turn = Agent(Stands("answer"), advisors=[Memory(Failing())]).stream("q", conversation="c")
    reading = asyncio.create_task(read(turn))
    await within(there.wait())
    turn.cancel()
    events = await within(reading)
    assert turn.outcome is not None
    assert (turn.outcome.status, turn.outcome.text) == ("failed", "answer")
    assert isinstance(turn.outcome.error, StoreError)
    assert isinstance(events[-1], TurnEnded)


async def test_a_cancelled_task_whose_log_cannot_be_written_is_cancelled_all_the_same() -> None:
    there = asyncio.Event()

    async def waits(request: Any, call_next: Any) -> Any:
        answer = await call_next(request)
        there.set()
        await asyncio.Future()
        return answer

    agent = Agent(Scripted("answer"), advisors=[Memory(Failing()), Layer("l", chat=waits)])
    task = asyncio.create_task(agent.run("q", conversation="c"))
    await within(there.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await within(task)
    assert "The disk is full." in cancelled.value.__notes__[0]


@pytest.mark.rule("R-STREAM-1")
async def test_the_end_is_told_although_the_conversation_could_not_be_let_go() -> None:
    class Clinging:
        async def append(self, messages: Any, superseded: Any) -> None:
            pass

        async def revise(self, message: Any) -> None:
            pass

        async def close(self) -> None:
            raise StoreError("The lock cannot be removed.")

    async def records(request: Any, call_next: Any) -> Any:
        request.record_in(Clinging())
        return await call_next(request)

    turn: Turn = Agent(Scripted("answer"), advisors=[Layer("l", turn=records)]).stream("q")
    seen: list[Any] = []

    async def to_the_end() -> None:
        async for event in turn:
            seen.append(event)

    with pytest.raises(StoreError, match="lock"):
        await within(to_the_end())
    assert kinds(seen).count("TurnEnded") == 1
    assert isinstance(seen[-1], TurnEnded)


@pytest.mark.rule("R-STREAM-1")
async def test_the_end_is_told_although_the_process_is_being_stopped() -> None:
    class Stop(BaseException):
        pass

    turn = Agent(Scripted(Say(text="Hel", error=Stop()))).stream("q")
    seen: list[Any] = []

    async def to_the_end() -> None:
        async for event in turn:
            seen.append(event)

    with pytest.raises(Stop):
        await within(to_the_end())
    end = seen[-1]
    assert isinstance(end, TurnEnded)
    assert (end.status, end.text) == ("failed", "Hel")


# -- limits ------------------------------------------------------------------------------------


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-15", "B-ST-13")
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_budget_of_tokens_stops_a_long_stream_near_its_limit(streamed: bool) -> None:
    store = InMemory()
    model = Chatty(44_000)  # four letters a token: eleven thousand tokens
    agent = Agent(model, limits=Limits(tokens=100), advisors=[Memory(store)])
    if streamed:
        turn = agent.stream("q", conversation="c")
        await read(turn)
        result = await turn.result()
    else:
        result = await agent.run("q", conversation="c")
    assert (result.status, result.reason) == ("limit", "The budget of 100 tokens is used up.")
    assert model.sent < 400
    assert len(result.text) == 400
    assert result.message is not None
    assert result.message.partial
    assert await sent_later(store) == ["q", result.text, "and now?"]


@pytest.mark.rule("R-LOOP-1", "R-LOOP-3")
@pytest.mark.behaviour("B-LO-16")
@pytest.mark.parametrize("final_only", [True, False])
async def test_a_limit_with_open_calls_closes_them_and_the_next_turn_works(
    final_only: bool,
) -> None:
    store = InMemory()
    model = Scripted(Say(text="two looks", calls=[call("look"), call("look")]))
    agent = Agent(model, tools=[look], limits=Limits(rounds=1), advisors=[Memory(store)])
    turn = agent.stream("q", conversation="c", final_only=final_only)
    events = await read(turn)
    assert turn.outcome is not None
    assert (turn.outcome.status, turn.outcome.text) == ("limit", "two looks")
    assert "ToolStarted" not in kinds(events)
    why = f"Not run. {turn.outcome.reason}"
    assert await sent_later(store) == ["q", "two looks", why, why, "and now?"]
