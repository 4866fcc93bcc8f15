import asyncio

from retinue import Agent
from retinue.advisors import QuestionAnswer
from retinue.models import Scripted
from retinue.retrieval import Document, Lexical


async def main() -> None:
    index = Lexical()  # or Lexical("facts.db"), which lasts
    await index.add_many(
        [
            Document("Zorblax was founded by Mira Quell.", "zorblax", {"page": 12}),
            Document("The capital of Trunthia is Velmora.", "trunthia", {"page": 40}),
        ]
    )
    model = Scripted("Mira Quell founded it.")  # or "openai:gpt-5-mini", "local" …
    agent = Agent(model, advisors=[QuestionAnswer(index, strict=True)])

    result = await agent.run("Who founded Zorblax?")
    print(result.text)
    for source in result.context["sources"]:
        print(source.id, source.meta, source.text)

    result = await agent.run("Who won the cup?")
    print(result.text, f"({result.blocked_by}; the model was asked {len(model.requests)} time)")
    await index.close()


asyncio.run(main())
