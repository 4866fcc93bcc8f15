import asyncio

from retinue import Advisor, Agent, events
from retinue.messages import TextDelta
from retinue.models import Scripted


# region advisor
class Budget(Advisor):
    """Refuses questions that are too long, before any model is asked."""

    def __init__(self, characters: int) -> None:
        self.characters = characters

    async def turn(self, request, call_next):
        if len(request.messages[-1].text) > self.characters:
            return request.refuse("too long", answer="Please ask in fewer words.")
        return await call_next(request)


# endregion


class Shout:
    """Turns what streams by into capitals."""

    def feed(self, delta):
        return (TextDelta(delta.text.upper()) if isinstance(delta, TextDelta) else delta,)

    def flush(self):
        return ()


# region stream
class Loud(Advisor):
    """Lets the agent shout: shown, returned and stored alike."""

    def stream(self, request):
        return Shout()


# endregion


async def main() -> None:
    agent = Agent(Scripted("hello there"), advisors=[Budget(20), Loud()])
    async for event in agent.stream("Say hello."):
        if isinstance(event, events.TextChunk):
            print(event.text)
    result = await agent.run("Say hello to everybody in the room, by name.")
    print(result.status, result.blocked_by, result.text)


asyncio.run(main())
