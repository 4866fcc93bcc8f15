"""Pauses that one process leaves and another one goes on with, and processes that are killed."""

import json
from pathlib import Path
from typing import Any

import pytest

from retinue import Agent
from retinue.advisors import Memory
from retinue.models.scripted import Scripted
from retinue.stores import SQLite
from tests.advisors.crashing import UNKNOWN
from tests.advisors.talking import kept, strictly
from tests.advisors.till_children import did, till


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the conversation, and the place of the effects."""
    return tmp_path / "chat.db"


def work(path: Path, work: str, *given: Any) -> Any:
    """What a fresh process prints, which does this and ends."""
    with till(path, path, work, *given) as process:
        return json.loads(process.rest())


async def check_log(path: Path, lines: list[str]) -> None:
    """The conversation holds these, and a strict provider takes the next turn."""
    store, model = SQLite(path), Scripted("yes")
    assert await kept(store) == lines
    await Agent(model, advisors=[Memory(store)]).run("sure?", conversation="c")
    strictly(model)
    await store.close()


@pytest.mark.behaviour("B-PA-2")
@pytest.mark.rule("R-HITL-2")
async def test_one_process_pauses_and_others_look_and_go_on(path: Path) -> None:
    status, _, results = work(path, "ask", ["pay 1", "count", "look"])
    assert (status, results, did(path)) == ("paused", [], [])
    assert work(path, "pending") == [["c0", "pay", {"n": 1}]]
    answer = ["c0", "approve", {"n": 7}]
    assert work(path, "resume", [answer]) == ["completed", "done", ["paid 7", "counted", "seen"]]
    assert [line.split()[0] for line in did(path)] == ["pay", "count", "look"]
    assert did(path)[0] == "pay 7"
    assert work(path, "pending") == []
    await check_log(path, [
        "user: Pay.", "assistant: +pay +count +look", "tool: paid 7", "tool: counted",
        "tool: seen", "assistant: done",
    ])  # fmt: skip


@pytest.mark.behaviour("B-PA-1")
@pytest.mark.rule("R-HITL-3")
async def test_each_process_may_bring_one_answer(path: Path) -> None:
    work(path, "ask", ["pay 1", "pay 2", "pay 3"])
    assert work(path, "resume", [["c2", "approve"]])[0] == "paused"
    assert work(path, "resume", [["c0", "reject", "not that"]])[0] == "paused"
    assert did(path) == []
    assert [one[0] for one in work(path, "pending")] == ["c1"]
    assert work(path, "resume", [["c1", "reply", "by hand"]]) == [
        "completed", "done", ["not that", "by hand", "paid 3"],
    ]  # fmt: skip
    assert did(path) == ["pay 3"]


@pytest.mark.behaviour("B-PA-8")
@pytest.mark.rule("R-TOOL-12")
async def test_a_sub_agent_pauses_its_process_dies_and_another_reaches_it(path: Path) -> None:
    status, _, _ = work(path, "ask a child")
    assert (status, did(path)) == ("paused", ["count"])
    assert work(path, "pending") == [["p0/c0", "pay", {"n": 1}]]
    resumed = work(path, "resume a child", [["p0/c0", "approve"]])
    assert resumed == ["completed", "all done", ["child done", "counted"]]
    assert did(path) == ["count", "pay 1"]


@pytest.mark.behaviour("B-PA-5")
@pytest.mark.rule("R-HITL-4")
async def test_of_two_processes_that_resume_at_once_exactly_one_goes_on(path: Path) -> None:
    work(path, "ask", ["pay 1", "count"])
    answer = [["c0", "approve"]]
    with till(path, path, "race", answer) as one, till(path, path, "race", answer) as two:
        for process in (one, two):
            assert process.said() == "ready"
        for process in (one, two):
            process.tell()
        outcomes = sorted(json.loads(process.rest()) for process in (one, two))
    assert outcomes[0] == ["completed", "done", ["paid 1", "counted"]]
    assert outcomes[1][0] == "refused"
    assert did(path) == ["pay 1", "count"]


@pytest.mark.behaviour("B-ME-4", "B-PA-2")
@pytest.mark.rule("R-MEM-5")
@pytest.mark.parametrize("how", ["recover", "message"])
async def test_killed_while_an_approved_call_runs_it_does_not_run_again(
    path: Path, how: str
) -> None:
    work(path, "ask", ["count", "pay 1", "look"])
    with till(path, path, "resume", [["c1", "approve"]], "pay 1") as process:
        assert process.said() == "at pay 1"
        process.kill()
    assert did(path) == ["count", "pay 1"]
    if how == "recover":
        status, text, results = work(path, "recover")
        assert (status, text, results[0], results[2]) == ("completed", "done", "counted", "seen")
        assert results[1].startswith(UNKNOWN)
    else:
        store, model = SQLite(path), Scripted("it may be paid")
        await Agent(model, advisors=[Memory(store)]).run("And?", conversation="c")
        strictly(model)
        await store.close()
    assert did(path)[:2] == ["count", "pay 1"]
    assert sum(line.startswith("pay") for line in did(path)) == 1


@pytest.mark.behaviour("B-ME-4")
@pytest.mark.rule("R-TOOL-10", "R-MEM-5")
async def test_killed_while_an_idempotent_call_runs_it_runs_again_with_its_key(path: Path) -> None:
    with till(path, path, "ask", ["count", "look"], "look") as process:
        assert process.said() == "at look"
        process.kill()
    assert work(path, "recover") == ["completed", "done", ["counted", "seen"]]
    first, second = did(path)[1:]
    assert first == second
    assert did(path)[0] == "count"
    await check_log(path, [
        "user: Pay.", "assistant: +count +look", "tool: counted", "tool: seen", "assistant: done",
    ])  # fmt: skip
