"""Time limits of tools (R-TOOL-9): what counts, who is stopped, and what is left running."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from retinue.testing import engine_tools
from retinue.testing.engine_tools import PATIENCE, wait_for
from retinue.testing.engines import Asked, outcomes, texts
from retinue.tools import (
    Concurrent,
    Sequential,
    ThreadPool,
    ToolContext,
    tool,
)


@pytest.mark.rule("R-TOOL-9")
async def test_the_time_of_a_tool_goes_before_that_of_its_engine(tmp_path: Path) -> None:
    engine = Concurrent(timeout=0.05)
    patient = engine_tools.echo.with_(timeout=30)
    hasty = engine_tools.hold
    responses = await outcomes(engine, Asked(patient, text="x"), Asked(hasty, folder=str(tmp_path)))
    assert texts(responses) == ["x", "The tool 'hold' gave no result within 0.05 seconds."]


@pytest.mark.rule("R-TOOL-9", "R-TOOL-3")
@pytest.mark.behaviour("B-LO-13")
async def test_a_hung_sync_tool_is_given_up_and_can_see_that_it_was() -> None:
    saw, ended = threading.Event(), threading.Event()

    @tool(timeout=0.1)
    def stuck(ctx: ToolContext) -> None:
        """Runs until it is told that nobody waits."""
        end = time.monotonic() + PATIENCE
        while not ctx.cancel.cancelled and time.monotonic() < end:
            time.sleep(0.002)
        if ctx.cancel.cancelled:
            saw.set()
        ended.set()

    @tool
    def nested(ctx: ToolContext) -> bool:
        """Has no time limit, outlasts the other, and is not told to stop."""
        ended.wait(PATIENCE)
        return ctx.cancel.cancelled

    (alone,) = await outcomes(Concurrent(), Asked(stuck))
    assert alone.failure == "transient"
    assert await asyncio.to_thread(ended.wait, PATIENCE)
    assert saw.is_set()
    ended.clear()
    saw.clear()
    both = await outcomes(Concurrent(), Asked(stuck), Asked(nested))
    assert texts(both)[1] == "false"
    assert saw.is_set()


@pytest.mark.rule("R-TOOL-9")
@pytest.mark.behaviour("B-LO-14")
async def test_an_async_tool_past_its_time_is_truly_cancelled() -> None:
    ended: list[str] = []

    @tool(timeout=0.02)
    async def slow() -> None:
        """Notes how it ends."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    (response,) = await outcomes(Sequential(), Asked(slow))
    assert (response.failure, ended) == ("transient", ["cancelled"])


async def test_a_time_limit_holds_for_a_plain_function_that_gives_a_coroutine() -> None:
    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    @tool(timeout=0.02)
    def wrapped() -> Any:
        """As a decorator of an async function leaves it."""
        return forever()

    (response,) = await outcomes(Concurrent(), Asked(wrapped))
    assert response.failure == "transient"


async def test_a_timeout_error_of_the_tool_itself_keeps_its_own_words() -> None:
    @tool(timeout=30)
    async def far() -> str:
        """Fails by itself."""
        raise TimeoutError("the far side is silent")

    @tool(timeout=30)
    def near() -> str:
        """Fails by itself, in a thread."""
        raise TimeoutError("the near side is silent")

    assert texts(await outcomes(Concurrent(), Asked(far), Asked(near))) == [
        "TimeoutError: the far side is silent",
        "TimeoutError: the near side is silent",
    ]


SCRIPT = """
import asyncio, time
from retinue.testing.engines import Asked, outcomes
from retinue.tools import Concurrent, tool

@tool(timeout=0.05)
def hangs():
    time.sleep(60)

(response,) = asyncio.run(outcomes(Concurrent(), Asked(hangs)))
print(response.failure)
"""


@pytest.mark.rule("R-TOOL-9")
def test_a_hung_tool_does_not_keep_the_interpreter_from_ending() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("transient\n", 0), ran.stderr


@pytest.mark.rule("R-TOOL-9")
async def test_waiting_for_a_thread_does_not_count_as_time(tmp_path: Path) -> None:
    engine = ThreadPool(1)
    folder = str(tmp_path)
    first = asyncio.create_task(
        outcomes(engine, Asked(engine_tools.meet, folder=folder, me="a", other="release"))
    )
    await asyncio.to_thread(wait_for, tmp_path / "a")
    second = asyncio.create_task(
        outcomes(engine, Asked(engine_tools.echo_sync.with_(timeout=0.1), text="x"))
    )
    await asyncio.wait([second], timeout=0.15)
    (tmp_path / "release").touch()
    assert texts(await second) == ["x"]
    assert texts(await first) == ["a"]
    await engine.close()
