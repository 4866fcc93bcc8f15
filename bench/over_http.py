"""The works over HTTP, each beside the floor: two loops, one server, the same requests and answers.

Both loops are in one process, on one core, and take turns in slices, so that other load on the
machine falls on both. Before a work is measured, its answers are checked, and that both have sent
the same.
"""

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp

from bench.floor import Floor, schema_of
from bench.models import ANSWER
from bench.server import ROOT, TOKEN, serving
from bench.works import FREE, QUESTION, Figures, Same, noop, source_of_tools
from retinue import Agent, Layer, tool
from retinue.chains.events import TextChunk
from retinue.models import OpenAI
from retinue.tools import Tool

INSTRUCTIONS: Final = "You are a helpful assistant."
SLICES: Final = 5
SLICE: Final = 0.1  # seconds of CPU, at least
CHUNKS: Final = 2_000
AT_ONCE: Final = 100

Work = Callable[[], Awaitable[object]]


class Pair:
    """retinue and the floor at one server."""

    def __init__(self, base_url: str, session: aiohttp.ClientSession) -> None:
        self._base_url = base_url
        self._session = session

    def ours(self, model: str, *, tools: tuple[Tool, ...] = (), transforms: int = 0) -> Agent:
        """An agent for this script."""
        return Agent(
            OpenAI(model, base_url=self._base_url, api_key="key"),
            instructions=INSTRUCTIONS,
            tools=list(tools),
            advisors=[Layer(f"same {n}", stream=lambda _: Same()) for n in range(transforms)],
            limits=FREE,
        )

    def floor(self, model: str, **tools: Any) -> Floor:
        """The loop written by hand for this script."""
        return Floor(self._session, self._base_url, model, INSTRUCTIONS, **tools)

    async def check(self, ours: Work, floor: Work) -> None:
        """Whether both send the same, by the last request of a turn.

        Raises:
            AssertionError: they do not.
        """
        bodies: list[Any] = []
        for work in (ours, floor):
            await work()
            async with self._session.get(self._base_url.removesuffix("/v1") + "/heard") as heard:
                bodies.append(json.loads(await heard.read()))
        assert bodies[0] == bodies[1], f"retinue sent {bodies[0]}, the floor {bodies[1]}"


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    """Both, with a server of their own."""
    connector = aiohttp.TCPConnector(limit=0)
    with serving() as base_url:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Pair(base_url, session)


async def side_by_side(key: str, scale: float, ours: Work, floor: Work) -> Figures:
    """CPU time of each, by turns: the median of the slices' means.

    Args:
        key: what the figure is called; the floor's has `bare_` before it.
        scale: how many of its unit are a second.
        ours: one run of retinue.
        floor: one run of the floor.
    """
    for work in (ours, floor):
        for _ in range(3):
            await work()
    means: tuple[list[float], list[float]] = ([], [])
    for _ in range(SLICES):
        for work, found in zip((ours, floor), means, strict=True):
            gc.collect()  # each pays for its own garbage
            began, count = time.process_time(), 0
            while not count or time.process_time() - began < SLICE:
                await work()
                count += 1
            found.append((time.process_time() - began) / count * scale)
    return {key: statistics.median(means[0]), f"bare_{key}": statistics.median(means[1])}


async def turns(
    both: Pair, model: str, key: str, scale: float, *, tools: bool = False, at_once: int = 1
) -> Figures:
    """Turns without a stream, each answer checked."""
    schemas = [schema_of("noop", "Do nothing.")]
    agent = both.ours(model, tools=(tool(noop),) if tools else ())
    loop = both.floor(model, **({"tools": {"noop": noop}, "schemas": schemas} if tools else {}))

    async def ours() -> None:
        text = (await agent.run(QUESTION)).text
        assert text == ANSWER, text

    async def floor() -> None:
        text = await loop.run(QUESTION)
        assert text == ANSWER, text

    await both.check(ours, floor)
    return await side_by_side(key, scale / at_once, _many(ours, at_once), _many(floor, at_once))


def _many(work: Work, at_once: int) -> Work:
    async def many() -> None:
        await asyncio.gather(*(work() for _ in range(at_once)))

    return work if at_once == 1 else many


async def http_turn() -> Figures:
    """A question and an answer, one turn at a time and a hundred at once."""
    async with pair() as both:
        one = await turns(both, "oneshot", "us", 1e6)
        return one | await turns(both, "oneshot", "us_at_once", 1e6, at_once=AT_ONCE)


async def http_loop() -> Figures:
    """Eight calls in one round; one call in each of fifty and of two hundred rounds."""
    async with pair() as both:
        figures = await turns(both, "parallel-8", "ms_8", 1e3, tools=True)
        for rounds in (50, 200):
            figures |= await turns(both, f"loop-{rounds}", f"ms_{rounds}", 1e3, tools=True)
        return figures


async def http_stream() -> Figures:
    """A streamed chunk, read as text: all at once, with and without transforms; one a write."""
    figures: Figures = {}
    async with pair() as both:
        for kind, transforms in (("burst", 0), ("burst", 5), ("drip", 0), ("drip", 5)):
            figures |= await _streamed(both, kind, transforms)
    return figures


async def _streamed(both: Pair, kind: str, transforms: int) -> Figures:
    model = f"{kind}-{CHUNKS}"
    agent = both.ours(model, transforms=transforms)
    loop = both.floor(model)

    async def ours() -> None:
        heard: list[str] = []
        async for event in agent.stream(QUESTION):
            if type(event) is TextChunk:
                heard.append(event.text)
        assert heard == [TOKEN] * CHUNKS, heard[:10]

    async def floor() -> None:
        heard: list[str] = []
        await loop.stream(QUESTION, heard.append)
        assert heard == [TOKEN] * CHUNKS, heard[:10]

    await both.check(ours, floor)
    return await side_by_side(f"us_{kind}_{transforms}", 1e6 / CHUNKS, ours, floor)


async def http_tools(count: int = 500) -> Figures:
    """Five hundred tools: built into an agent, offered for the first time, and ever after."""
    functions: dict[str, Any] = {}
    exec(source_of_tools(count), functions)
    names = [f"tool_{n}" for n in range(count)]
    tools = {name: functions[name] for name in names}
    schemas = [schema_of(f"tool_{n}", f"Do nothing, number {n}.") for n in range(count)]
    async with pair() as both:
        await both.ours("oneshot", tools=(tool(noop),)).run(QUESTION)  # warms the imports
        loop = both.floor("oneshot", tools=tools, schemas=schemas)
        gc.collect()
        began = time.process_time()
        agent = both.ours("oneshot", tools=tuple(tool(functions[name]) for name in names))
        answer = (await agent.run(QUESTION)).text
        first = (time.process_time() - began) * 1e3
        assert answer == ANSWER, answer

        async def ours() -> None:
            assert (await agent.run(QUESTION)).text == ANSWER

        async def floor() -> None:
            assert await loop.run(QUESTION) == ANSWER

        await both.check(ours, floor)
        return {"ms_first": first} | await side_by_side("ms", 1e3, ours, floor)


async def first_answer() -> Figures:
    """From the start of a process to its first answer: by the clock, and in CPU time."""
    figures: Figures = {}
    with serving() as base_url:
        for key, code in (("", _OURS), ("bare_", _FLOOR)):
            runs = [_started(code, base_url) for _ in range(3)]
            figures[f"{key}s"] = statistics.median(elapsed for elapsed, _ in runs)
            figures[f"{key}cpu_s"] = statistics.median(cpu for _, cpu in runs)
    return figures


_OURS: Final = """
import asyncio, sys, time
from retinue import Agent
from retinue.models import OpenAI
async def main():
    agent = Agent(OpenAI("oneshot", base_url=sys.argv[1], api_key="key"))
    print((await agent.run(sys.argv[2])).text, time.process_time(), sep="|", flush=True)
asyncio.run(main())
"""
_FLOOR: Final = """
import asyncio, sys, time
import aiohttp
from bench.floor import Floor
async def main():
    async with aiohttp.ClientSession() as session:
        answer = await Floor(session, sys.argv[1], "oneshot", "").run(sys.argv[2])
    print(answer, time.process_time(), sep="|", flush=True)
asyncio.run(main())
"""


def _started(code: str, base_url: str) -> tuple[float, float]:
    """Seconds until the answer was there, and the CPU seconds of the process until then."""
    began = time.perf_counter()
    command = [sys.executable, "-c", code, base_url, QUESTION]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        answer, _, cpu = process.stdout.readline().partition("|")
        elapsed = time.perf_counter() - began
    assert answer == ANSWER, answer
    return elapsed, float(cpu)


HTTP_WORKS: Final[dict[str, Callable[[], Awaitable[Figures]]]] = {
    each.__name__: each for each in (http_turn, http_loop, http_stream, http_tools, first_answer)
}
