"""Agents for worker processes, and a gateway for a process of its own.

What they do is seen and steered by files in the folder `RETINUE_TEST_FOLDER`, for the test that
watches is another process.
"""

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.chains import ChatRequest
from retinue.messages import TextDelta
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import SQLite

FOLDER = Path(os.environ.get("RETINUE_TEST_FOLDER", "."))


async def until(name: str) -> None:
    """Waits until a file is there."""
    async with asyncio.timeout(60):
        while not (FOLDER / name).exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def say(name: str, line: str) -> None:
    """Writes a line to a file."""
    with (FOLDER / name).open("a") as file:
        file.write(f"{line}\n")


class Halting:
    """A model that says "one ", waits for the file `go`, and says "two"."""

    name, provider = "halting", "test"

    async def generate(self, request: ChatRequest, send: Any) -> None:
        """Says it."""
        try:
            await send(TextDelta("one "))
            say("asked", str(os.getpid()))
            await until("go")
            await send(TextDelta("two"))
        except asyncio.CancelledError:
            say("cancelled", str(os.getpid()))
            raise

    async def close(self) -> None:
        """Nothing is held."""


class Pouring:
    """A model that waits for the file `go`. Asked for "1000 16" it says 1,000 pieces of 16
    characters, and a line in the file `poured` for each."""

    name, provider = "pouring", "test"

    async def generate(self, request: ChatRequest, send: Any) -> None:
        """Says it."""
        count, size = map(int, request.messages[-1].text.split())
        await until("go")
        for _ in range(count):
            await send(TextDelta("x" * size))
            say("poured", "x")

    async def close(self) -> None:
        """Nothing is held."""


@tool
async def hold() -> str:
    """Waits, and takes no notice of who cancels it."""
    say("held", str(os.getpid()))
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


@tool
async def note(text: str) -> str:
    """Notes a text."""
    say("noted", text)
    return "noted"


async def clerk_says(request: ChatRequest) -> Any:
    """Asks for a note, waits for the file `go`, and is done."""
    if request.messages[-1].role != "tool":
        return call("note", text="x")
    say("asked", str(os.getpid()))
    await until("go")
    return Say(text=["All ", "noted."])


def memory() -> Memory:
    """One file for all processes."""
    return Memory(SQLite(FOLDER / "chat.db"))


quick = Agent(Scripted(lambda request: Say(text=str(os.getpid())), repeat=True), name="quick")
pouring = Agent(Pouring(), name="pouring")
holding = Agent(Scripted(call("hold"), repeat=True), tools=[hold], name="holding")
halting = Agent(Halting(), advisors=[memory()], name="halting")
clerk = Agent(Scripted(clerk_says, repeat=True), tools=[note], advisors=[memory()], name="clerk")


async def gateway(port: int) -> None:
    """A gateway, until it is killed."""
    from retinue.serve.gateway import Gateway
    from retinue.serve.grpc import Grpc, GrpcServer

    dispatcher = Grpc()
    server = GrpcServer(Gateway(dispatcher), fleet=dispatcher.fleet, port=port)
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


async def client(address: str) -> None:
    """A client that reads one event and no more."""
    from grpc import aio

    from retinue.serve.grpc.v1 import agents_pb2 as pb
    from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub

    async with aio.insecure_channel(address) as channel:
        reading: Any = AgentsStub(channel).Run(pb.Start(agent="halting", text="x"))
        async for event in reading:
            print(event.type, flush=True)
            await asyncio.Event().wait()


def chunks(count: int, made: list[int]) -> Any:
    """So many deltas of 1 kB; `made` is how many there have been."""

    def deltas() -> Any:
        for n in range(count):
            made[0] = n + 1
            yield TextDelta("x" * 1_000)

    return deltas()


if __name__ == "__main__":
    kind, argument = sys.argv[1:]
    asyncio.run(gateway(int(argument)) if kind == "gateway" else client(argument))
