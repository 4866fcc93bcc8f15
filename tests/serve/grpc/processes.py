"""Real processes beside the test's event loop: workers, a gateway, a client."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from retinue.chains.events import Event
from tests.serve.scenes import within

ROOT: Final = Path(__file__).parents[3]
START: Final = 30.0
"""Seconds that a process may take to start on a busy machine."""


class Child:
    """A process and what it prints."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    async def line(self) -> str:
        """The next line that it prints; empty if it is over."""
        assert self._process.stdout is not None
        return (await within(self._process.stdout.readline(), START)).decode().strip()

    async def until(self, words: str) -> str:
        """The next line with these words."""
        while words not in (line := await self.line()):
            assert line, f"the process ended without saying {words!r}"
        return line

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self._process.send_signal(number)

    async def kill(self) -> None:
        """Ends it as a power cut would, and waits until it is gone."""
        if self._process.returncode is None:
            self._process.kill()
        await within(self._process.wait())

    async def code(self) -> int:
        """How it ended."""
        return await within(self._process.wait())


@asynccontextmanager
async def child(folder: Path, *args: str, env: Mapping[str, str] = {}) -> AsyncIterator[Child]:
    """A Python process that sees the folder, until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *args,
        cwd=ROOT,
        stdout=PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "RETINUE_TEST_FOLDER": str(folder), **env},
    )
    one = Child(process)
    try:
        yield one
    finally:
        await one.kill()
        assert process.stdout is not None
        print((await process.stdout.read()).decode())  # shown where the test has failed


@asynccontextmanager
async def server(folder: Path, *args: str) -> AsyncIterator[tuple[Child, str]]:
    """`retinue serve` on a free port, and its URL."""
    async with child(folder, "-m", "retinue.cli", "serve", "--port", "0", *args) as one:
        yield one, (await one.until("Listening on")).split()[-1]


@asynccontextmanager
async def worker(
    folder: Path,
    address: str,
    *agents: str,
    name: str = "w",
    ready: bool = True,
    env: Mapping[str, str] = {},
) -> AsyncIterator[Child]:
    """`retinue worker` with agents of `served`, attached."""
    targets = [f"tests.serve.grpc.served:{agent}" for agent in agents]
    args = ("-m", "retinue.cli", "worker", *targets, "--connect", address, "--name", name)
    async with child(folder, *args, env=env) as one:
        if ready:
            await one.until("is attached to")
        yield one


async def line_of(file: Path, count: int = 1) -> str:
    """The line of this number in a file, once it is there."""
    async with asyncio.timeout(START):
        while True:
            lines = _lines(file)
            if len(lines) >= count:
                return lines[count - 1]
            await asyncio.sleep(0.01)


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def seen_until(stream: Any, kind: type[Event], into: list[Event]) -> None:
    """Reads a turn up to an event of this kind."""
    async with asyncio.timeout(START):
        while not (into and isinstance(into[-1], kind)):
            into.append(await anext(stream))
