"""The table of phases: real turns make each of its moves, and no other is possible."""

import itertools
from typing import Any

import pytest

from retinue import Agent, Approve, Layer, Limits, Pause, tool
from retinue.agent.phases import MOVES, Course, Phase
from retinue.errors import InternalError
from retinue.models.scripted import Scripted, call
from tests.agent.toolbox import look

LEGAL = {(before, after) for before, afters in MOVES.items() for after in afters}


@tool
def broken() -> str:
    """Fails for want of a key."""
    raise PermissionError("no key")


@tool(return_direct=True)
def fetch() -> str:
    """Fetches."""
    return "raw"


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> set[tuple[Phase, Phase]]:
    """The moves that turns make during the test."""
    moves: set[tuple[Phase, Phase]] = set()
    to = Course.to

    def watched(self: Course, phase: Phase) -> None:
        moves.add((self.at, phase))
        to(self, phase)

    monkeypatch.setattr(Course, "to", watched)
    return moves


@pytest.mark.rule("R-LOOP-1", "R-LOOP-2")
async def test_real_turns_visit_every_move_of_the_table(visited: set[Any]) -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("no")

    await Agent(Scripted(call("look", at="x"), "done"), tools=[look]).run("?")
    await Agent(Scripted(call("fetch")), tools=[fetch]).run("?")
    await Agent(Scripted(call("fetch")), tools=[fetch], eligible=lambda answer: False).run("?")
    await Agent(Scripted(call("fetch")), tools=[fetch], limits=Limits(rounds=1)).run("?")
    await Agent(Scripted(), advisors=[Layer("guard", chat=refuse)]).run("?")
    asking = Agent(Scripted(call("look", at="x"), "done"), tools=[look], gate=lambda _: Pause())
    paused = await asking.run("?")
    assert paused.snapshot is not None
    await asking.resume(paused.snapshot, {paused.pending[0].id: Approve()})
    mended = Agent(Scripted(call("broken")), tools=[broken], gate="sensitive")
    assert (await mended.run("?")).status == "paused"
    assert visited == LEGAL


@pytest.mark.rule("R-LOOP-1")
@pytest.mark.parametrize(
    ("before", "after"),
    sorted(set(itertools.product(Phase, Phase)) - LEGAL, key=lambda move: str(move)),
)
def test_a_move_that_the_table_does_not_have_is_an_internal_error(
    before: Phase, after: Phase
) -> None:
    course = Course()
    course.at = before
    with pytest.raises(InternalError, match=f"from {before.name} to {after.name}"):
        course.to(after)
    assert course.at is before


def test_every_phase_can_be_reached_and_only_ends_lead_nowhere() -> None:
    reached = {Phase.READY}
    for _ in Phase:
        reached |= {after for before, after in LEGAL if before in reached}
    assert reached == set(Phase)
    ends = {phase for phase in Phase if not MOVES[phase]}
    assert ends == {Phase.COMPLETED, Phase.PAUSED, Phase.BLOCKED, Phase.LIMIT}
