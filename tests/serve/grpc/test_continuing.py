"""How a worker goes on with a turn that another one has begun: what the log says decides."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, tool, user
from retinue.advisors import Memory
from retinue.chains.events import Paused, TextChunk, TurnEnded
from retinue.errors import ConversationNotFound
from retinue.messages import Text, ToolCall, ToolResult, assistant
from retinue.messages.message import Message
from retinue.models.scripted import Scripted, call
from retinue.serve.dispatch import InProcess
from retinue.serve.faults import Refused
from retinue.serve.grpc.continuing import Told, how_to_go_on
from retinue.serve.jobs import Answered, Job
from retinue.stores import InMemory
from tests.serve.grpc.stage import job
from tests.serve.scenes import all_of, pay, within

ASKED = Message("assistant", (ToolCall("c1", "pay", "{}"),))


def talk(**options: Any) -> Job:
    return job(conversation="c", **options)


async def decided(asked: Job, store: InMemory, turn: str | None = None) -> Job | Told:
    return await within(how_to_go_on(asked, turn or asked.id, store))


async def test_with_nothing_in_the_log_the_job_is_run_as_it_is() -> None:
    asked = talk()
    assert await decided(asked, InMemory()) is asked


async def test_with_only_an_older_turn_in_the_log_the_job_is_run_as_it_is() -> None:
    asked, store = talk(), InMemory()
    await store.append("c", [user("before"), ASKED], turn="older")
    assert await decided(asked, store) is asked


async def test_a_turn_that_was_cut_off_is_recovered() -> None:
    asked, store = talk(), InMemory()
    await store.append("c", [*asked.messages, ASKED], turn=asked.id)
    found = await decided(asked, store)
    assert isinstance(found, Job)
    assert (found.kind, found.id) == ("recover", asked.id)


async def test_a_question_that_was_never_answered_is_recovered_too() -> None:
    asked, store = talk(), InMemory()
    states: dict[str, Any] = {asked.messages[0].id: "unanswered"}
    await store.append("c", asked.messages, turn=asked.id, states=states)
    found = await decided(asked, store)
    assert isinstance(found, Job)
    assert found.kind == "recover"


async def test_a_turn_that_has_ended_is_told_again() -> None:
    asked, store = talk(), InMemory()
    await store.append("c", [*asked.messages, assistant("All is well.")], turn=asked.id)
    found = await decided(asked, store)
    assert isinstance(found, Told)
    events = await all_of(aiter(found))
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["All is well."]
    assert isinstance(events[-1], TurnEnded)
    assert (events[-1].status, events[-1].turn) == ("completed", asked.id)


async def test_a_turn_that_ended_otherwise_says_how() -> None:
    asked, store = talk(), InMemory()
    result = Message(
        "tool", (ToolResult("c1", "pay", (Text("no"),), ok=False),), meta={"ended": "limit"}
    )
    await store.append("c", [*asked.messages, ASKED, result], turn=asked.id)
    found = await decided(asked, store)
    assert isinstance(found, Told)
    end = (await all_of(aiter(found)))[-1]
    assert (end.status, end.text) == ("limit", "")


async def test_behind_a_later_turn_of_the_conversation_nothing_is_gone_on_with() -> None:
    asked, store = talk(), InMemory()
    await store.append("c", [*asked.messages, ASKED], turn=asked.id)
    await store.append("c", [user("next")], turn="later")
    with pytest.raises(Refused, match="later turn"):
        await decided(asked, store)


async def test_a_conversation_of_somebody_else_is_not_found() -> None:
    store = InMemory()
    await store.append("c", [user("mine")], turn="t", owner="ann")
    with pytest.raises(ConversationNotFound):
        await decided(talk(owner="bob"), store)


async def test_as_long_as_the_other_worker_still_writes_it_is_waited_for() -> None:
    asked, store = talk(), InMemory()
    async with store.writing("c"):
        deciding = asyncio.create_task(how_to_go_on(asked, asked.id, store))
        await asyncio.sleep(0.01)
        await store.append("c", [*asked.messages, assistant("Done.")], turn=asked.id)
        assert not deciding.done()
    assert isinstance(await within(deciding), Told)


async def paused(store: InMemory, asked: Job, *more: Any) -> InProcess:
    """A process whose agent has paused before it pays."""
    model = Scripted(call("pay", amount=5), *more)
    agent = Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(store)], name="a")
    agents = InProcess(agent)
    events = await all_of(aiter(await agents.start(asked)))
    assert events[-1].status == "paused"
    return agents


@pytest.mark.rule("R-HITL-2")
async def test_a_turn_that_pauses_is_told_again_with_what_it_waits_for() -> None:
    asked, store = talk(), InMemory()
    await paused(store, asked)
    found = await decided(asked, store)
    assert isinstance(found, Told)
    events = await all_of(aiter(found))
    assert [one.tool for event in events if isinstance(event, Paused) for one in event.pending] == [
        "pay"
    ]
    assert events[-1].status == "paused"


@pytest.mark.rule("R-HITL-4")
async def test_answers_that_were_not_used_up_are_given_again_and_used_ones_are_not() -> None:
    asked, store = talk(), InMemory()
    agents = await paused(store, asked, "Done.")
    held = await store.held("c")
    assert held is not None
    (entry,) = [e for e in await store.tail("c") if e.message.tool_calls]
    answers = {entry.message.tool_calls[0].id: Answered(kind="approve")}
    resume = Job(agent="a", kind="resume", conversation="c", answers=answers)
    assert await decided(resume, store) is resume  # whether or not its turn is known
    assert await decided(resume, store, asked.id) is resume
    assert (await all_of(aiter(await agents.start(resume))))[-1].text == "Done."
    found = await decided(resume, store)
    assert isinstance(found, Told)
    assert (await all_of(aiter(found)))[-1].text == "Done."


async def test_a_recovered_turn_keeps_its_results_and_its_settings() -> None:
    ran: list[str] = []

    @tool
    async def note(text: str) -> str:
        """Notes it."""
        ran.append(text)
        return "noted"

    asked, store = talk(), InMemory()
    calls = Message("assistant", (ToolCall("c1", "note", '{"text":"x"}'),))
    result = Message("tool", (ToolResult("c1", "note", (Text("noted"),)),))
    await store.append("c", [*asked.messages, calls, result], turn=asked.id)
    model = Scripted("Done.")
    agents = InProcess(Agent(model, tools=[note], advisors=[Memory(store)], name="a"))
    found = await decided(asked, store)
    assert isinstance(found, Job)
    events = await all_of(aiter(await agents.start(found)))
    assert (events[-1].text, ran) == ("Done.", [])
    assert [m.role for m in model.requests[0].messages] == ["user", "assistant", "tool"]
