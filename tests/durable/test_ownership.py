"""A worker that is held for dead and is not: it may do nothing more in the turn, and knows it."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from dbos import DBOS

from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.durable import Durable
from retinue.models import Scripted
from retinue.models.scripted import call
from retinue.stores import InMemory
from tests.durable.handing import BOUND
from tests.durable.processes import worker
from tests.durable.worker import TURN


@pytest.mark.rule("R-MEM-1")
async def test_a_turn_that_was_taken_over_is_not_gone_on_with(tmp_path: Path) -> None:
    reached, go, ran = asyncio.Event(), asyncio.Event(), Counter[str]()

    @tool
    async def book(what: str) -> str:
        """Books."""
        ran[what] += 1
        reached.set()
        await go.wait()
        return f"booked {what}"

    store, model = InMemory(), Scripted(call("book", what="a"), call("book", what="b"), "done")
    agent = Agent(model, tools=[book], advisors=[Memory(store)])
    async with Durable(agent, database=tmp_path / "turns.db", lease=0.3) as durable:
        handle = await durable.start("Go.", conversation="c")
        await asyncio.wait_for(reached.wait(), BOUND)
        # What another worker does that holds this one for dead:
        await DBOS.resume_workflow_async(handle.id, queue_name="retinue-takeover")
        go.set()
        ended = await asyncio.wait_for(handle.result(), BOUND)
    assert (ended.status, ended.text) == ("completed", "done")
    assert ran == {"a": 1, "b": 1}
    results = [m.tool_results[0].text for m in ended.messages if m.role == "tool"]
    # The first run could not record the result, but the log has it.
    assert results == ["booked a", "booked b"]
    log = [entry.message.id for entry in await store.tail("c")]
    assert log == [message.id for message in ended.messages]


@pytest.mark.rule("R-LOOP-8")
def test_a_turn_is_cancelled_from_another_process(tmp_path: Path) -> None:
    database = str(tmp_path / "turns.db")
    with (
        worker("begin", database, tmp_path, "before book") as first,
        worker("serve", database, tmp_path) as second,
    ):
        assert first.said() == "at before book"
        second.cancel(TURN)
        assert second.result(TURN)["status"] == "cancelled"
        assert first.said() == "cancelled before book"  # its tool was, too
