"""Pauses in PostgreSQL: of several processes that go on with one, exactly one does."""

import json
from pathlib import Path

import pytest

from tests.advisors.till_children import did, till

pytestmark = pytest.mark.rule("R-HITL-4", "R-MEM-7")


@pytest.mark.behaviour("B-PA-5")
async def test_of_processes_that_resume_at_once_exactly_one_goes_on(
    server: str, schema: str, tmp_path: Path
) -> None:
    place = tmp_path / schema
    with till("-", place, "ask", ["pay 1", "count"]) as process:
        assert json.loads(process.rest())[0] == "paused"
    answer = [["c0", "approve"]]
    with till("-", place, "race", answer) as one, till("-", place, "race", answer) as two:
        for process in (one, two):
            assert process.said() == "ready"
        for process in (one, two):
            process.tell()
        outcomes = sorted(json.loads(process.rest()) for process in (one, two))
    assert outcomes[0] == ["completed", "done", ["paid 1", "counted"]]
    assert outcomes[1][0] == "refused"
    assert did(place) == ["pay 1", "count"]


@pytest.mark.behaviour("B-PA-2", "B-ME-4")
async def test_a_process_is_killed_and_another_one_recovers_its_turn(
    server: str, schema: str, tmp_path: Path
) -> None:
    place = tmp_path / schema
    with till("-", place, "ask", ["count", "look"], "look") as process:
        assert process.said() == "at look"
        process.kill()
    with till("-", place, "recover") as process:
        assert json.loads(process.rest()) == ["completed", "done", ["counted", "seen"]]
    first, second = did(place)[1:]
    assert (did(place)[0], first) == ("count", second)
