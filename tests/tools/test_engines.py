"""The engines: the suite that all of them share, and what only one of them promises."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from retinue.errors import ConfigError
from retinue.testing import engine_tools
from retinue.testing.engine_tools import PATIENCE, wait_for
from retinue.testing.engines import Asked, EngineContract, outcomes, texts
from retinue.tools import (
    Concurrent,
    Engine,
    ProcessPool,
    Sequential,
    ThreadPool,
    tool,
)


@pytest.mark.rule("R-ENGINE-1", "R-ENGINE-3")
class TestConcurrent(EngineContract):
    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = Concurrent()
        yield engine
        await engine.close()


@pytest.mark.rule("R-ENGINE-1", "R-ENGINE-3")
class TestConcurrentWithALimit(EngineContract):
    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = Concurrent(limit=4, tag_limits={"database": 1})
        yield engine
        await engine.close()


@pytest.mark.rule("R-ENGINE-1", "R-ENGINE-3")
class TestSequential(EngineContract):
    concurrent = False

    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = Sequential()
        yield engine
        await engine.close()


@pytest.mark.rule("R-ENGINE-1", "R-ENGINE-3")
class TestThreadPool(EngineContract):
    @pytest.fixture
    async def engine(self) -> AsyncIterator[Engine]:
        engine = ThreadPool(4)
        yield engine
        await engine.close()


class Meter:
    """Counts how many calls are inside at once, and lets them out when told."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()

    async def stay(self) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        await self.leave.wait()
        self.inside -= 1
        return "left"


@pytest.mark.rule("R-ENGINE-2")
async def test_a_limit_bounds_the_bodies_that_run_at_once() -> None:
    meter, engine = Meter(), Concurrent(limit=2)
    calls = [Asked(tool(meter.stay)) for _ in range(5)]
    batch = asyncio.create_task(outcomes(engine, *calls))
    await meter.entered.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert meter.inside == 2
    meter.leave.set()
    assert texts(await batch) == ["left"] * 5
    assert meter.most == 2


@pytest.mark.rule("R-ENGINE-2")
async def test_a_tag_limit_bounds_the_tools_of_that_tag_only() -> None:
    meter, engine = Meter(), Concurrent(tag_limits={"database": 1})
    query = tool(meter.stay).with_(tags=["database", "slow"])
    batch = asyncio.create_task(
        outcomes(engine, Asked(query), Asked(query), Asked(tool(meter.stay)))
    )
    await meter.entered.wait()
    for _ in range(5):
        await asyncio.sleep(0)
    assert meter.inside == 2
    meter.leave.set()
    assert texts(await batch) == ["left"] * 3


@pytest.mark.rule("R-TOOL-9")
async def test_waiting_for_a_place_under_a_limit_does_not_count_as_time() -> None:
    meter, engine = Meter(), Concurrent(limit=1)
    first = asyncio.create_task(outcomes(engine, Asked(tool(meter.stay))))
    await meter.entered.wait()
    second = asyncio.create_task(
        outcomes(engine, Asked(engine_tools.echo.with_(timeout=0.1), text="x"))
    )
    await asyncio.wait([second], timeout=0.15)
    meter.leave.set()
    assert texts(await second) == ["x"]
    assert texts(await first) == ["left"]


@pytest.mark.rule("R-ENGINE-2")
@pytest.mark.parametrize("how", ["timed out", "cancelled"])
async def test_a_sync_tool_that_was_given_up_keeps_its_place_until_it_ends(
    tmp_path: Path, how: str
) -> None:
    engine = Concurrent(limit=1)
    if how == "timed out":
        (response,) = await outcomes(engine, Asked(engine_tools.hang, folder=str(tmp_path)))
        assert response.failure == "transient"
    else:
        held = Asked(engine_tools.meet, folder=str(tmp_path), me="begun", other="release")
        call = asyncio.create_task(outcomes(engine, held))
        await asyncio.to_thread(wait_for, tmp_path / "begun")
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
    waiting = asyncio.create_task(outcomes(engine, Asked(engine_tools.echo, text="x")))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done, "the thread still holds the only place"
    (tmp_path / "release").touch()
    assert texts(await waiting) == ["x"]
    assert texts(await outcomes(engine, Asked(engine_tools.echo_sync, text="y"))) == ["y"]


def test_an_engine_forgets_the_loops_that_are_closed() -> None:
    engine = Concurrent(limit=1)

    async def turn() -> "weakref.ref[asyncio.AbstractEventLoop]":
        # Two calls, so that one waits: that ties the gate to its loop.
        await outcomes(engine, *[Asked(engine_tools.echo_sync, text="x")] * 2)
        return weakref.ref(asyncio.get_running_loop())

    loops = [asyncio.run(turn()) for _ in range(3)]
    gc.collect()
    assert [loop() is None for loop in loops[:2]] == [True, True]


def test_one_engine_serves_several_event_loops() -> None:
    engine = Concurrent(limit=1)

    async def turn() -> list[str]:
        calls = [Asked(engine_tools.echo, text="a"), Asked(engine_tools.echo_sync, text="b")]
        answers = texts(await outcomes(engine, *calls))
        await engine.close()
        return answers

    assert asyncio.run(turn()) == asyncio.run(turn()) == ["a", "b"]


@pytest.mark.rule("R-ENGINE-2")
@pytest.mark.parametrize("engine", [Sequential(), Concurrent()], ids=["sequential", "one call"])
async def test_no_task_is_built_where_none_is_needed(engine: Engine) -> None:
    tasks: list[Any] = []

    @tool
    async def who() -> str:
        """Which task it runs in."""
        tasks.append(asyncio.current_task())
        return ""

    calls = 2 if isinstance(engine, Sequential) else 1
    await outcomes(engine, *[Asked(who)] * calls)
    assert set(tasks) == {asyncio.current_task()}


@pytest.mark.rule("R-TOOL-5", "R-ENGINE-2")
@pytest.mark.behaviour("B-LO-8")
async def test_four_calls_that_wait_do_so_at_the_same_time() -> None:
    all_wait = threading.Barrier(4, timeout=PATIENCE)

    @tool
    def nap() -> str:
        """Is over when four of them have begun."""
        all_wait.wait()
        return "up"

    assert texts(await outcomes(Concurrent(), *[Asked(nap)] * 4)) == ["up"] * 4


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.behaviour("B-LO-7")
async def test_a_tool_that_raises_cancelled_by_itself_has_failed_and_no_more() -> None:
    @tool
    async def odd() -> str:
        """Nobody cancelled it."""
        raise asyncio.CancelledError("by itself")

    @tool
    def odd_too() -> str:
        """Nobody cancelled it either."""
        raise asyncio.CancelledError("by itself")

    for engine in (Concurrent(), Sequential()):
        responses = await outcomes(
            engine, Asked(odd), Asked(odd_too), Asked(engine_tools.echo, text="x")
        )
        assert texts(responses) == ["CancelledError: by itself"] * 2 + ["x"]


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_stop_iteration_is_a_failure_like_any_other(how: str) -> None:
    @tool
    def sync() -> str:
        """Lets one escape."""
        return next(iter([]))

    @tool
    async def coroutine() -> str:
        """Lets one escape."""
        return next(iter([]))

    (response,) = await outcomes(Concurrent(), Asked(sync if how == "sync" else coroutine))
    assert (response.ok, response.failure) == (False, "semantic")


@pytest.mark.rule("R-ENGINE-2")
async def test_a_thread_pool_runs_no_more_than_its_size(tmp_path: Path) -> None:
    engine = ThreadPool(1)
    hung = Asked(engine_tools.hang, folder=str(tmp_path))
    (first,) = await outcomes(engine, hung)
    assert first.failure == "transient"
    waiting = asyncio.create_task(outcomes(engine, Asked(engine_tools.echo_sync, text="x")))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done, "the abandoned call still holds the only thread"
    (tmp_path / "release").touch()
    assert texts(await waiting) == ["x"]
    await engine.close()


async def test_a_call_that_was_cancelled_before_it_had_a_thread_never_runs(tmp_path: Path) -> None:
    engine = ThreadPool(1)
    folder = str(tmp_path)
    first = asyncio.create_task(
        outcomes(engine, Asked(engine_tools.meet, folder=folder, me="a", other="release"))
    )
    await asyncio.to_thread(wait_for, tmp_path / "a")
    second = asyncio.create_task(
        outcomes(engine, Asked(engine_tools.note, folder=folder, name="never"))
    )
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    (tmp_path / "release").touch()
    await first
    assert texts(await outcomes(engine, Asked(engine_tools.echo_sync, text="x"))) == ["x"]
    assert not (tmp_path / "notes").exists()
    await engine.close()


def test_a_call_whose_loop_was_closed_before_it_had_a_thread_never_runs(tmp_path: Path) -> None:
    engine, folder = ThreadPool(1), str(tmp_path)
    busy = Asked(engine_tools.meet, folder=folder, me="a", other="release")
    late = Asked(engine_tools.note, folder=folder, name="never")
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # it would complain of the two that are lost
    lost = [loop.create_task(outcomes(engine, call)) for call in (busy, late)]
    loop.run_until_complete(asyncio.to_thread(wait_for, tmp_path / "a"))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    (tmp_path / "release").touch()
    assert texts(asyncio.run(outcomes(engine, Asked(engine_tools.echo_sync, text="x")))) == ["x"]
    assert not (tmp_path / "notes").exists()
    assert not any(task.done() for task in lost)


@pytest.mark.rule("R-ENGINE-2")
@pytest.mark.parametrize("pool", [ThreadPool, ProcessPool])
async def test_a_closed_pool_is_an_environment_failure(
    pool: type[ThreadPool] | type[ProcessPool],
) -> None:
    engine = pool(1)
    await engine.close()
    await engine.close()
    (response,) = await outcomes(engine, Asked(engine_tools.echo_sync, text="x"))
    assert response.failure == "environment"
    assert f"The {pool.__name__} of this agent is closed" in response.result.text


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Concurrent(limit=0), r"Concurrent\(limit=0\)"),
        (lambda: Concurrent(tag_limits={"db": 0}), r"tag_limits\['db'\]=0"),
        (lambda: Concurrent(timeout=-1), r"Concurrent\(timeout=-1\)"),
        (lambda: Sequential(timeout=float("nan")), r"Sequential\(timeout=nan\)"),
        (lambda: ThreadPool(True), r"ThreadPool\(size=True\)"),
        (lambda: ThreadPool(1, timeout="5"), r"ThreadPool\(timeout='5'\)"),  # type: ignore[arg-type]
        (lambda: ProcessPool(0), r"ProcessPool\(size=0\)"),
    ],
)
def test_wrong_sizes_and_limits_are_refused_at_once(make: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()
