import asyncio

from retinue import Agent
from retinue.advisors import Memory, Summarizer
from retinue.models import Scripted
from retinue.stores import InMemory  # or SQLite("chat.db"), PostgreSQL(…), Redis(…)


async def main() -> None:
    model = Scripted("Hello, Ada.", "It is Oslo.", "Yes, and rain.", "You are Ada.")
    notes = Scripted("The user is called Ada and lives in Oslo.")

    # region memory
    memory = Memory(InMemory(), max_messages=6, summary=Summarizer(model=notes))
    agent = Agent(model, advisors=[memory])
    for question in ("I am Ada.", "I live in Oslo. Where is that?", "Cold there?", "Who am I?"):
        await agent.run(question, conversation="c-1")
    for message in model.requests[-1].messages:
        print(f"{message.role}: {message.text}")
    # endregion
    print(len(await memory.store.tail("c-1")), "entries in the log")


asyncio.run(main())
