import asyncio

from retinue import Agent, Approve, tool
from retinue.advisors import Memory
from retinue.models import Scripted
from retinue.models.scripted import call
from retinue.stores import SQLite


# region agent
@tool(sensitive=True)
async def pay(to: str, amount: int) -> str:
    """Pays somebody."""
    return f"paid {amount} to {to}"


def clerk(model) -> Agent:
    return Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(SQLite("bank.db"))])


# endregion


async def main() -> None:
    asking = Scripted(call("pay", to="Ann", amount=500))
    answering = Scripted("Done: Ann has her money.")

    # region pause
    result = await clerk(asking).run("Pay Ann.", conversation="c-1", owner="ada")
    print(result.status, "-", result.reason)
    # endregion

    # region resume
    agent = clerk(answering)  # in another process, on another day
    for waiting in await agent.pending("c-1", owner="ada"):
        print(waiting.tool, waiting.arguments, waiting.answers)
        answers = {waiting.id: Approve({"to": "Ann", "amount": 50})}
    result = await agent.resume("c-1", answers, owner="ada")
    print(result.messages[-2].tool_results[0].text)
    print(result.text)
    # endregion


asyncio.run(main())
