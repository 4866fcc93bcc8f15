"""A turn that outlives the worker that it was begun on."""

import asyncio

from retinue import Agent, tool
from retinue.durable import Durable
from retinue.models import Scripted
from retinue.models.scripted import call


@tool
async def book(city: str) -> str:
    """Books a seat on the train."""
    print(f"booking a train to {city}")
    return "seat 12"


async def main() -> None:
    stuck = asyncio.Event()

    async def hang(request):
        stuck.set()
        await asyncio.Event().wait()  # a provider that never answers

    agent = Agent(Scripted(call("book", city="Oslo"), hang, "You have seat 12."), tools=[book])

    async with Durable(agent, database="turns.db", lease=1, grace=0) as first:
        await first.start("Book me a train to Oslo.", workflow_id="trip-1")
        await stuck.wait()
    print("the first worker is gone")

    async with Durable(agent, database="turns.db", lease=1) as second:
        result = await second.result("trip-1")
        print(result.status, "after", result.rounds, "rounds:", result.text)


asyncio.run(main())
