import asyncio

from retinue import Agent, Usage
from retinue.advisors import Quota, UsageCollector
from retinue.models import Say, Scripted


async def main() -> None:
    answer = Say(text="Rain.", usage=Usage(input=900, output=60))
    model = Scripted(answer, repeat=True)  # or "openai:gpt-5-mini", with prices=True

    # region quota
    quota = Quota(per="owner", tokens=2_000, every=86_400)
    usage = UsageCollector(quotas=[quota], expect=100, clock=lambda: 1_000_000_000)
    agent = Agent(model, advisors=[usage])
    for owner in ("ada", "ada", "ada", "bob"):
        result = await agent.run("The weather in Oslo?", owner=owner)
        print(owner, result.status, result.reason or result.text)
    print(await usage.used(quota, "ada"))
    print(usage.report())
    # endregion


asyncio.run(main())
