"""Crashes at every write of a turn: whoever comes next finds a log to go on from (R-MEM-2, -5)."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retinue.stores import InMemory, SQLite
from tests.advisors.crashing import Death, Process, World, check, finish
from tests.advisors.scenarios import MORE, SCENARIOS, Scenario

scenarios = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all tables, to be copied: making them takes most of the time otherwise."""
    path = tmp_path_factory.mktemp("crashes") / "empty.db"

    async def make() -> None:
        store = SQLite(path)
        await store.tail("c")
        await store.close()

    asyncio.run(make())
    return path


@asynccontextmanager
async def process(
    world: World, path: Path, at: int | None = None, *, after: bool = False
) -> AsyncIterator[Process]:
    store = SQLite(path)
    try:
        yield Process(world, store, at, after=after)
    finally:
        await store.close()


async def run(scenario: Scenario, world: World, path: Path, at: int, after: bool) -> None:
    """A process that dies in its work."""
    async with process(world, path, at, after=after) as dying:
        with pytest.raises(Death):
            await scenario.drive(scenario.build(dying))


async def go_on(scenario: Scenario, world: World, path: Path) -> None:
    """The process after it: what was begun ends, and the conversation goes on."""
    async with process(world, path) as living:
        agent = scenario.build(living)
        await finish(agent)
        stored = {entry.message.text for entry in await living.store.tail("c")}
        for question in scenario.questions:
            if question not in stored:
                await agent.run(question, conversation="c")
                await finish(agent)
        assert (await agent.run(MORE, conversation="c")).text == "more"
        await check(world, living.store, scenario.once)


async def writes(scenario: Scenario) -> int:
    """How many writes the scenario makes when nobody dies."""
    living = Process(World(), InMemory())
    await scenario.drive(scenario.build(living))
    return living.writes


def points(count: int) -> Iterator[tuple[int, bool]]:
    """Before and after each write."""
    return ((at, after) for at in range(count) for after in (False, True))


async def test_there_are_more_than_two_hundred_points_to_crash_at() -> None:
    assert 2 * sum([await writes(scenario) for scenario in SCENARIOS]) > 200


@pytest.mark.rule("R-MEM-1", "R-MEM-2", "R-MEM-5", "R-HITL-2")
@pytest.mark.behaviour("B-ME-4")
@scenarios
async def test_a_crash_at_any_write_loses_nothing_and_repeats_nothing(
    scenario: Scenario, empty: Path, tmp_path: Path
) -> None:
    for at, after in points(await writes(scenario)):
        path = tmp_path / f"{at}{after}.db"
        shutil.copy(empty, path)
        world = World()
        try:
            await run(scenario, world, path, at, after)
            await go_on(scenario, world, path)
        except BaseException as error:
            error.add_note(f"the crash was {'after' if after else 'before'} write {at}")
            raise


@pytest.mark.rule("R-MEM-1", "R-MEM-5", "R-HITL-2")
@given(scenario=st.sampled_from(SCENARIOS), data=st.data())
@settings(max_examples=100)
def test_a_second_crash_while_it_goes_on_changes_nothing(
    scenario: Scenario, data: st.DataObject, empty: Path
) -> None:
    async def twice() -> None:
        first = data.draw(st.sampled_from([*points(await writes(scenario))]))
        second = data.draw(st.sampled_from([*points(6)]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(shutil.copy(empty, Path(folder) / "chat.db"))
            world = World()
            await run(scenario, world, path, *first)
            async with process(world, path, second[0], after=second[1]) as dying:
                with contextlib.suppress(Death):
                    await finish(scenario.build(dying))
            await go_on(scenario, world, path)

    asyncio.run(twice())
