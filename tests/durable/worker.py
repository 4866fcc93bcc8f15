"""A worker in a process of its own: `python -m tests.durable.worker ROLE DATABASE FOLDER [POINT]`.

Its model asks for two calls at once, then for one more, then answers. Whatever it does leaves a
line in `FOLDER/effects`. At the point that it is told it says so and waits there for ever. A role
of "begin" begins a turn, "serve" waits for those of others, "resume" answers a pause.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

from retinue import Agent, Approve, Tool, ToolContext, tool
from retinue.advisors import Memory
from retinue.chains import ChatRequest
from retinue.durable import Durable
from retinue.messages import ToolCall, Usage
from retinue.models import Scripted
from retinue.models.scripted import Say
from retinue.stores import SQLite

LEASE = 0.6
TURN = "turn-1"
PAUSED = "turn-2"


def say(line: str) -> None:
    """A line for the test that watches."""
    print(line, flush=True)


class Place:
    """Where the agent works: what it does leaves a line there, and it waits at a point."""

    def __init__(self, folder: Path, point: str) -> None:
        self._folder = folder
        self._point = point

    async def at(self, here: str) -> None:
        """Waits for ever, if this is the point."""
        if here == self._point:
            say(f"at {here}")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                say(f"cancelled {here}")
                raise

    def effect(self, line: str) -> None:
        """Leaves a line."""
        with (self._folder / "effects").open("a") as file:
            file.write(f"{line}\n")

    async def done(self, what: str, ctx: ToolContext) -> str:
        """Does something."""
        await self.at(f"before {what}")
        self.effect(f"{what} {ctx.idempotency_key}")
        await self.at(f"after {what}")
        return f"{what} is done"


def tools(place: Place) -> list[Tool]:
    """What the agent can do."""

    @tool
    async def book(ctx: ToolContext) -> str:
        """Books once; twice would be one too many."""
        return await place.done("book", ctx)

    @tool(retry=True)
    async def look(ctx: ToolContext) -> str:
        """Looks; again does no harm."""
        return await place.done("look", ctx)

    @tool(sensitive=True)
    async def pay(ctx: ToolContext) -> str:
        """Pays, when a person has approved."""
        return await place.done("pay", ctx)

    return [book, look, pay]


def agent(folder: Path, point: str) -> Agent:
    """The agent, which waits at a point."""
    place = Place(folder, point)

    async def answer(request: ChatRequest) -> Say:
        results = sum(message.role == "tool" for message in request.transcript)
        place.effect(f"model {results}")
        await place.at(f"model {results}")
        calls: tuple[str, ...] = ()
        if request.transcript[0].text == "Pay.":
            calls = ("pay",) if not results else ()
        elif results < 3:
            calls = ("look", "book") if not results else ("look",)
        said = [] if calls else ["All ", "done."]
        asked = [ToolCall("", name) for name in calls]
        return Say(text=said, calls=asked, usage=Usage(input=10, output=1))

    return Agent(
        Scripted(answer, repeat=True),
        tools=tools(place),
        advisors=[Memory(SQLite(folder / "log.db"))],
        gate="sensitive",
    )


async def main(role: str, database: str, folder: str, point: str = "") -> None:
    """Works until it is killed, or its input ends."""
    durable = Durable(agent(Path(folder), point), database=database, lease=LEASE, grace=0)
    async with durable:
        say("open")
        if role == "begin":
            await durable.start("Go.", conversation="c-1", workflow_id=TURN)
        elif role == "resume":
            paused = await durable.run("Pay.", conversation="c-1")
            answers = {call.id: Approve() for call in paused.pending}
            await durable.start_resume("c-1", answers, workflow_id=PAUSED)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            order, turn = line.split()
            if order == "cancel":
                await durable.cancel(turn)
                continue
            ended = await durable.result(turn)
            told = {
                "status": ended.status,
                "text": ended.text,
                "tokens": ended.usage.total,
                "messages": [
                    [message.id, message.role, *(one.text for one in message.tool_results)]
                    for message in ended.messages
                ],
            }
            say(json.dumps(told))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
