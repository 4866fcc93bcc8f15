"""The tools of `EngineContract`. They stand in a module of their own so that an engine that runs
tools in other processes can import them there.

Calls that must meet, or hold each other up, do so through files: that works across processes.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from retinue.errors import ToolError
from retinue.tools import ToolContext, ToolReturn, tool

PATIENCE: Final = 20.0
"""Seconds after which a call that waits for another gives up, and its test fails."""

LABEL: ContextVar[str] = ContextVar("LABEL", default="unset")


def wait_for(file: Path) -> None:
    """Returns when the file is there. TimeoutError: it never came."""
    end = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{file.name} never came")
        time.sleep(0.002)


@tool
async def echo(text: str) -> str:
    """Gives the text back, on the loop."""
    return text


@tool
def echo_sync(text: str) -> str:
    """Gives the text back, from a thread."""
    return text


@tool
def meet(folder: str, me: str, other: str) -> str:
    """Says that it is there, and waits for another."""
    (Path(folder) / me).touch()
    wait_for(Path(folder) / other)
    return me


@tool(serial=True)
def note_serial(folder: str, name: str) -> str:
    """Notes its begin and its end, in a batch that runs in call order."""
    return _note(folder, name)


@tool
def note(folder: str, name: str) -> str:
    """Notes its begin and its end."""
    return _note(folder, name)


def _note(folder: str, name: str) -> str:
    with (Path(folder) / "notes").open("a") as notes:
        notes.write(f"{name} begins\n")
        notes.flush()
        notes.write(f"{name} ends\n")
    return name


@tool(timeout=0.2)
def hang(folder: str) -> str:
    """Takes longer than its time."""
    wait_for(Path(folder) / "release")
    return "too late"


@tool(timeout=0.2)
async def hang_async() -> str:
    """Takes longer than its time, on the loop."""
    await asyncio.sleep(PATIENCE)
    return "too late"


@tool
async def hold(folder: str) -> str:
    """Says that it has begun, and does not end."""
    (Path(folder) / "begun").touch()
    await asyncio.sleep(PATIENCE)
    return "too late"


@tool
def label() -> str:
    """What the caller has set."""
    return LABEL.get()


@tool
async def label_async() -> str:
    """What the caller has set, seen from the loop."""
    return LABEL.get()


@tool
def write(value: int) -> ToolReturn:
    """Writes to the state."""
    return ToolReturn(f"wrote {value}", {"slot": value})


@tool
def write_stream(to: int) -> ToolReturn:
    """Writes to the state, and gives numbers one after another."""
    return ToolReturn(count_async.function(to), {"slot": to})


@tool
async def write_stream_async(to: int) -> ToolReturn:
    """The same on the loop."""
    return ToolReturn(count_async.function(to), {"slot": to})


@tool
def write_and_fail(value: int) -> ToolReturn:
    """Would write to the state, and fails."""
    raise ValueError(f"did not write {ToolReturn('', {'slot': value}).writes['slot']}")


@tool
def look(ctx: ToolContext) -> list[Any]:
    """What a tool may know."""
    return [
        ctx.call_id, ctx.turn_id, ctx.conversation, ctx.owner, ctx.data, ctx.state["slot"],
        ctx.context["tenant"], ctx.cancel.cancelled,
    ]  # fmt: skip


class Picky(Exception):
    """Needs two arguments, so pickling it by the usual way fails on the other side."""

    def __init__(self, what: str, *, why: str) -> None:
        super().__init__(f"{what}, since {why}")


class Unclear(Exception):
    """Only its cause says what kind of failure it is."""


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise LookupError("no words")


class Signal(BaseException):
    """Stands outside `Exception`, as control-flow signals of libraries do."""


@tool
def fail(kind: str) -> str:
    """Fails in one of many ways."""
    raise _failure(kind)


@tool
async def fail_async(kind: str) -> str:
    """Fails in one of many ways, on the loop."""
    raise _failure(kind)


def _failure(kind: str) -> BaseException:
    made: dict[str, BaseException] = {
        "plain": ValueError("no such city"),
        "picky": Picky("no", why="so it is"),
        "signal": Signal("stop here"),
        "group": ExceptionGroup("two", [ValueError("one"), ConnectionError("gone")]),
        "again": ToolError("busy", failure="transient", retry_after=3.5),
        "quota": ToolError("no money left", failure="environment"),
        "assert": AssertionError("not so"),
        "unclear": Unclear("no answer"),
        "mute": Mute(),
        "fatal": MemoryError("full"),
    }
    made["unclear"].__cause__ = TimeoutError()
    return made[kind]


@dataclass
class Point:
    """A value that is not JSON by itself."""

    x: int
    tags: set[str]


@tool
def give(kind: str) -> Any:
    """Gives a value of one of many kinds."""
    made: dict[str, Any] = {
        "none": None,
        "text": "as it is",
        "bytes": b"\x00\xff",
        "set": {"b", "a"},
        "nested": {"at": Point(1, {"x"}), "list": [1, None]},
        "iterator": (n * n for n in range(3)),
        "unpicklable": _Odd(),
    }
    return made[kind]


class _Odd:
    def __reduce__(self) -> Any:
        raise TypeError("stays where it is")

    def __str__(self) -> str:
        return "odd"


@tool
def count(to: int) -> Iterator[int]:
    """Gives numbers, one after another."""
    yield from range(to)


@tool
async def count_async(to: int) -> AsyncIterator[int]:
    """Gives numbers, one after another, on the loop."""
    for n in range(to):
        yield n
