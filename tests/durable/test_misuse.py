"""What cannot work is refused by name, before anything is done."""

from pathlib import Path
from typing import Any

import pytest

from retinue import Agent, Approve, tool
from retinue.advisors import Memory
from retinue.durable import Durable
from retinue.errors import ConfigError, MissingExtraError, PauseNotFound
from retinue.models import Scripted
from retinue.models.scripted import call
from tests.structure.sources import SRC
from tests.structure.surface import fresh_import, weight_faults


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "My service"}, "name='My service'"),
        ({"name": "ab"}, "name='ab'"),
        ({"version": " "}, "version=' '"),
        ({"lease": 0.1}, "lease=0.1"),
        ({"lease": float("nan")}, "lease=nan"),
        ({"grace": -1}, "grace=-1"),
        ({"database": "mysql://host/turns"}, "'mysql' address"),
    ],
)
def test_a_value_that_cannot_be_one_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Durable(Agent(Scripted("never")), **{"database": "turns.db", **options})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"retinue\[dbos\]"):
        Durable(Agent(Scripted("never")), database="turns.db")


def test_importing_the_room_loads_neither_the_engine_nor_a_database() -> None:
    assert weight_faults(fresh_import(SRC, "retinue.durable")) == []


async def test_one_that_is_not_open_says_how_to_open_it(tmp_path: Path) -> None:
    durable = Durable(Agent(Scripted("never")), database=tmp_path / "turns.db")
    with pytest.raises(ConfigError, match="async with"):
        await durable.run("Go.")
    await durable.close()


async def test_there_is_one_in_a_process_and_the_second_says_so(tmp_path: Path) -> None:
    first = Durable(Agent(Scripted("done")), database=tmp_path / "turns.db")
    second = Durable(Agent(Scripted("never")), database=tmp_path / "turns.db")
    async with first:
        with pytest.raises(ConfigError, match="Another Durable is open"):
            await second.open()
        assert (await first.run("Go.")).text == "done"


async def test_questions_and_answers_that_fit_nothing_are_refused(tmp_path: Path) -> None:
    @tool(sensitive=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    agent = Agent(Scripted(call("pay"), "done"), tools=[pay], advisors=[Memory()], gate="sensitive")
    async with Durable(agent, database=tmp_path / "turns.db") as durable:
        with pytest.raises(ConfigError, match="empty"):
            await durable.run(" ")
        with pytest.raises(ConfigError, match="workflow_id"):
            await durable.run("Go.", workflow_id=" ")
        with pytest.raises(PauseNotFound):
            await durable.resume("c", {})
        paused = await durable.run("Pay.", conversation="c")
        assert paused.status == "paused"
        with pytest.raises(ConfigError, match="No call 'other' waits"):
            await durable.resume("c", {"other": Approve()})
        (pending,) = paused.pending
        ended = await durable.resume("c", {pending.id: Approve()})
        assert (ended.id, ended.text) == (paused.id, "done")
        with pytest.raises(PauseNotFound):
            await durable.resume("c", {pending.id: Approve()})


async def test_a_turn_inside_a_turn_is_refused(tmp_path: Path) -> None:
    @tool
    async def more() -> str:
        """Begins another turn."""
        await durable.start("More.")
        return "begun"

    durable = Durable(Agent(Scripted(call("more"), "done"), tools=[more]), database=tmp_path / "t")
    async with durable:
        ended = await durable.run("Go.")
    (result,) = ended.messages[2].tool_results
    assert "inside another one" in result.text
