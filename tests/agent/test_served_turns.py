"""What those who serve turns need: a turn under a given id, bounded in time, and one recovered."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, ConfigError, Limits, Reply, ToolContext, tool, user
from retinue.advisors import Memory
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory
from tests.agent.reading import kinds, read


async def wait(request: Any) -> str:
    await asyncio.Event().wait()
    return "never"


async def test_a_turn_runs_under_the_id_it_is_given_down_to_its_tools() -> None:
    seen: list[str] = []

    @tool
    def look(ctx: ToolContext) -> str:
        """Looks."""
        seen.append(ctx.turn_id)
        return "seen"

    turn = Agent(Scripted(call("look"), "Done."), tools=[look]).stream("go").prepare(id="t-1")
    await read(turn)
    assert turn.id == (await turn.result()).id == "t-1"
    assert seen == ["t-1"]


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.parametrize(
    ("own", "given", "counts"), [(None, 0.03, "0.03"), (0.03, 60, "0.03"), (60, 0.03, "0.03")]
)
async def test_a_turn_has_the_shorter_of_two_times(
    own: float | None, given: float, counts: str
) -> None:
    agent = Agent(Scripted(wait), limits=Limits(seconds=own))
    turn = agent.stream("go").prepare(seconds=given)
    await read(turn)
    outcome = await turn.result()
    assert (outcome.status, outcome.reason) == (
        "limit",
        f"The time limit of {counts} seconds is reached.",
    )


async def test_a_turn_that_has_started_or_a_time_that_is_none_is_refused() -> None:
    agent = Agent(Scripted("Hi"))
    with pytest.raises(ConfigError, match="seconds"):
        agent.stream("go").prepare(seconds=0)
    turn = agent.stream("go")
    await read(turn)
    with pytest.raises(ConfigError, match="before the turn starts"):
        turn.prepare(id="late")


async def test_a_turn_that_was_cut_off_streams_on_from_its_log() -> None:
    store = InMemory()
    await store.append("c", [user("Where were we?")], turn="t-1")
    agent = Agent(Scripted("Here."), advisors=[Memory(store)])
    turn = await agent.stream_recover("c")
    assert turn is not None
    events = await read(turn)
    assert kinds(events)[0] == "TurnStarted"
    assert ((await turn.result()).text, turn.id) == ("Here.", "t-1")
    assert await agent.stream_recover("c") is None


async def test_a_paused_turn_is_not_one_that_was_cut_off() -> None:
    @tool(asks="external")
    def locate() -> str:
        """Where the user is."""
        return ""

    agent = Agent(Scripted(call("locate"), "Oslo."), tools=[locate], advisors=[Memory()])
    result = await agent.run("Where?", conversation="c")
    with pytest.raises(ConfigError, match="is paused, not cut off"):
        await agent.stream_recover("c")
    answers = {result.pending[0].id: Reply("Oslo")}
    assert (await agent.resume("c", answers)).text == "Oslo."
