"""One turn of several workers, as its reader sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains.events import (
    AttemptDiscarded,
    AttemptStarted,
    Event,
    RoundStarted,
    TextChunk,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
    final_text,
)
from retinue.messages import Usage
from retinue.serve.grpc.seam import Seam


def turn(*texts: str, tool: bool = False) -> list[Event]:
    """The events of a turn: rounds with a tool call, and a last one without."""
    events: list[Event] = [TurnStarted(1, 0, 0, (), "t")]
    total = Usage()
    for at, text in enumerate(texts, 1):
        spent = Usage(input=10, output=1)
        total = total + spent
        events.append(RoundStarted(0, at, at - 1, ()))
        events.append(AttemptStarted(0, at, at, ()))
        events += [TextChunk(0, at, at, (), letter) for letter in text]
        events.append(UsageReported(0, at, at, (), spent, total))
        if at < len(texts):
            events.append(ToolStarted(0, at, at, (), f"c{at}", "tool", {}))
            events.append(ToolFinished(0, at, at, (), f"c{at}", "tool", True, "ok", 0.0))
    last = len(texts)
    events.append(TurnEnded(0, last, last, (), "t", "completed", text=texts[-1], usage=total))
    return [
        type(event)(seq, *(getattr(event, name) for name in event.__struct_fields__[1:]))
        for seq, event in enumerate(events, 1)
    ]


def taken(seam: Seam, events: list[Event]) -> list[Event]:
    return [shown for event in events if (shown := seam.take(event)) is not None]


def test_what_one_worker_sends_passes_as_it_is() -> None:
    events = turn("a", "b")
    assert taken(Seam(), events) == events


@pytest.mark.rule("R-STREAM-1", "R-STREAM-5")
@given(st.lists(st.text("xyz", max_size=4), min_size=1, max_size=3), st.data())
def test_wherever_workers_are_lost_the_reader_sees_one_turn(
    texts: list[str], data: st.DataObject
) -> None:
    seam, seen = Seam(), list[Event]()
    whole = turn(*texts)
    for _ in range(data.draw(st.integers(0, 2))):
        cut = data.draw(st.integers(1, len(whole) - 1))
        seen += taken(seam, whole[:cut])
        seen += seam.lose("gone")
    seen += taken(seam, whole)
    assert [event.seq for event in seen] == [*range(1, len(seen) + 1)]
    assert sum(isinstance(event, TurnStarted) for event in seen) == 1
    assert isinstance(seen[-1], TurnEnded)
    assert final_text(seen) == texts[-1]
    attempts = [event.attempt for event in seen]
    assert attempts == sorted(attempts)


def test_an_open_attempt_is_taken_back_and_a_closed_one_stands() -> None:
    seam = Seam()
    taken(seam, [event for event in turn("ab", "cd") if event.round == 1])
    assert seam.lose("gone") == []
    seam = Seam()
    open_still = turn("ab", "cd")[:5]
    last = taken(seam, open_still)[-1]
    assert seam.lose("gone") == [AttemptDiscarded(last.seq + 1, 1, 1, (), "gone")]


def test_an_open_attempt_of_a_sub_agent_is_taken_back_before_that_of_its_parent() -> None:
    seam = Seam()
    seam.take(TextChunk(1, 1, 1, (), "outer"))
    seam.take(TextChunk(2, 1, 1, ("c1",), "inner"))
    assert [event.path for event in seam.lose("gone")] == [("c1",), ()]


def test_what_a_lost_worker_used_is_counted() -> None:
    seam = Seam()
    taken(seam, turn("a", "b")[:6])  # up to the usage of the first round
    seam.lose("gone")
    end = taken(seam, turn("c"))[-1]
    assert isinstance(end, TurnEnded)
    assert end.usage == Usage(input=20, output=2)


def test_a_turn_that_no_worker_ends_has_an_end() -> None:
    seam = Seam()
    taken(seam, turn("abc")[:4])
    end = seam.end("t", "failed", "All are gone.", "WorkerLost")
    assert (end.seq, end.round, end.attempt, end.status) == (5, 1, 1, "failed")
