"""Logs that a dead process left behind: open calls get a result, lost questions are not sent."""

import pytest

from retinue import Agent, system, user
from retinue.advisors import Memory
from retinue.messages import ToolResult, assistant, tool_result
from retinue.models.scripted import Scripted, call
from retinue.stores import Store
from tests.advisors.talking import WAYS, Way, sent, strictly

ways = pytest.mark.parametrize("way", WAYS)


async def dangling(store: Store) -> None:
    """A log as a process leaves it that died while two of three calls ran."""
    calls = [call("search"), call("send"), call("pay")]
    done = tool_result(ToolResult(calls[1].id, "send", ok=True))
    await store.append("c", [user("go"), assistant(calls=calls), done], turn="t1")


@pytest.mark.rule("R-MEM-5")
@ways
async def test_open_calls_are_healed_once_and_the_log_keeps_it(store: Store, way: Way) -> None:
    await dangling(store)
    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(store)])
    await way(agent, "and?", conversation="c")
    log = await store.tail("c")
    await way(agent, "again?", conversation="c")
    strictly(model)
    healed = [entry for entry in log if entry.message.origin == "healed"]
    assert [entry.position for entry in healed] == [log[3].position, log[4].position]
    assert {entry.turn for entry in healed} == {"t1"}
    for entry, name in zip(healed, ("search", "pay"), strict=True):
        (result,) = entry.message.tool_results
        assert not result.ok
        assert result.name == name
        assert "the process ended" in result.text
    after = await store.tail("c")
    assert sum(entry.message.origin == "healed" for entry in after) == 2
    sent = model.requests[-1].messages[:5]
    assert {m.id for m in sent} == {e.message.id for e in log[:5]}
    results = [one.call_id for m in sent for one in m.tool_results]
    assert results == [call.id for call in sent[1].tool_calls]


@pytest.mark.rule("R-MEM-5", "R-MEM-4")
async def test_a_healed_call_survives_the_window(store: Store) -> None:
    await dangling(store)
    model = Scripted("one", "two", "three", "four")
    agent = Agent(model, advisors=[Memory(store, max_messages=6)])
    for question in "abcd":
        await agent.run(question, conversation="c")
    strictly(model)
    assert sent(model, 0)[0] == "user: go"
    assert sent(model) == [
        "user: b", "assistant: two", "user: c", "assistant: three", "user: d"
    ]  # fmt: skip


@pytest.mark.rule("R-MEM-2")
async def test_a_question_that_a_dead_process_left_is_not_sent(store: Store) -> None:
    await store.append("c", [user("a"), assistant("one")], turn="t1")
    lost = [system("rule"), user("lost")]
    await store.append("c", lost, turn="t2", states={message.id: "unanswered" for message in lost})
    model = Scripted("two")
    await Agent(model, advisors=[Memory(store)]).run("b", conversation="c")
    assert sent(model) == ["user: a", "assistant: one", "user: b"]
