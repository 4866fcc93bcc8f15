import asyncio

from retinue import Agent, ToolContext, tool
from retinue.advisors import Memory
from retinue.models import Scripted
from retinue.models.scripted import call
from retinue.stores import InMemory
from retinue.tools import Sequential

store = InMemory()
power = [False]


# region tools
@tool
async def book(seat: str) -> str:
    """Books a seat."""
    print("book", seat)
    return f"{seat} is booked"


@tool(retry=True)
async def charge(amount: int, ctx: ToolContext) -> str:
    """Charges the card; the bank knows a payment by its key, and takes it once."""
    print("charge", amount, ctx.idempotency_key.split(":")[0])
    if not power[0]:
        raise SystemExit("the power is gone")
    return f"{amount} charged"


# endregion


def agent(*script) -> Agent:
    tools = [book, charge]
    return Agent(Scripted(*script), tools=tools, engine=Sequential(), advisors=[Memory(store)])


async def main() -> None:
    try:
        batch = [call("book", seat="4A"), call("charge", amount=80)]
        await agent(batch).run("Seat 4A, please.", conversation="c-1")
    except SystemExit as error:
        print(error)
    power[0] = True
    # region recover
    result = await agent("Seat 4A is yours.").recover("c-1")
    print([one.text for message in result.messages for one in message.tool_results])
    print(result.text)
    # endregion
    print(await agent().recover("c-1"))


asyncio.run(main())
