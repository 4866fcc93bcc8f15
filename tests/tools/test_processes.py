"""Tools in processes: `ProcessPool`, and `isolation="process"` under another engine."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.messages import ToolCall
from retinue.testing import engine_tools
from retinue.testing.engines import Asked, EngineContract, outcomes, texts
from retinue.tools import (
    CancelToken,
    Concurrent,
    Engine,
    ProcessPool,
    ToolContext,
    invoke,
    tool,
)


@pytest.fixture(scope="module")
def processes() -> Iterator[Engine]:
    """One pool for the whole module, since a process takes long to start."""
    engine = ProcessPool(2)
    yield engine
    asyncio.run(engine.close())


@pytest.mark.rule("R-ENGINE-1", "R-ENGINE-3")
class TestProcessPool(EngineContract):
    @pytest.fixture
    def engine(self, processes: Engine) -> Engine:
        return processes


@tool(isolation="process", timeout=1)
def spin(folder: str) -> None:
    """Never ends by itself, and would leave a trace if it outlived its time."""
    (Path(folder) / "began").touch()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if (Path(folder) / "release").exists():
            (Path(folder) / "late").touch()
            return


@tool(isolation="process")
def process_id() -> int:
    """Where it runs."""
    return os.getpid()


@tool
def die() -> None:
    """Takes its process down."""
    os._exit(3)


@tool
def killed() -> None:
    """Is ended from outside, as by a system that is out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@tool
def nothing_but_data(ctx: ToolContext) -> str:
    """Needs the context."""
    return str(ctx.data)


@pytest.fixture(scope="module")
def isolating() -> Iterator[Engine]:
    engine = Concurrent()
    yield engine
    asyncio.run(engine.close())


class TestIsolation:
    """`isolation="process"` under an engine that otherwise runs threads."""

    @pytest.fixture
    def engine(self, isolating: Engine) -> Engine:
        return isolating

    @pytest.mark.rule("R-TOOL-9")
    async def test_a_tool_runs_in_a_process_of_its_own(self, engine: Engine) -> None:
        (response,) = await outcomes(engine, Asked(process_id))
        assert response.ok
        assert int(response.result.text) != os.getpid()

    @pytest.mark.rule("R-TOOL-9")
    async def test_a_time_limit_truly_ends_the_work(self, engine: Engine, tmp_path: Path) -> None:
        (response,) = await outcomes(engine, Asked(spin, folder=str(tmp_path)))
        assert response.failure == "transient"
        assert (tmp_path / "began").exists()
        (tmp_path / "release").touch()
        (again,) = await outcomes(engine, Asked(process_id))
        assert again.ok
        assert not (tmp_path / "late").exists()


class TestProcesses:
    @pytest.fixture
    def engine(self, processes: Engine) -> Engine:
        return processes

    @pytest.mark.rule("R-FAIL-1")
    async def test_a_process_that_dies_is_the_failure_of_its_call(self, engine: Engine) -> None:
        (response,) = await outcomes(engine, Asked(die))
        assert response.failure == "transient"
        assert "The process of the tool 'die' died (exit code 3)." in response.result.text
        assert texts(await outcomes(engine, Asked(engine_tools.echo, text="x"))) == ["x"]

    @pytest.mark.rule("R-FAIL-3")
    async def test_a_process_that_is_killed_is_told_from_one_that_never_began(
        self, engine: Engine
    ) -> None:
        (response,) = await outcomes(engine, Asked(killed))
        assert response.failure == "transient"
        assert "The process of the tool 'killed' was killed" in response.result.text
        assert "__main__" not in response.result.text

    @pytest.mark.rule("R-FAIL-3")
    async def test_a_function_that_cannot_be_sent_is_told_so(self, engine: Engine) -> None:
        @tool
        def local() -> str:
            """Stands inside a test."""
            return ""

        (response,) = await outcomes(engine, Asked(local))
        assert response.failure == "environment"
        assert "'local' cannot run in another process: it is defined inside" in (
            response.result.text
        )

    async def test_data_that_cannot_be_pickled_matters_to_tools_that_take_it(
        self, engine: Engine
    ) -> None:
        ctx = ToolContext(call_id="c", turn_id="t", data=lambda: None, cancel=CancelToken())
        call = ToolCall("c", "any")
        taking = await invoke(engine, call, nothing_but_data, {}, ctx, names=())
        other = await invoke(engine, call, engine_tools.echo, {"text": "x"}, ctx, names=())
        assert taking.failure == "environment"
        assert "ctx.data or ctx.state cannot be pickled" in taking.result.text
        assert other.result.text == "x"


@pytest.mark.rule("R-ENGINE-2", "R-FAIL-3")
@pytest.mark.parametrize("begun", [True, False], ids=["running", "starting"])
async def test_closing_a_pool_ends_the_calls_that_run_in_it(tmp_path: Path, begun: bool) -> None:
    engine = ProcessPool(1)
    held = Asked(engine_tools.hold, folder=str(tmp_path))
    call = asyncio.create_task(outcomes(engine, held))
    if begun:
        await asyncio.to_thread(engine_tools.wait_for, tmp_path / "begun")
    else:
        await asyncio.sleep(0)
    await engine.close()
    (response,) = await asyncio.wait_for(call, 10)
    assert response.failure == "environment"
    assert "The pool was closed while the tool 'hold' ran in it." in response.result.text


SCRIPT = """
import asyncio, os, signal, sys, time
from pathlib import Path
from retinue.testing.engine_tools import wait_for
from retinue.testing.engines import Asked, outcomes, texts
from retinue.tools import Concurrent, ProcessPool, tool

os.cpu_count = lambda: 6
folder = Path(sys.argv[1])
if __name__ != "__main__":
    (folder / f"process {os.getpid()}").touch()
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:  # the others are still starting when the pool is closed
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        wait_for(folder / "closing")
        time.sleep(0.5)

@tool(isolation="process")
def work():
    return "done"

async def main():
    engine = ENGINE
    print(texts(await outcomes(engine, Asked(work))))
    (folder / "closing").touch()
    await engine.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.rule("R-ENGINE-2", "R-TOOL-9")
@pytest.mark.parametrize("engine", ["Concurrent()", "ProcessPool(2)"])
def test_few_processes_start_and_closing_while_they_do_is_quiet(
    tmp_path: Path, engine: str
) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "folder"
    script.write_text(SCRIPT.replace("ENGINE", engine))
    folder.mkdir()
    ran = subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("['done']\n", "", 0)
    assert 1 <= len(list(folder.glob("process *"))) <= 2


@pytest.mark.rule("R-FAIL-3")
def test_a_script_without_a_guard_is_told_what_it_lacks(tmp_path: Path) -> None:
    script, folder = tmp_path / "script.py", tmp_path / "folder"
    bare = SCRIPT.replace("ENGINE", "ProcessPool(1)").replace('if __name__ == "__main__":', "if 1:")
    script.write_text(bare)
    folder.mkdir()
    ran = subprocess.run(
        [sys.executable, script, folder],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},  # who says it is ended with the pool
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "A script that starts processes needs the guard" in ran.stdout
