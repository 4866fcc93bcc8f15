import asyncio

from retinue import Agent
from retinue.advisors import Memory
from retinue.models import Scripted
from retinue.stores import InMemory, Timeline


async def main() -> None:
    store = InMemory()
    model = Scripted("Paris.", "Two million.", "Rome.", "Three million.", "Five.")
    agent = Agent(model, advisors=[Memory(store)])
    first = await agent.run("The capital of France?", conversation="c-1")
    await agent.run("How many people?", conversation="c-1")

    # region fork
    other = await agent.regenerate("c-1", turn=first.id, question="And of Italy?", fork="c-2")
    await agent.run("How many people?", conversation="c-2")
    print(other.text, await Timeline(store).lineage("c-2"))
    # endregion

    # region again
    await agent.regenerate("c-1", question="How many bridges, about?")
    for point in await Timeline(store).points("c-1"):
        print(point.question, point.paused)
    # endregion
    print([message.text for message in model.requests[-1].messages])


asyncio.run(main())
