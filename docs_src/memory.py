import asyncio

from retinue import Agent, events
from retinue.advisors import Logging, Memory, UsageCollector
from retinue.stores import SQLite


async def main() -> None:
    # region memory
    usage = UsageCollector()
    agent = Agent(
        "local",  # or "openai:gpt-5-mini", "ollama:qwen3", "deepseek:deepseek-chat" …
        instructions="Answer in one short sentence.",
        advisors=[usage, Logging(), Memory(SQLite("chat.db"))],
    )
    await agent.run("My name is Ada and I live in Oslo.", conversation="c-1")
    async for event in agent.stream("Where do I live?", conversation="c-1"):
        if isinstance(event, events.TextChunk):
            print(event.text, end="", flush=True)
    # endregion
    print()
    print(usage.report())
    await agent.close()


asyncio.run(main())
