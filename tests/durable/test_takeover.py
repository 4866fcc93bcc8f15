"""A worker is killed, and another one goes on with its turn."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from retinue.agent.pause import UNKNOWN
from retinue.stores import SQLite
from tests.durable.processes import killed_at
from tests.durable.worker import PAUSED, TURN

CALL = f"{TURN}.2"
"""How the calls of the first answer are called: after the turn and the step."""

ALL = Counter({
    "model 0": 1, "model 2": 1, "model 3": 1,
    f"book c-1:{TURN}:call_{CALL}.1": 1, f"look c-1:{TURN}:call_{CALL}.0": 1,
})  # fmt: skip


def first_round(effects: Counter[str]) -> Counter[str]:
    """What was done, without the third call, whose id depends on the steps before it."""
    late = [line for line in effects if line.startswith("look") and CALL not in line]
    assert sum(effects[line] for line in late) == 1
    return Counter({line: count for line, count in effects.items() if line not in late})


def stored(folder: Path) -> list[str]:
    """The ids in the log of the conversation."""

    async def read() -> list[str]:
        store = SQLite(folder / "log.db")
        try:
            return [entry.message.id for entry in await store.tail("c-1")]
        finally:
            await store.close()

    return asyncio.run(read())


@pytest.mark.rule("R-MEM-1", "R-USAGE-2")
@pytest.mark.parametrize(
    ("point", "again"),
    [
        ("model 0", "model 0"),
        ("model 2", "model 2"),
        ("model 3", "model 3"),
        ("before look", ""),
        ("after look", f"look c-1:{TURN}:call_{CALL}.0"),
    ],
)
def test_a_killed_turn_is_ended_by_another_worker_and_no_step_is_repeated(
    point: str, again: str, tmp_path: Path
) -> None:
    ended, effects = killed_at(point, str(tmp_path / "turns.db"), tmp_path)
    assert (ended["status"], ended["text"], ended["tokens"]) == ("completed", "All done.", 33)
    texts = [message[2] for message in ended["messages"] if message[1] == "tool"]
    done = ALL + Counter([again] if again else [])
    if "look" in point and texts[1] == UNKNOWN:  # the calls run at once: it was under way too
        texts[1], booking = "book is done", f"book c-1:{TURN}:call_{CALL}.1"
        done[booking] = effects[booking]
        assert effects[booking] <= 1
    assert texts == ["look is done", "book is done", "look is done"]
    assert first_round(effects) == +done
    assert sorted(stored(tmp_path)) == sorted(message[0] for message in ended["messages"])


@pytest.mark.parametrize(("point", "count"), [("before book", 0), ("after book", 1)])
def test_a_call_that_may_not_run_twice_does_not_and_the_model_is_told(
    point: str, count: int, tmp_path: Path
) -> None:
    ended, effects = killed_at(point, str(tmp_path / "turns.db"), tmp_path)
    assert ended["status"] == "completed"
    texts = [message[2] for message in ended["messages"] if message[1] == "tool"]
    assert texts == ["look is done", UNKNOWN, "look is done"]
    assert effects[f"book c-1:{TURN}:call_{CALL}.1"] == count
    assert sorted(stored(tmp_path)) == sorted(message[0] for message in ended["messages"])


@pytest.mark.rule("R-HITL-2", "R-HITL-4")
@pytest.mark.behaviour("B-PA-5")
def test_a_pause_that_was_answered_is_used_once_though_the_worker_dies(tmp_path: Path) -> None:
    ended, effects = killed_at(
        "model 1", str(tmp_path / "turns.db"), tmp_path, role="resume", turn=PAUSED
    )
    assert (ended["status"], ended["text"]) == ("completed", "All done.")
    assert sum(count for line, count in effects.items() if line.startswith("pay")) == 1
    assert effects["model 0"] == 1
