import asyncio

from retinue import Agent, Reject, Reply, tool
from retinue.chains import Snapshot
from retinue.models import Scripted
from retinue.models.scripted import call
from retinue.tools import ask_user

KEY = "a secret that only the server has"


# region tools
@tool(asks="external")
def pick_file(kind: str) -> str:
    """Lets the user pick a file of their own computer."""
    raise NotImplementedError  # it runs in the browser


# endregion


async def main() -> None:
    model = Scripted(
        [call("ask_user", question="Which year?"), call("pick_file", kind="pdf")],
        lambda request: "; ".join(
            one.text for message in request.messages for one in message.tool_results
        ),
    )
    # region ask
    agent = Agent(model, tools=[ask_user(), pick_file])  # no memory: the client keeps the pause
    result = await agent.run("Summarise my tax return.")
    sealed = result.snapshot.seal(KEY)

    question, file = Snapshot.unseal(sealed, KEY).pending
    print(question.kind, question.arguments)
    print(file.kind, file.arguments)
    answers = {question.id: Reply("2026"), file.id: Reject("The user cancelled.")}
    result = await agent.resume(Snapshot.unseal(sealed, KEY), answers)
    print(result.text)
    # endregion


asyncio.run(main())
