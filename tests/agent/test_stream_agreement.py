"""What is shown = what is returned = what is stored, whatever the layers do."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retinue import Agent, Layer, Limits, RetinueError, Turn, TurnResponse
from retinue.chains import name_of
from retinue.chains.events import Event
from retinue.messages import Message
from retinue.models.scripted import Say, Scripted
from retinue.stores import InMemory
from tests.agent.reading import check, quiet, read
from tests.agent.scenes import agent_of, layers, limits, says
from tests.strict import check_transcript


def check_log(messages: Sequence[Message]) -> None:
    """As strict as a provider, but for answers without a word, which every model may give."""
    said = [m if m.text or m.role != "assistant" else m.with_text("-") for m in messages]
    check_transcript(said)


async def go_on(agent: Agent, store: InMemory, outcome: TurnResponse) -> None:
    """The log is what was returned, and a strict provider takes the next turn that stands on it."""
    entries = await store.tail("c")
    kept = [entry.message for entry in entries if entry.state == ""]
    check_log([entry.message for entry in entries if entry.state != "superseded"])
    if outcome.status == "completed":
        check_log(outcome.messages)
        returned = {message.id for message in outcome.messages}
        stored = [entry.message for entry in entries if entry.message.id in returned]
        assert stored == list(outcome.messages)
        assert returned.issuperset(message.id for message in kept)
        direct = outcome.message is not None and all(
            message.id != outcome.message.id for message in kept
        )
        late = any(name_of(layer).startswith("Delivered") for layer in agent.advisors)
        if not direct and not late:
            assert kept[-1].text == outcome.text
    model = Scripted("next")
    later = agent.with_(model=model, advisors=agent.advisors[:1], limits=None)
    await later.run("and then?", conversation="c")
    check_log(model.requests[0].messages)


async def ended(run: Awaitable[TurnResponse]) -> TurnResponse | Exception:
    try:
        return await run
    except RetinueError as error:
        return error


def told(outcome: TurnResponse) -> tuple[object, ...]:
    """What a caller is told, but for what is made anew in each turn."""
    return (outcome.text, outcome.status, outcome.reason, outcome.usage, outcome.blocked_by)


@pytest.mark.rule("R-STREAM-1", "R-STREAM-3", "R-STREAM-5", "R-STREAM-8", "R-USAGE-3", "R-ONION-5")
@pytest.mark.behaviour("B-ST-4", "B-ST-13", "B-ON-7", "B-LO-16")
@given(st.lists(says, max_size=4), layers, limits, st.booleans())
@settings(max_examples=300)
async def test_shown_is_returned_is_stored_and_a_run_says_the_same(
    script: list[Say], onion: list[Layer], limit: Limits, final_only: bool
) -> None:
    store, other = InMemory(), InMemory()
    agent = agent_of(script, onion, limit, store)
    turn = agent.stream("q", conversation="c", final_only=final_only)
    await read(turn)
    outcome = turn.outcome
    assert outcome is not None
    await go_on(agent, store, outcome)
    ran = await ended(agent_of(script, onion, limit, other).run("q", conversation="c"))
    if isinstance(ran, Exception):
        assert type(ran) is type(outcome.error)
    else:
        assert told(ran) == told(outcome)
        await go_on(agent, other, ran)


# -- and wherever it is stopped ----------------------------------------------------------------


class Yielding(InMemory):
    """A store that lets others run before and after each write, as a database does."""

    async def append(self, *args: Any, **options: Any) -> None:
        await asyncio.sleep(0)
        await super().append(*args, **options)
        await asyncio.sleep(0)


async def read_until_stopped(turn: Turn, ticks: int, how: str) -> list[Event]:
    """The events of a turn that is stopped after so many turns of the event loop."""
    events: list[Event] = []

    async def read_on() -> None:
        async for event in turn:
            events.append(event)

    reading = asyncio.create_task(read_on())
    for _ in range(ticks):
        await asyncio.sleep(0)
    if how == "leave":
        reading.cancel()
    else:
        turn.cancel("stopped")
    async with asyncio.timeout(5):
        await asyncio.gather(reading, return_exceptions=True)
    return events


@pytest.mark.rule("R-LOOP-8", "R-STREAM-1", "R-STREAM-3", "R-STREAM-5")
@pytest.mark.behaviour("B-ST-13", "B-LO-16")
@given(
    st.lists(says, max_size=3),
    layers,
    st.integers(0, 40),
    st.sampled_from(["leave", "cancel"]),
    st.booleans(),
)
@settings(max_examples=300)
async def test_a_turn_that_is_stopped_at_any_moment_agrees_with_itself(
    script: list[Say], onion: list[Layer], ticks: int, how: str, final_only: bool
) -> None:
    store = Yielding()
    agent = agent_of(script, onion, Limits(), store)
    turn = agent.stream("q", conversation="c", final_only=final_only)
    events = await read_until_stopped(turn, ticks, how)
    await asyncio.gather(turn.result(), return_exceptions=True)
    await quiet()
    outcome = turn.outcome
    assert outcome is not None
    if how == "cancel":
        check(events, outcome)
    await go_on(agent, store, outcome)
