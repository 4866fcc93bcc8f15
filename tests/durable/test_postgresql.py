"""The same between machines: the record in PostgreSQL."""

from pathlib import Path

from retinue.agent.pause import UNKNOWN
from tests.durable.processes import killed_at
from tests.durable.test_takeover import ALL, CALL, first_round
from tests.durable.worker import TURN


def test_a_killed_turn_is_ended_by_a_worker_that_shares_the_database(
    database: str, tmp_path: Path
) -> None:
    ended, effects = killed_at("model 2", database, tmp_path)
    assert (ended["status"], ended["text"], ended["tokens"]) == ("completed", "All done.", 33)
    assert first_round(effects)["model 2"] == ALL["model 2"] + 1


def test_what_may_not_run_twice_does_not(database: str, tmp_path: Path) -> None:
    ended, effects = killed_at("after book", database, tmp_path)
    texts = [message[2] for message in ended["messages"] if message[1] == "tool"]
    assert texts == ["look is done", UNKNOWN, "look is done"]
    assert effects[f"book c-1:{TURN}:call_{CALL}.1"] == 1
