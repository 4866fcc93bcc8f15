"""The frames of AG-UI that are written of events, where no server is needed to see it."""

import json
from types import SimpleNamespace
from typing import Any

from retinue.chains import events
from retinue.chains.events import Event
from retinue.serve.agui_bodies import AguiBody
from retinue.serve.agui_frames import Frames
from retinue.serve.jobs import Job
from retinue.serve.wire import Resync


def frames(*told: Event | Resync, **of_turn: Any) -> list[dict[str, Any]]:
    """What is written of events."""
    turn: Any = SimpleNamespace(turn="t", stream="s", pending=(), job=Job(agent="a"), **of_turn)
    written = Frames(turn, AguiBody(thread_id="t-1", run_id="r-1", messages=[]))(told)
    return [json.loads(line.removeprefix(b"data: ")) for line in written.split(b"\n\n")[:-1]]


def test_a_turn_that_ended_before_it_started_is_a_whole_run() -> None:
    got = frames(events.TurnEnded(1, 0, 0, (), "t", "cancelled"))
    assert [one["type"] for one in got] == ["RUN_STARTED", "RUN_FINISHED"]
    assert got[-1]["outcome"] == {"type": "cancelled"}


def test_a_reader_who_missed_text_is_told_so_and_nothing_more() -> None:
    got = frames(Resync(seq=9, turn="t"), events.TurnEnded(10, 1, 1, (), "t", "completed"))
    assert [one["type"] for one in got] == ["RUN_STARTED", "RUN_ERROR"]


def test_only_what_the_discarded_attempt_made_is_taken_back() -> None:
    got = frames(
        events.AttemptStarted(1, 1, 1, ()),
        events.ThinkingChunk(2, 1, 1, (), "Hm."),
        events.TextChunk(3, 1, 1, (), "one"),
        events.ToolStarted(4, 1, 1, (), "c", "look", {}),
        events.ToolFinished(5, 1, 1, (), "c", "look", True, "seen", 0.1),
        events.AttemptStarted(6, 2, 2, ()),
        events.TextChunk(7, 2, 2, (), "two"),
        events.AttemptDiscarded(8, 2, 1, (), "because"),
        events.TextChunk(9, 2, 2, (), "!"),
    )
    (snapshot,) = [one for one in got if one["type"] == "MESSAGES_SNAPSHOT"]
    (left,) = snapshot["messages"]
    assert (left["id"], left["content"]) == (got[-1]["messageId"], "two")
