"""AG-UI: frames that its own types take, in an order that its front ends can follow."""

import json
from typing import Any

import pytest
from ag_ui.core import EventType

from retinue import Agent, Layer, Usage
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.serve.agui_run import asking, refused, run, texts
from tests.serve.scenes import echoing, pay, weather, within
from tests.serve.serving import serving


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


async def test_a_failure_is_a_run_error_without_the_programs_words() -> None:
    said = Say(text="Half", usage=Usage(input=3, output=1), error=RuntimeError("at db.internal"))
    async with serving(Agent(Scripted(said))) as here:
        got = await run(here, asking())
    assert got[-1].usage[0].input_tokens == 3
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


async def test_what_json_cannot_hold_ends_no_stream() -> None:
    async with serving(Agent(Scripted("a\ud800b"))) as here:
        got = await run(here, asking())
    assert texts(got) == "a\ufffdb"
    assert got[-1].outcome.type == "success"


async def test_a_run_says_which_run_it_belongs_to() -> None:
    async with serving(echoing()) as here:
        got = await run(here, asking(parentRunId="r-0"))
    assert (got[0].parent_run_id, got[0].protocol_version) == ("r-0", "1.0")


async def test_a_snapshot_gives_the_clients_messages_back_whole() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Once more."))

    function = {"name": "look", "arguments": "{}"}
    asked = {"id": "c", "type": "function", "function": function, "encryptedValue": "x"}
    source = {"type": "url", "value": "https://example.org/a.pdf"}
    mine: list[dict[str, Any]] = [
        {"id": "1", "role": "user", "content": "Hi", "name": "Ann", "metadata": {"a": None}},
        {"id": "2", "role": "reasoning", "content": "Hm.", "encryptedValue": "y"},
        {"id": "3", "role": "assistant", "content": "", "toolCalls": [asked]},
        {"id": "4", "role": "tool", "toolCallId": "c", "content": "no", "error": "It broke."},
        {"id": "5", "role": "activity", "activityType": "plan", "content": {"steps": []}},
        {"id": "6", "role": "assistant", "content": ""},
        {"id": "7", "role": "user", "content": [{"type": "document", "source": source}]},
    ]
    said = Say(thinking="Well.", text="First.")
    model = Scripted(said, "Second.")
    agent = Agent(model, advisors=[Layer("Again", turn=again)])
    async with (
        serving(agent) as here,
        here.stream("/v1/ag-ui", asking(messages=mine)) as frames,
    ):
        got = [json.loads(one["data"]) async for one in frames.raw()]
    (snapshot,) = [one for one in got if one["type"] == "MESSAGES_SNAPSHOT"]
    assert snapshot["messages"] == mine
    first = model.requests[0].messages
    assert [one.role for one in first] == ["user", "assistant", "tool", "user"]
    assert first[2].tool_results[0].ok is False


@pytest.mark.parametrize(
    "part",
    [
        {"type": "widget"},
        {"type": "image"},
        {"type": "binary", "mimeType": "image/png", "id": "x"},
        {"type": "document", "source": {"type": "file", "value": "file-1"}},
        {"type": "image", "source": {"type": "data", "value": "%%%", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "file:///etc/passwd"}},
    ],
)
async def test_a_part_that_cannot_be_read_is_refused(part: dict[str, Any]) -> None:
    async with serving(echoing()) as here:
        body = asking(messages=[{"id": "m-1", "role": "user", "content": [part]}])
        await refused(here, body, 400, "")
