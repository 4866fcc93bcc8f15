"""AG-UI: frames that its own types take, in an order that its front ends can follow."""

from collections.abc import Sequence
from typing import Any

import pytest
from ag_ui.core import Event, EventType
from pydantic import TypeAdapter

from retinue import Agent, Layer
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.serve.scenes import echoing, pay, paying, weather, within
from tests.serve.serving import Here, serving

_frame: TypeAdapter[Any] = TypeAdapter(Event)


def asking(text: str = "Hello there", **more: Any) -> dict[str, Any]:
    return {
        "threadId": "t-1",
        "runId": "r-1",
        "messages": [{"id": "m-1", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        **more,
    }


async def run(here: Here, body: dict[str, Any], path: str = "/v1/ag-ui") -> list[Any]:
    """The frames of a run, each as AG-UI's own type takes it."""
    got: list[Any] = []
    async with here.stream(path, body) as frames:
        assert frames.response.status == 200, await frames.response.text()
        async for frame in frames.raw():
            got.append(_frame.validate_json(frame["data"]))
    check(got)
    return got


def check(frames: Sequence[Any]) -> None:
    """What a front end counts on: one beginning, one end, and nothing left open or opened twice."""
    kinds = [frame.type for frame in frames]
    assert kinds[0] == EventType.RUN_STARTED
    assert kinds[-1] in (EventType.RUN_FINISHED, EventType.RUN_ERROR)
    opened: set[tuple[str, str]] = set()
    for frame in frames:
        kind = frame.type.value
        name = str(
            getattr(frame, "tool_call_id", None)
            or getattr(frame, "message_id", None)
            or getattr(frame, "step_name", None)
        )
        if kind.endswith(("_START", "_STARTED")) and kind != "RUN_STARTED":
            key = (kind.rpartition("_START")[0], name)
            assert key not in opened
            opened.add(key)
        elif kind.endswith(("_END", "_FINISHED")) and kind != "RUN_FINISHED":
            opened.remove((kind.removesuffix("_END").removesuffix("_FINISHED"), name))
        elif kind in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            assert (kind.removesuffix("_CONTENT"), name) in opened
            assert frame.delta
        elif kind == "TOOL_CALL_ARGS":
            assert ("TOOL_CALL", name) in opened
    assert not opened


def texts(frames: Sequence[Any]) -> str:
    return "".join(f.delta for f in frames if f.type == EventType.TEXT_MESSAGE_CONTENT)


async def test_a_run_streams_its_text() -> None:
    async with serving(echoing()) as here:
        got = await run(here, asking())
    assert texts(got) == "Hello there"
    assert (got[0].thread_id, got[0].run_id) == ("t-1", "r-1")
    assert got[-1].outcome.type == "success"


async def test_a_thread_is_a_conversation_and_only_what_is_new_is_asked() -> None:
    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(InMemory())], name="helper")
    async with serving(agent) as here:
        body = asking("first")
        await run(here, body, "/v1/ag-ui/helper")
        body["messages"] += [
            {"id": "m-2", "role": "assistant", "content": "one"},
            {"id": "m-3", "role": "user", "content": "second"},
        ]
        await run(here, body, "/v1/ag-ui/helper")
    assert [m.text for m in model.requests[1].messages] == ["first", "one", "second"]


async def test_an_agent_that_keeps_nothing_is_sent_all_messages() -> None:
    model = Scripted("two")
    async with serving(Agent(model)) as here:
        body = asking("first")
        body["messages"] += [
            {"id": "m-2", "role": "assistant", "content": "one"},
            {"id": "m-4", "role": "reasoning", "content": "hm"},
            {"id": "m-3", "role": "user", "content": [{"type": "text", "text": "second"}]},
        ]
        await run(here, body)
    assert [m.text for m in model.requests[0].messages] == ["first", "one", "second"]


async def test_thinking_and_tools_of_the_agent_are_shown() -> None:
    said = Say(thinking=["Look ", "out."], text="Wait.", calls=[call("weather", city="Oslo")])
    agent = Agent(Scripted(said, "Rain."), tools=[weather])
    async with serving(agent) as here:
        got = await run(here, asking())
    reasoning = [f.delta for f in got if f.type == EventType.REASONING_MESSAGE_CONTENT]
    assert "".join(reasoning) == "Look out."
    (start,) = [f for f in got if f.type == EventType.TOOL_CALL_START]
    (result,) = [f for f in got if f.type == EventType.TOOL_CALL_RESULT]
    assert start.tool_call_name == "weather"
    assert (result.tool_call_id, result.content) == (start.tool_call_id, "rain in Oslo")
    assert "".join(f.delta for f in got if f.type == EventType.TOOL_CALL_ARGS) == '{"city":"Oslo"}'


async def test_a_text_that_was_taken_back_is_gone_from_the_messages() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Once more."))

    agent = Agent(Scripted("first", "second"), advisors=[Layer("Again", turn=again)])
    async with serving(agent) as here:
        got = await run(here, asking("Hi"))
    (snapshot,) = [f for f in got if f.type == EventType.MESSAGES_SNAPSHOT]
    assert [(m.role, m.content) for m in snapshot.messages] == [("user", "Hi")]
    assert texts(got[got.index(snapshot) :]) == "second"


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize(
    ("resume", "end"),
    [
        ({"status": "resolved", "payload": {"approved": True, "args": {"amount": 4}}}, "paid 4"),
        ({"status": "resolved", "payload": True}, "paid 5"),
        ({"status": "resolved"}, "paid 5"),
        ({"status": "resolved", "payload": {"approved": False, "reason": "too dear"}}, "too dear"),
        ({"status": "cancelled"}, "The user cancelled it."),
    ],
)
async def test_an_approval_is_an_interrupt_that_the_next_run_resumes(
    resume: dict[str, Any], end: str
) -> None:
    async with serving(paying()) as here:
        got = await run(here, asking("Pay five."))
        outcome = got[-1].outcome
        assert outcome.type == "interrupt"
        (interrupt,) = outcome.interrupts
        assert interrupt.reason == "approval"
        answer = {"interruptId": interrupt.id, **resume}
        got = await run(here, asking("Pay five.", resume=[answer]))
    (result,) = [f for f in got if f.type == EventType.TOOL_CALL_RESULT]
    assert result.content == end
    assert texts(got) == "Done."


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
        payload = {"approved": True, "args": {"amount": 4}}
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


async def test_a_failure_is_a_run_error_without_the_programs_words() -> None:
    async with serving(Agent(Scripted(RuntimeError("at db.internal")))) as here:
        got = await run(here, asking())
    assert got[-1].type == EventType.RUN_ERROR
    assert (got[-1].message, got[-1].code) == (
        "The server failed; its log says why.",
        "RuntimeError",
    )


async def test_what_cannot_be_a_run_is_refused() -> None:
    agent = Agent(Scripted("never"), tools=[pay], advisors=[Memory(InMemory())])
    async with serving(agent) as here:
        for body in (
            {},
            asking(threadId="no/good"),
            asking(messages=[]),
            asking(messages=[{"id": "1", "role": "assistant", "content": "x"}]),
            asking(tools=[{"name": "pay", "description": ""}]),
        ):
            status, got = await within(here.json("POST", "/v1/ag-ui", body))
            assert (status, got["error"]["code"]) == (400, "invalid"), body
