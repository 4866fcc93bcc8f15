import asyncio

from retinue import Agent, events
from retinue.advisors import Feed, Forward
from retinue.models import Say, Scripted


async def watch(feed: Feed) -> None:
    async for turn in feed:
        async for event in turn:
            if isinstance(event, events.TextChunk):
                print("watched:", event.text)
        print("in all:", turn.text)


async def main() -> None:
    feed = Feed()
    queue: asyncio.Queue[events.Event] = asyncio.Queue()
    model = Scripted(Say(text=["It ", "rains."]))  # or "openai:gpt-5-mini", "local" …
    agent = Agent(model, advisors=[Forward(feed, queue)])
    watching = asyncio.create_task(watch(feed))
    result = await agent.run("The weather in Oslo?")
    feed.close()
    await watching
    print("queued:", queue.qsize(), "events")
    print("answer:", result.text)


asyncio.run(main())
