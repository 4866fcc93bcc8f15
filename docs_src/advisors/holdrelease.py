import asyncio

from retinue import Agent, events
from retinue.advisors import HoldRelease, Stop
from retinue.models import Say, Scripted


async def check(sentence: str) -> str | Stop | None:  # plain or async
    if "password" in sentence:
        return Stop("It was about to give a password away.", "I cannot tell you that.")
    return sentence.replace("ACME", "our partner") if "ACME" in sentence else None


async def main() -> None:
    model = Scripted(
        Say(text=["Hel", "lo. AC", "ME is open un", "til 5 p.m. Bye."]),
        Say(text=["Of course. The pass", "word is swordfish."]),
    )
    agent = Agent(model, advisors=[HoldRelease(check, hold="sentence")])
    for question in ("When do you open?", "How do I log in?"):
        async with agent.stream(question) as turn:
            async for event in turn:
                if isinstance(event, events.TextChunk):
                    print("shown:", event.text)
                elif isinstance(event, events.AttemptDiscarded):
                    print("taken back")
        result = await turn.result()
        print(result.status, result.reason or "")


asyncio.run(main())
