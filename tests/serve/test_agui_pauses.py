"""Pauses as AG-UI has them: interrupts that the next run answers, and tools of the front end."""

from typing import Any

import pytest
from ag_ui.core import EventType

from retinue import Agent
from retinue.advisors import Memory
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory
from tests.serve.agui_run import asking, refused, run, texts
from tests.serve.scenes import pay, paying
from tests.serve.serving import Here, serving


async def interrupted(here: Here) -> Any:
    """The interrupt that a run ended with."""
    got = await run(here, asking("Pay five."))
    assert got[-1].outcome.type == "interrupt"
    (interrupt,) = got[-1].outcome.interrupts
    return interrupt


def resuming(interrupt: Any, status: str = "resolved", **more: Any) -> dict[str, Any]:
    """A run that answers it, of a client that sends no more of the thread than it must."""
    answer = {"interruptId": interrupt.id, "status": status, **more}
    return asking("Pay five.", resume=[answer])


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize(
    ("resume", "end"),
    [
        ({"payload": {"approved": True, "editedArgs": {"amount": 4}}}, "paid 4"),
        ({"payload": {"approved": True}}, "paid 5"),
        ({"payload": {"approved": False, "reason": "too dear"}}, "too dear"),
        ({"payload": {"approved": False}}, "The user refused it."),
        ({"status": "cancelled"}, "The user cancelled it."),
    ],
)
async def test_an_approval_is_an_interrupt_that_the_next_run_resumes(
    resume: dict[str, Any], end: str
) -> None:
    async with serving(paying()) as here:
        got = await run(here, resuming(await interrupted(here), **resume))
    assert [f for f in got if f.type == EventType.TOOL_CALL_START] == []  # it was shown before
    (result,) = [f for f in got if f.type == EventType.TOOL_CALL_RESULT]
    assert result.content == end
    assert texts(got) == "Done."


@pytest.mark.parametrize(
    "payload",
    [
        None,
        True,
        "yes",
        {},
        {"approved": "yes"},
        {"approved": True, "editedArgs": 4},
        {"approved": True, "args": {"amount": 4}},
        {"approved": True, "editedArgs": {"amount": "much"}},
    ],
)
async def test_an_approval_that_is_not_as_it_should_be_approves_nothing(payload: Any) -> None:
    async with serving(paying()) as here:
        interrupt = await interrupted(here)
        await refused(here, resuming(interrupt, payload=payload), 400, "")
        got = await run(here, resuming(interrupt, payload={"approved": True}))
    assert texts(got) == "Done."


async def test_an_answer_counts_once() -> None:
    async with serving(paying()) as here:
        body = resuming(await interrupted(here), payload={"approved": True})
        await run(here, body)
        await refused(here, body, 409, "Nothing in this thread waits")


async def test_a_thread_that_waits_takes_nothing_but_answers() -> None:
    async with serving(paying()) as here:
        interrupt = await interrupted(here)
        await refused(here, asking("Never mind."), 409, interrupt.id)
        body = resuming(interrupt, payload={"approved": True})
        body["messages"] += [
            {"id": "m-2", "role": "assistant", "content": "Hm."},
            {"id": "m-3", "role": "user", "content": "And six."},
        ]
        await refused(here, body, 400, "'m-3'")
        assert texts(await run(here, resuming(interrupt, "cancelled"))) == "Done."


async def test_a_pause_of_an_agent_that_keeps_nothing_is_an_error() -> None:
    agent = Agent(Scripted(call("pay", amount=5)), tools=[pay], gate="sensitive")
    async with serving(agent) as here:
        got = await run(here, asking())
        assert (got[-1].type, got[-1].code) == (EventType.RUN_ERROR, "conflict")
        answer = {"interruptId": "x", "status": "resolved", "payload": {"approved": True}}
        await refused(here, asking(resume=[answer]), 409, "'x'")


async def test_a_pause_for_a_person_and_for_the_front_end_is_answered_one_by_one() -> None:
    model = Scripted([call("pay", amount=5), call("locate")], "Done.")
    agent = Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(InMemory())])
    tools = [{"name": "locate", "description": "Where.", "parameters": {"type": "object"}}]
    async with serving(agent) as here:
        got = await run(here, asking("Pay five.", tools=tools))
        (interrupt,) = got[-1].outcome.interrupts
        assert interrupt.metadata["tool"] == "pay"
        got = await run(here, resuming(interrupt, payload={"approved": True}))
        (located,) = got[-1].outcome.pending_tool_call_ids
        body = asking("Pay five.")
        body["messages"].append(
            {"id": "m-2", "role": "tool", "toolCallId": located, "content": "Oslo"}
        )
        got = await run(here, body)
    assert texts(got) == "Done."
    results = [one.tool_results[0].text for one in model.requests[-1].messages[2:]]
    assert results == ["paid 5", "Oslo"]


async def test_a_call_that_ran_on_other_arguments_is_shown_with_those() -> None:
    async with serving(paying()) as here:
        got = await run(here, asking("Pay five."))
        (interrupt,) = got[-1].outcome.interrupts
        body = asking("Pay five.")
        function = {"name": "pay", "arguments": '{"amount": 5}'}
        body["messages"].append(
            {
                "id": "m-2",
                "role": "assistant",
                "toolCalls": [{"id": interrupt.id, "type": "function", "function": function}],
            }
        )
        payload = {"approved": True, "editedArgs": {"amount": 4}}
        answer = {"interruptId": interrupt.id, "status": "resolved", "payload": payload}
        got = await run(here, {**body, "resume": [answer]})
    assert [f for f in got if f.type == EventType.TOOL_CALL_START] == []
    (snapshot,) = [f for f in got if f.type == EventType.MESSAGES_SNAPSHOT]
    assert snapshot.messages[1].tool_calls[0].function.arguments == '{"amount":4}'
    (result,) = [f for f in got if f.type == EventType.TOOL_CALL_RESULT]
    assert result.content == "paid 4"


async def test_tools_of_the_front_end_are_run_there() -> None:
    model = Scripted(call("locate"), "You are in Oslo.")
    agent = Agent(model, advisors=[Memory(InMemory())], name="guide")
    tools = [{"name": "locate", "description": "Where.", "parameters": {"type": "object"}}]
    async with serving(agent) as here:
        got = await run(here, asking("Where?", tools=tools))
        (start,) = [f for f in got if f.type == EventType.TOOL_CALL_START]
        assert got[-1].outcome.pending_tool_call_ids == [start.tool_call_id]
        body = asking("Where?", tools=tools)
        body["messages"] += [
            {
                "id": "m-2",
                "role": "assistant",
                "toolCalls": [
                    {
                        "id": start.tool_call_id,
                        "type": "function",
                        "function": {"name": "locate", "arguments": "{}"},
                    }
                ],
            },
            {"id": "m-3", "role": "tool", "toolCallId": start.tool_call_id, "content": "Oslo"},
        ]
        got = await run(here, body)
    assert texts(got) == "You are in Oslo."
    assert [f for f in got if f.type == EventType.TOOL_CALL_RESULT] == []  # the client has it
    assert model.requests[-1].messages[-1].tool_results[0].text == "Oslo"
