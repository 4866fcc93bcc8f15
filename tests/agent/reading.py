"""How tests read a turn: to its end, with all that every stream owes its reader checked."""

import asyncio
from collections.abc import Sequence
from typing import Any

from retinue import Turn, TurnResponse
from retinue.chains.events import (
    AttemptDiscarded,
    AttemptStarted,
    Event,
    TextChunk,
    TurnEnded,
    TurnStarted,
    final_text,
)

BOUND = 20.0
"""Seconds after which a wait has failed, on the slowest machine."""


async def within(awaitable: Any, seconds: float = BOUND) -> Any:
    """What the awaitable gives, in bounded time."""
    async with asyncio.timeout(seconds):
        return await awaitable


async def read(turn: Turn, seconds: float = BOUND) -> list[Event]:
    """All events of a turn, also where it raised: then `turn.outcome` says how it ended."""
    events: list[Event] = []
    raised: Exception | None = None
    try:
        async with asyncio.timeout(seconds):
            async for event in turn:
                events.append(event)
    except TimeoutError:
        raise
    except Exception as error:
        raised = error
    check(events, turn.outcome)
    assert raised is getattr(turn.outcome, "error", None)
    return events


def check(events: Sequence[Event], outcome: TurnResponse | None) -> None:
    """Numbers without gaps, one beginning, one end, and the text that was shown is the result."""
    assert outcome is not None
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [type(e) is TurnStarted for e in events] == [True] + [False] * (len(events) - 1)
    assert [type(e) is TurnEnded for e in events] == [False] * (len(events) - 1) + [True]
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert end.status == outcome.status
    assert end.text == outcome.text
    assert end.usage == outcome.usage
    assert final_text(events) == outcome.text
    assert by_hand(events) == outcome.text


def by_hand(events: Sequence[Event]) -> str:
    """The text a reader is left with that starts a new page for each attempt, as a screen does."""
    page = ""
    for event in events:
        if event.path:
            continue
        if isinstance(event, (AttemptStarted, AttemptDiscarded)):
            page = ""
        elif isinstance(event, TextChunk):
            page += event.text
    return page


def kinds(events: Sequence[Event]) -> list[str]:
    """The names of the events, in order."""
    return [type(event).__name__ for event in events]


def others() -> set[asyncio.Task[Any]]:
    """The tasks that live beside the test's own."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def quiet() -> None:
    """Fails unless every task is gone, those that close what was left half read included."""
    for _ in range(10):
        if not others():
            return
        await asyncio.sleep(0)
    assert not others()
