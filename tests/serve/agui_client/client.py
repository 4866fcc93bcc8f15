"""AG-UI's public client, which runs on Node.js, in the hand of a test."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from tests.serve.scenes import BOUND, within

_DRIVER: Final = Path(__file__).parent / "driver.mjs"
_LINE: Final = 2**24  # bytes


class Seen(Struct):
    """What the client saw of a run, and what it holds after it.

    Attributes:
        events: those of the run, as its subscribers get them.
        said: what it complained of.
        failed: why it gave the run up, or None.
        interrupts: what it must answer in the next run.
    """

    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    said: list[str] = field(default_factory=list[str])
    failed: str | None = None
    result: Any = None
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    state: Any = None
    interrupts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def kinds(self) -> list[str]:
        """The types of the events, in order."""
        return [event["type"] for event in self.events]

    @property
    def last(self) -> dict[str, Any]:
        """The last event."""
        return self.events[-1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type."""
        return [event for event in self.events if event["type"] == kind]

    @property
    def held(self) -> list[tuple[str, Any]]:
        """The role of each message that the client holds, with its content or its calls."""
        return [
            (one["role"], one.get("content") or [_asked(call) for call in one.get("toolCalls", ())])
            for one in self.messages
        ]


def _asked(call: dict[str, Any]) -> tuple[str, Any]:
    return call["function"]["name"], json.loads(call["function"]["arguments"])


class Client:
    """One `HttpAgent`: one thread, on one server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._commands = process.stdin
        self._lines = process.stdout
        self._added = 0

    async def ask(self, content: Any, **options: Any) -> Seen:
        """A message of the user's, and a run."""
        self.add(role="user", content=content)
        return await self.run(**options)

    def add(self, **message: Any) -> None:
        """Puts a message into the thread."""
        self._added += 1
        self._send("add", {"id": f"mine-{self._added}", **message})

    async def run(self, **options: Any) -> Seen:
        """A run, to its end."""
        self.start(**options)
        return await within(self.seen())

    def start(self, **options: Any) -> None:
        """Begins a run."""
        self._send("run", options)

    def abort(self) -> None:
        """Stops it."""
        self._send("abort")

    async def seen(self) -> Seen:
        """What was seen, when the run has ended."""
        events: list[dict[str, Any]] = []
        said: list[str] = []
        while line := await self._lines.readline():
            ((kind, value),) = json.loads(line).items()
            if kind == "event":
                events.append(value)
            elif kind == "said":
                said.append(value)
            else:
                return Seen(events, said, **value)
        raise AssertionError("the client has ended")

    def _send(self, *command: Any) -> None:
        self._commands.write(json.dumps(command).encode() + b"\n")


@asynccontextmanager
async def client_of(
    node: str, url: str, *, thread: str = "t-1", **config: Any
) -> AsyncIterator[Client]:
    """The client of an agent's URL; `config` is more of what an `HttpAgent` takes."""
    told = json.dumps({"url": url, "threadId": thread, **config})
    process = await asyncio.create_subprocess_exec(
        *(node, str(_DRIVER), told),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE,
    )
    try:
        yield Client(process)
    finally:
        async with asyncio.timeout(BOUND):
            await process.communicate(b"")  # it ends by the end of its input
