"""The works. Each is a coroutine function that returns its figures; each runs in a fresh process.

Times are CPU times of the process (`time.process_time`), which other load on the machine disturbs
least. Microseconds and milliseconds say so in the key.
"""

import asyncio
import gc
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench import bare
from bench.models import ANSWER, Calls, Deltas, bare_calls, one_shot
from retinue import Agent, ChatRequest, ChatResponse, Layer, Limits, assistant, tool, user
from retinue.advisors import Memory
from retinue.chains import CallNext, Scope
from retinue.messages import Delta, TextDelta

Figures = dict[str, float]
FREE = Limits(rounds=10_000, repeats=10_000)
QUESTION = "What is the capital of France?"


async def noop(x: str) -> str:
    """Do nothing.

    Args:
        x: the input.
    """
    return "ok"


async def pass_on(request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]) -> Any:
    """A layer that does nothing."""
    return await call_next(request)


class Same:
    """A transform that changes nothing."""

    def feed(self, delta: Delta) -> tuple[Delta]:
        """The delta itself."""
        return (delta,)

    def flush(self) -> tuple[Delta, ...]:
        """Nothing is held."""
        return ()


async def cpu_us(once: Callable[[], Awaitable[object]], least: int = 5) -> float:
    """Mean CPU time of one call, in microseconds, over at least 0.3 s after a warm-up."""
    for _ in range(3):
        await once()
    began, count = time.process_time(), 0
    while count < least or time.process_time() - began < 0.3:
        await once()
        count += 1
    return (time.process_time() - began) / count * 1e6


async def one_shot_turn() -> Figures:
    """A turn with one answer, and with no-op layers round the model call."""
    figures: Figures = {}

    async def model(messages: list[bare.Message]) -> bare.Message:
        return {"role": "assistant", "content": ANSWER}

    for layers in (0, 1, 10, 50):
        advisors = [Layer(f"layer {n}", chat=pass_on) for n in range(layers)]
        agent = Agent(one_shot(), advisors=advisors)
        assert (await agent.run(QUESTION)).text == ANSWER
        figures[f"us_{layers}"] = await cpu_us(lambda agent=agent: agent.run(QUESTION))
        wrapped = bare.layered(model, layers)
        figures[f"bare_us_{layers}"] = await cpu_us(
            lambda wrapped=wrapped: bare.loop(wrapped, {}, QUESTION)
        )
    for layers in (10, 50):
        figures[f"us_a_layer_{layers}"] = (figures[f"us_{layers}"] - figures["us_0"]) / layers
    return figures


async def parallel_tools() -> Figures:
    """Eight tool calls at once, then the answer."""
    agent = Agent(Calls(1, 8), tools=[noop], limits=FREE)
    assert (await agent.run(QUESTION)).text == ANSWER
    model = bare_calls(1, 8)
    return {
        "ms": await cpu_us(lambda: agent.run(QUESTION)) / 1e3,
        "bare_ms": await cpu_us(lambda: bare.loop(model, {"noop": noop}, QUESTION)) / 1e3,
    }


async def long_loop() -> Figures:
    """Fifty and two hundred rounds of one call each."""
    figures: Figures = {}
    for rounds in (50, 200):
        agent = Agent(Calls(rounds), tools=[noop], limits=FREE)
        assert (await agent.run(QUESTION)).rounds == rounds + 1
        model = bare_calls(rounds)
        figures[f"ms_{rounds}"] = await cpu_us(lambda agent=agent: agent.run(QUESTION)) / 1e3
        figures[f"bare_ms_{rounds}"] = (
            await cpu_us(lambda model=model: bare.loop(model, {"noop": noop}, QUESTION)) / 1e3
        )
    return figures


async def streamed_delta(count: int = 20_000) -> Figures:
    """One streamed delta, read as an event, with and without transforms."""
    figures: Figures = {}
    for transforms in (0, 5):
        advisors = [Layer(f"same {n}", stream=lambda _: Same()) for n in range(transforms)]
        agent = Agent(Deltas([TextDelta("token ")] * count), advisors=advisors)

        async def read(agent: Agent = agent) -> None:
            async for _ in agent.stream(QUESTION):
                pass

        figures[f"us_{transforms}"] = await cpu_us(read) / count
    figures["us_a_transform"] = (figures["us_5"] - figures["us_0"]) / 5
    return figures


def source_of_tools(count: int) -> str:
    """Python source of so many functions, `tool_0` and on."""
    return "\n".join(
        f'async def tool_{n}(x: str) -> str:\n    """Do nothing, number {n}.\n\n    Args:\n'
        f'        x: the input.\n    """\n    return "ok"\n'
        for n in range(count)
    )


async def many_tools(count: int = 500) -> Figures:
    """Five hundred tools: declared, built into an agent, their schemas read for a first request."""
    functions: dict[str, Any] = {}
    exec(source_of_tools(count), functions)
    Agent(one_shot(), tools=[noop]).tools[0].spec  # noqa: B018 - warms the imports
    began = time.process_time()
    agent = Agent(one_shot(), tools=[tool(functions[f"tool_{n}"]) for n in range(count)])
    built = time.process_time()
    for each in agent.tools:
        assert each.spec.parameters["properties"]["x"]["type"] == "string"
    await agent.run(QUESTION)
    return {
        "ms": (time.process_time() - began) * 1e3,
        "build_ms": (built - began) * 1e3,
    }


async def windowed_turn() -> Figures:
    """A turn with a window of 20 messages on a conversation in SQLite."""
    from retinue.stores import SQLite

    figures: Figures = {}
    for stored in (100, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            store = SQLite(Path(folder) / "bench.db")
            for start in range(0, stored, 100):
                pairs = [(user(f"question {n}"), assistant(f"answer {n}")) for n in range(50)]
                messages = [message for pair in pairs for message in pair]
                await store.append("c", messages, turn=f"turn {start}")
            agent = Agent(one_shot(), advisors=[Memory(store, max_messages=20)])
            await agent.run(QUESTION, conversation="c")
            written, began, turns = _written(), time.perf_counter(), 0
            cpu = time.process_time()
            while turns < 20 or time.perf_counter() - began < 0.5:
                await agent.run(QUESTION, conversation="c")
                turns += 1
            figures[f"ms_{stored}"] = (time.process_time() - cpu) / turns * 1e3
            figures[f"wall_ms_{stored}"] = (time.perf_counter() - began) / turns * 1e3
            figures[f"bytes_{stored}"] = (_written() - written) / turns
            await store.close()
    figures["ratio"] = figures["ms_10000"] / figures["ms_100"]
    return figures


async def importing() -> Figures:
    """`import retinue` in a fresh process, beside Python itself and aiohttp."""
    figures: Figures = {}
    for name in ("python", "retinue", "aiohttp"):
        code = "pass" if name == "python" else f"import {name}"
        figures[f"{name}_s"] = sorted([await _start_up(code) for _ in range(5)])[2]
    return figures


async def _start_up(code: str) -> float:
    """CPU seconds of a fresh Python after it has run the code."""
    script = f"import time\n{code}\nprint(time.process_time())"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return float(output)


async def concurrent_turns(count: int = 1_000) -> Figures:
    """A thousand turns at once, each with a tool call, half of them streamed."""
    agent = Agent(Calls(1), tools=[noop], limits=FREE)
    await agent.run(QUESTION)
    before = _memory_mb()

    async def streamed() -> None:
        async for _ in agent.stream(QUESTION):
            pass

    began = time.process_time()
    await asyncio.gather(*(streamed() if n % 2 else agent.run(QUESTION) for n in range(count)))
    spent = time.process_time() - began
    peak = _peak_mb()
    gc.collect()
    return {
        "us_a_turn": spent / count * 1e6,
        "peak_mb_over_start": max(0.0, peak - before),
        "tasks_left": len(asyncio.all_tasks()) - 1,
        "scopes_left": sum(isinstance(each, Scope) for each in gc.get_objects()),
    }


def _written() -> int:
    """Bytes this process has written so far; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def _memory_mb() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _peak_mb()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


IN_PROCESS: dict[str, Callable[[], Awaitable[Figures]]] = {
    each.__name__: each
    for each in (
        one_shot_turn, parallel_tools, long_loop, streamed_delta, many_tools, windowed_turn,
        importing, concurrent_turns,
    )
}  # fmt: skip
