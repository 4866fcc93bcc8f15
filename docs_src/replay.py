import asyncio

from retinue import Agent, Layer
from retinue.advisors import Memory
from retinue.models import Scripted
from retinue.stores import InMemory
from retinue.testing.differences import differences
from retinue.testing.replay import Recording, replay


async def polite(request, call_next):
    return await call_next(request.with_(instructions=[*request.instructions, "Be polite."]))


async def main() -> None:
    store = InMemory()
    agent = Agent(Scripted("Fog."), advisors=[Memory(store)])
    await agent.run("What is the weather?", conversation="c-1")

    recording = await Recording.of(store, "c-1")
    before = await replay(recording, agent)
    after = await replay(recording, agent.with_(advisors=[Layer("polite", chat=polite)]))
    for change in differences(before, after):
        print(change.where, change.what, *change.lines)
    print(after.status, after.text)


asyncio.run(main())
