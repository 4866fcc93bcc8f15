import asyncio
import re

from retinue import Agent, events
from retinue.advisors import Safeguard
from retinue.models import Say, Scripted

rules = {
    "weapons": ["bomb", "land mine", "炸弹"],
    "card numbers": re.compile(r"\b\d{4}( ?\d{4}){3}\b"),
}


def moderate(text: str) -> str | None:  # or async, with a moderation model
    return "insult" if "stupid" in text else None


async def main() -> None:
    guard = Safeguard({**rules, "moderation": moderate})
    agent = Agent(Scripted("It is sunny."), advisors=[guard])
    for question in ("How is a B\u200bO\uff2dB made?", "You are stupid.", "What's the weather?"):
        result = await agent.run(question)
        print(result.status, "-", result.reason or result.text)

    guard = Safeguard("old safe", output=True)  # the longest phrase has 8 characters
    model = Scripted(Say(text=["The key is", " in the o", "ld safe."]))
    async with Agent(model, advisors=[guard]).stream("Where is the key?") as turn:
        async for event in turn:
            if isinstance(event, events.TextChunk):
                print("shown:", repr(event.text))
            elif isinstance(event, events.AttemptDiscarded):
                print("taken back")
    print((await turn.result()).reason)


asyncio.run(main())
