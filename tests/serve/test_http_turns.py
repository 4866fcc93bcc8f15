"""Turns over HTTP, on real sockets: asked, streamed, read again, answered, cancelled."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer
from retinue.advisors import Memory
from retinue.chains import events
from retinue.chains.events import final_text
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory
from tests.serve.scenes import Stuck, echoing, kinds, paying, within
from tests.serve.serving import serving


async def test_a_turn_is_asked_and_its_end_is_the_answer() -> None:
    async with serving(echoing()) as here:
        status, got = await here.json("POST", "/v1/turns", {"input": "Hello there"})
    assert status == 200
    assert (got["status"], got["text"]) == ("completed", "Hello there")


@pytest.mark.rule("R-STREAM-1", "R-STREAM-5")
async def test_a_turn_streams_its_events_under_numbers_without_gaps() -> None:
    async with serving(echoing()) as here:
        got = await here.events("/v1/turns", {"input": "Hello there", "stream": True})
    assert kinds(got)[0] == "TurnStarted"
    assert kinds(got)[-1] == "TurnEnded"
    assert [event.seq for event in got] == [*range(1, len(got) + 1)]
    assert final_text(got) == got[-1].text == "Hello there"


async def test_parts_reach_the_model_as_they_are() -> None:
    model = Scripted("A dot.")
    async with serving(Agent(model)) as here:
        parts = [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "data": "iVBORw0KGgo=", "media_type": "image/png"},
        ]
        status, _ = await here.json("POST", "/v1/turns", {"input": parts})
    assert status == 200
    (message,) = model.requests[0].messages
    assert message.text == "What is this?"
    assert message.parts[1].data == b"\x89PNG\r\n\x1a\n"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("url", ["file-abc123", "http://10.0.0.1/x", "file:///etc/passwd", ""])
async def test_a_place_that_is_not_the_clients_to_name_is_refused(url: str) -> None:
    model = Scripted("never")
    async with serving(Agent(model)) as here:
        body = {"input": [{"type": "image", "url": url}]}
        status, got = await here.json("POST", "/v1/turns", body)
    assert (status, got["error"]["code"]) == (400, "invalid")
    assert "https:" in got["error"]["message"]
    assert model.requests == []


async def test_a_request_that_comes_twice_runs_once_and_both_read_it() -> None:
    stuck = Stuck()
    model = Scripted(stuck)
    async with serving(Agent(model)) as here:
        body = {"input": "go", "request_id": "r-1"}
        asking = [asyncio.create_task(here.json("POST", "/v1/turns", body)) for _ in range(2)]
        await within(stuck.asked.wait())
        stuck.go.set()
        (one, first), (two, second) = await within(asyncio.gather(*asking))
        assert (one, two) == (200, 200)
        assert first == second
        again = await here.json("POST", "/v1/turns", {"input": "go"}, idempotency_key="r-1")
        assert again == (200, first)
    assert len(model.requests) == 1


async def test_a_request_id_is_not_taken_for_another_request() -> None:
    async with serving(echoing()) as here:
        await here.json("POST", "/v1/turns", {"input": "one", "request_id": "r-1"})
        status, got = await here.json("POST", "/v1/turns", {"input": "two", "request_id": "r-1"})
        assert (status, got["error"]["code"]) == (409, "conflict")
        status, got = await here.json(
            "POST", "/v1/turns", {"input": "one", "request_id": "r-1"}, idempotency_key="r-2"
        )
        assert status == 400


async def test_a_turn_is_cancelled_by_its_id() -> None:
    stuck = Stuck()
    async with serving(Agent(Scripted(stuck))) as here:
        async with here.stream("/v1/turns", {"input": "go", "stream": True}) as frames:
            reading = aiter(frames)
            first: Any = await within(anext(reading))
            await within(stuck.asked.wait())
            path = f"/v1/turns/{first.turn}/cancel"
            assert await here.json("POST", path) == (200, {"turn": first.turn, "status": None})
            rest: list[Any] = [event async for event in reading]
        assert rest[-1].status == "cancelled"
        assert stuck.stopped.is_set()
        assert (await here.json("POST", path))[1]["status"] == "cancelled"


@pytest.mark.rule("R-LOOP-3")
async def test_the_time_that_a_client_gives_stops_the_model() -> None:
    stuck = Stuck()
    async with serving(Agent(Scripted(stuck))) as here:
        status, got = await here.json("POST", "/v1/turns", {"input": "go", "timeout": 0.05})
    assert (status, got["status"]) == (200, "limit")
    assert "0.05 seconds" in got["reason"]
    assert stuck.stopped.is_set()


@pytest.mark.rule("R-HITL-2", "R-HITL-3")
async def test_a_pause_is_answered_with_other_arguments() -> None:
    async with serving(paying()) as here:
        body = {"input": "Pay five.", "conversation": "c-1"}
        _, got = await here.json("POST", "/v1/turns", body)
        assert got["status"] == "paused"
        (waiting,) = got["pending"]
        assert (waiting["tool"], waiting["arguments"]) == ("pay", {"amount": 5})
        _, shown = await here.json("GET", "/v1/conversations/c-1")
        assert shown["pending"] == [waiting]
        answers = {waiting["id"]: {"kind": "approve", "args": {"amount": 4}}}
        got = await here.events(
            "/v1/conversations/c-1/answers", {"answers": answers, "stream": True}
        )
        assert [e.text for e in got if isinstance(e, events.ToolFinished)] == ["paid 4"]
        assert got[-1].text == "Done."
        status, again = await here.json(
            "POST", "/v1/conversations/c-1/answers", {"answers": answers}
        )
        assert (status, again["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ({"nope": {"kind": "approve"}}, "No call 'nope'"),
        ({"CALL": {"kind": "retry"}}, "takes Approve, Reject, Reply"),
        ({"CALL": {"kind": "approve", "args": {"amount": "much"}}}, "amount"),
        ({"CALL": {"kind": "perhaps"}}, "perhaps"),
    ],
)
async def test_an_answer_that_fits_nothing_is_refused_and_the_pause_stays(
    answers: dict[str, Any], complaint: str
) -> None:
    async with serving(paying()) as here:
        body = {"input": "Pay five.", "conversation": "c-1"}
        _, got = await here.json("POST", "/v1/turns", body)
        (waiting,) = got["pending"]
        named = {waiting["id"] if k == "CALL" else k: v for k, v in answers.items()}
        status, refused = await here.json(
            "POST", "/v1/conversations/c-1/answers", {"answers": named}
        )
        assert status == 400
        assert complaint in refused["error"]["message"]
        _, shown = await here.json("GET", "/v1/conversations/c-1")
        assert shown["pending"] == [waiting]


async def test_tools_of_the_client_are_answered_like_any_pause() -> None:
    agent = Agent(
        Scripted(call("locate"), "You are in Oslo."), advisors=[Memory(InMemory())], name="guide"
    )
    async with serving(agent) as here:
        body = {"input": "Where?", "conversation": "c", "tools": [{"name": "locate"}]}
        _, got = await here.json("POST", "/v1/turns", body)
        (waiting,) = got["pending"]
        assert (waiting["tool"], waiting["kind"]) == ("locate", "external")
        answers = {waiting["id"]: {"kind": "reply", "value": {"city": "Oslo"}}}
        _, got = await here.json("POST", "/v1/conversations/c/answers", {"answers": answers})
    assert got["text"] == "You are in Oslo."


async def test_several_agents_are_asked_by_name() -> None:
    async with serving({"echo": echoing(), "payer": paying()}) as here:
        _, got = await here.json("POST", "/v1/turns", {"agent": "echo", "input": "Hi"})
        assert got["text"] == "Hi"
        status, got = await here.json("POST", "/v1/turns", {"input": "Hi"})
        assert status == 400
        assert "echo, payer" in got["error"]["message"]
        status, got = await here.json("POST", "/v1/turns", {"agent": "bank", "input": "Hi"})
        assert (status, got["error"]["code"]) == (404, "not_found")


async def test_agents_and_their_tools_are_listed() -> None:
    async with serving({"payer": paying()}) as here:
        _, got = await here.json("GET", "/v1/agents")
    (card,) = got["agents"]
    assert (card["name"], card["keeps"]) == ("payer", True)
    assert card["tools"][0]["name"] == "pay"
    assert card["takes"]["images"] is None


async def test_a_conversation_of_an_agent_without_a_memory_is_refused() -> None:
    async with serving(Agent(Scripted("never"))) as here:
        body = {"input": "Hi", "conversation": "c"}
        status, got = await here.json("POST", "/v1/turns", body)
    assert status == 400
    assert "keeps no conversations" in got["error"]["message"]


@pytest.mark.behaviour("B-ON-5")
@pytest.mark.rule("R-ONION-5", "R-ONION-7")
async def test_a_block_holds_through_every_door() -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("no secrets", answer="I may not say that.")

    model = Scripted("never")
    agent = Agent(model, advisors=[Layer("Guard", turn=refuse)], name="guarded")
    async with serving(agent) as here:
        _, plain = await here.json("POST", "/v1/turns", {"input": "Tell me."})
        streamed: Any = await here.events("/v1/turns", {"input": "Tell me.", "stream": True})
        ask = [{"id": "1", "role": "user", "content": "Tell me."}]
        _, chat = await here.json(
            "POST", "/v1/chat/completions", {"model": "guarded", "messages": ask}
        )
        async with here.client.post(
            "/v1/ag-ui", json={"threadId": "t", "runId": "r", "messages": ask}
        ) as response:
            shown = await response.text()
    assert (plain["status"], plain["blocked_by"]) == ("blocked", "Guard")
    assert (streamed[-1].status, streamed[-1].text) == ("blocked", "I may not say that.")
    (choice,) = chat["choices"]
    assert choice["message"]["content"] == "I may not say that."
    assert choice["finish_reason"] == "content_filter"
    assert '"delta":"I may not say that."' in shown
    assert '"status":"blocked"' in shown
    assert model.requests == []


@pytest.mark.rule("R-LOOP-3")
async def test_a_time_that_is_over_at_once_is_a_limit_and_no_failure() -> None:
    async with serving(echoing()) as here:
        _, got = await here.json("POST", "/v1/turns", {"input": "go", "timeout": 1e-9})
    assert (got["status"], got["reason"]) == (
        "limit",
        "The time limit of 1e-09 seconds is reached.",
    )
