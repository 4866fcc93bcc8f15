import asyncio

from retinue import Agent, Usage, events
from retinue.advisors import Thinking
from retinue.models import Say, Scripted

answer = Say(
    text=["<th", "ink>Oslo has 730,000 people, Bergen ", "290,000.</thi", "nk>", "Oslo."],
    usage=Usage(input=12, output=20, reasoning=17),
)


async def main() -> None:
    for thinking in (Thinking(), Thinking("hidden"), Thinking("summary", summarize=str.upper)):
        model = Scripted(answer)  # or "ollama:qwen3", "openai:gpt-5-mini", "local" …
        turn = Agent(model, advisors=[thinking]).stream("Norway's largest city?")
        async for event in turn:
            if isinstance(event, (events.ThinkingChunk, events.TextChunk)):
                print(type(event).__name__, repr(event.text))
        thoughts = Thinking.of(await turn.result())
        print(thoughts.rounds, thoughts.tokens, thoughts.text)


asyncio.run(main())
