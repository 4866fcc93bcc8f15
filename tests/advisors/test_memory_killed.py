"""A process that dies while a tool runs, and another one that goes on with the conversation."""

from pathlib import Path

import pytest

from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.models import OpenAI
from retinue.models.scripted import Scripted
from retinue.stores import SQLite
from tests.advisors.talking import kept, sent, soon, strictly
from tests.provider import running
from tests.stores.children import child

DYING = """
from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.models.scripted import Scripted, Say, call
from retinue.tools import Sequential

@tool
async def quick() -> str:
    "Is done at once."
    return "done"

@tool
async def pay(amount: int) -> str:
    "Takes its time."
    print("paying", flush=True)
    await asyncio.Event().wait()
    return "never"

async def main():
    paying = Say(text="I pay", calls=[call("quick"), call("pay", amount=7)])
    script = ["hello", [call("quick")], paying]
    agent = Agent(
        Scripted(*script), tools=[quick, pay], engine=Sequential(), advisors=[Memory(SQLite(path))]
    )
    await agent.run("hi", conversation="c", owner="ann")
    await agent.run("pay 7", conversation="c", owner="ann")

asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a conversation whose process was killed while it paid."""
    file = tmp_path / "chat.db"
    with child(DYING, file) as process:
        assert process.said() == "paying"
        process.kill()
    return file


@pytest.mark.rule("R-MEM-2", "R-MEM-5", "R-MEM-6")
@pytest.mark.behaviour("B-ME-4")
async def test_after_a_kill_the_next_turn_works_and_its_request_is_valid(path: Path) -> None:
    store, model = SQLite(path), Scripted("It did not come through.", "Yes.")
    agent = Agent(model, advisors=[Memory(store, wait=False)])
    before = await kept(store, owner="ann")
    assert before[-2:] == ["assistant: I pay +quick +pay", "tool: done"]
    answer = await soon(agent.run("did it work?", conversation="c", owner="ann"))
    assert answer.text == "It did not come through."
    strictly(model)
    assert sent(model)[: len(before)] == before
    healed = sent(model)[len(before) : -1]
    assert len(healed) == 1
    assert all("the process ended before this call did" in line for line in healed)
    await soon(agent.run("sure?", conversation="c", owner="ann"))
    strictly(model)
    assert sum("process ended" in line for line in await kept(store, owner="ann")) == 1
    await store.close()


@pytest.mark.rule("R-MEM-5")
@pytest.mark.behaviour("B-ME-4")
async def test_after_a_kill_a_strict_provider_takes_the_next_request(path: Path) -> None:
    @tool
    async def pay(amount: int) -> str:
        """Takes its time."""
        return f"paid {amount}"

    with running() as provider:
        provider.script(
            "killed",
            [{"tools": [{"name": "pay", "args": {"amount": 7}}]}, {"text": "Paid now."}],
            on=["arguments_json"],
        )
        model = OpenAI("gpt-4o", base_url=provider.openai("killed"), api_key=provider.key)
        store = SQLite(path)
        agent = Agent(model, tools=[pay], advisors=[Memory(store)])
        try:
            answer = await soon(agent.run("again, please", conversation="c", owner="ann"))
        finally:
            await agent.close()
            await store.close()
        assert answer.text == "Paid now."
        assert [request["status"] for request in provider.log("killed")] == [200, 200]
