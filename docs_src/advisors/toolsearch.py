import asyncio

from retinue import Agent, Tool
from retinue.advisors import ToolSearch
from retinue.models import Scripted, call


def service(verb: str, thing: str) -> Tool:
    def run(id: int) -> str:
        return f"{verb} {thing} {id}: done"

    return Tool(run, name=f"{verb}_{thing}", description=f"Can {verb} one {thing} of a customer.")


things = ["invoice", "order", "ticket", "address", "refund"]
tools = [service(verb, thing) for verb in ("show", "cancel", "change") for thing in things]

model = Scripted(
    [call("search_tools", query="cancel order"), call("search_tools", query="change address")],
    [call("cancel_order", id=7), call("change_address", id=7)],
    "Order 7 is cancelled, and your address is changed.",
)


async def main() -> None:
    agent = Agent(model, tools=tools, advisors=[ToolSearch(mode="always", limit=1)])
    result = await agent.run("Cancel my order and change my address, please.")
    for request in model.requests:
        print([tool.name for tool in request.tools])
    print(result.text)
    report = result.context["tool_search"]
    print(f"{report.searches} searches over {report.tools} tools found {', '.join(report.found)}")


asyncio.run(main())
