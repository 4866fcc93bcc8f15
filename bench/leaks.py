"""`python -m bench leaks`: ten thousand turns over HTTP, of which some fail and some are left.

One turn in ten meets a fault of its vendor, one in ten is left by its reader, the others run to
their end, half of them streamed; they go through every adapter. Afterwards nothing may be open,
and the second half may not have taken more memory than the first.

The vendors run in a process of their own, so that only the callers' connections, tasks and memory
are counted.
"""

import asyncio
import contextlib
import gc
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from retinue import Agent
from retinue.chains.events import TextChunk
from retinue.errors import ModelError
from retinue.models import Anthropic, Gemini, ModelRetry, OpenAI, Responses
from retinue.testing.dialects import (
    AnthropicMessages,
    ChatCompletions,
    GeminiContent,
    OpenAIResponses,
)
from retinue.testing.faulty import FaultyVendor
from retinue.testing.vendor import KEY, TEXT, Step

ROOT: Final = Path(__file__).parents[1]
TURNS: Final = 10_000
WIDTH: Final = 40
"""Turns at once."""

DIALECTS: Final = (ChatCompletions, AnthropicMessages, OpenAIResponses, GeminiContent)
FAULTS: Final = {
    "reset early": Step(fault="reset"),
    "reset late": Step(fault="reset", at="within"),
    "close early": Step(fault="close", at="headers"),
    "close late": Step(fault="close", at="within"),
    "broken": Step(fault="error", at="within", message="The GPU is on fire."),
    "stopped": Step(fault="stop", at="within"),
    "busy": Step(status=503, message="Come back later."),
    "web page": Step(html=True),
}
SCRIPT: Final = (
    *(structs.replace(step, when=f"<{kind}>", repeat=True) for kind, step in FAULTS.items()),
    Step(fault="hang", at="within", when="<silence>", repeat=True),
    Step(repeat=True),
)


class Left(Struct, frozen=True):
    """What is there after the turns.

    Attributes:
        failed: turns that failed, as they should.
        left: turns that their readers left.
        done: turns with the whole answer.
        tasks: tasks that were not there before.
        files: open files and connections that were not there before.
        blocks: pieces of memory that the second half took and did not give back.
        peak_kb: KiB by which the second half raised the peak of memory.
    """

    failed: int
    left: int
    done: int
    tasks: int
    files: int
    blocks: int
    peak_kb: int


async def leaks(turns: int = TURNS) -> Left:
    """Runs the turns, and counts what they leave.

    Raises:
        AssertionError: an answer was not what it should have been, or a vendor still has a
            connection.
    """
    with _Vendors() as vendors:
        agents = _agents(vendors.urls)
        await _half(agents, vendors, range(10 * WIDTH))  # fills pools and caches
        tasks, files = len(asyncio.all_tasks()), _files()
        counts: dict[str, int] = {"failed": 0, "left": 0, "done": 0}
        marks: list[tuple[int, int]] = []
        for half in (range(turns // 2), range(turns // 2, turns)):
            for outcome, count in (await _half(agents, vendors, half)).items():
                counts[outcome] += count
            marks.append((sys.getallocatedblocks(), _peak()))
        (blocks, peak), (blocks_after, peak_after) = marks
        return Left(
            **counts,
            tasks=len(asyncio.all_tasks()) - tasks,
            files=_files() - files,
            blocks=blocks_after - blocks,
            peak_kb=peak_after - peak,
        )


def _agents(urls: Sequence[str]) -> list[Agent]:
    chat, messages, responses, gemini = urls
    models = (
        OpenAI("gpt-4o", base_url=chat, gateway="openai", api_key=KEY),
        Anthropic("claude-haiku-4-5", base_url=messages, api_key=KEY),
        Responses("gpt-5-mini", base_url=responses, gateway="openai", api_key=KEY),
        Gemini("gemini-3.8-flash", base_url=gemini, api_key=KEY),
    )
    return [Agent(model, retry=ModelRetry(attempts=2, base=0.0)) for model in models]


async def _half(agents: Sequence[Agent], vendors: "_Vendors", numbers: range) -> dict[str, int]:
    """Runs some of the turns, closes the models, and checks that the vendors are alone."""
    counts: dict[str, int] = {}
    for start in range(numbers.start, numbers.stop, WIDTH):
        batch = range(start, min(start + WIDTH, numbers.stop))
        turns = (_turn(agents[n // 10 % len(agents)], n) for n in batch)
        for outcome in await asyncio.gather(*turns):
            counts[outcome] = counts.get(outcome, 0) + 1
    for agent in agents:
        await agent.model.close()
    await asyncio.to_thread(vendors.wait_until_idle)
    gc.collect()
    return counts


async def _turn(agent: Agent, number: int) -> str:
    place, round_ = number % 10, number // 40
    if place == 3:
        kinds = list(FAULTS)
        return await _failing(agent, kinds[round_ % len(kinds)])
    if place == 7:
        return await (_read_a_little(agent) if round_ % 2 else _cancelled(agent, round_ % 23))
    if place % 2:
        async with agent.stream("fine") as turn:
            text = "".join([event.text async for event in turn if type(event) is TextChunk])
    else:
        text = (await agent.run("fine")).text
    assert text == "".join(TEXT), text
    return "done"


async def _failing(agent: Agent, kind: str) -> str:
    try:
        async with agent.stream(f"<{kind}>") as turn:
            await turn.result()
    except ModelError:
        return "failed"
    return "done"


async def _read_a_little(agent: Agent) -> str:
    async with agent.stream("<silence>") as turn:
        async for event in turn:
            if type(event) is TextChunk:
                break
    return "left"


async def _cancelled(agent: Agent, steps: int) -> str:
    """Cancelled after so many steps of the loop: while connecting, waiting or reading."""
    task = asyncio.create_task(agent.run("<silence>"))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return "left"


def _files() -> int:
    return len(os.listdir("/dev/fd"))


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak  # there it is in bytes


# -- the vendors --------------------------------------------------------------------------------


class _Vendors:
    """A faulty vendor of each dialect, in a process of their own."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.leaks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        self.urls = self._heard()

    def __enter__(self) -> "_Vendors":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def wait_until_idle(self) -> None:
        """Returns when they have no connection."""
        assert self._process.stdin is not None
        self._process.stdin.write("idle?\n")
        self._process.stdin.flush()
        assert self._heard() == ["idle"]

    def _heard(self) -> list[str]:
        assert self._process.stdout is not None
        return self._process.stdout.readline().split()


async def _serve() -> None:
    """The vendors until standard input ends. They answer each line when no connection is open."""
    async with contextlib.AsyncExitStack() as stack:
        vendors = [await stack.enter_async_context(FaultyVendor(each())) for each in DIALECTS]
        for vendor in vendors:
            vendor.script(*SCRIPT)
        print(*(vendor.url for vendor in vendors), flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            for vendor in vendors:
                await vendor.idle()
            print("idle", flush=True)


if __name__ == "__main__":
    asyncio.run(_serve())
