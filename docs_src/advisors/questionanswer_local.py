import asyncio

from retinue import Agent, Settings
from retinue.advisors import QuestionAnswer
from retinue.retrieval import Lexical


async def main() -> None:
    # region local
    index = Lexical()
    await index.add_many(
        [
            "Zorblax was founded by Mira Quell.",
            "The capital of Trunthia is Velmora.",
            "Captain Orlo Finch sails the ship Marigold.",
        ]
    )
    agent = Agent(
        "local",
        settings=Settings(temperature=0, max_tokens=24),
        advisors=[QuestionAnswer(index, top_k=1)],
    )
    print((await agent.run("What is the capital of Trunthia?")).text)
    # endregion
    await index.close()
    await agent.close()


asyncio.run(main())
