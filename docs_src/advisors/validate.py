import asyncio
from dataclasses import dataclass

from retinue import Agent, events
from retinue.advisors import Validate
from retinue.models import Scripted


@dataclass
class City:
    name: str
    people: int


def is_no_village(city: City) -> str | None:
    return None if city.people > 100_000 else "people: that is a village; name a city"


model = Scripted(  # or "openai:gpt-5-mini", "ollama:qwen3", "local" …
    'The city is {"name": "Oslo", "people": "many"}.',
    '```json\n{"name": "Hamar", "people": 29000}\n```',
    '{"name": "Oslo", "people": 730000}',
)


async def main() -> None:
    agent = Agent(model, advisors=[Validate(City, check=is_no_village, hold=True)])
    async with agent.stream("Name a city in Norway.") as turn:
        async for event in turn:
            if isinstance(event, events.TextChunk):
                print("shown:", event.text)
            elif isinstance(event, events.AttemptDiscarded):
                print("given up:", event.reason)
    result = await turn.result()
    print(result.output)
    print(model.requests[1].messages[-1].text)


asyncio.run(main())
