"""Conversations over HTTP: listed, read by pages, forked, rolled back, deleted."""

import asyncio
from typing import Any

import pytest

from retinue import Agent
from retinue.advisors import Memory
from retinue.models.scripted import Scripted
from retinue.stores import InMemory, SQLite
from tests.serve.scenes import Stuck, echoing, within
from tests.serve.serving import Here, serving


async def say(here: Here, *texts: str, conversation: str = "c") -> list[str]:
    turns: list[str] = []
    for text in texts:
        body = {"input": text, "conversation": conversation}
        status, got = await here.json("POST", "/v1/turns", body)
        assert status == 200, got
        turns.append(got["turn"])
    return turns


def texts(page: Any) -> list[str]:
    return [entry["message"]["parts"][0]["text"] for entry in page["messages"]]


async def test_messages_are_read_by_pages_from_the_end() -> None:
    async with serving(echoing()) as here:
        await say(here, "one", "two", "three")
        _, page = await here.json("GET", "/v1/conversations/c/messages?limit=4")
        assert texts(page) == ["two", "two", "three", "three"]
        path = f"/v1/conversations/c/messages?limit=4&before={page['before']}"
        _, page = await here.json("GET", path)
        assert texts(page) == ["one", "one"]
        assert page["before"] is None


async def test_conversations_are_listed_the_last_first() -> None:
    async with serving(echoing()) as here:
        await say(here, "one", conversation="a")
        await say(here, "two", conversation="b")
        _, got = await here.json("GET", "/v1/conversations")
        assert [one["id"] for one in got["conversations"]] == ["b", "a"]
        _, got = await here.json("GET", "/v1/conversations?limit=1")
        assert [one["title"] for one in got["conversations"]] == ["two"]


@pytest.mark.rule("R-MEM-8")
async def test_a_fork_goes_its_own_way_and_the_tree_shows_both() -> None:
    async with serving(echoing()) as here:
        first, _ = await say(here, "one", "two")
        status, made = await here.json("POST", "/v1/conversations/c/fork", {"at": first})
        assert status == 201
        fork = made["id"]
        _, page = await here.json("GET", f"/v1/conversations/{fork}/messages")
        assert texts(page) == ["one", "one"]
        await say(here, "other", conversation=fork)
        _, tree = await here.json("GET", "/v1/tree")
        (root,) = tree["tree"]
        assert root["conversation"]["id"] == "c"
        assert [one["conversation"]["id"] for one in root["forks"]] == [fork]
        status, named = await here.json("POST", "/v1/conversations/c/fork", {"id": "mine"})
        assert (status, named) == (201, {"id": "mine"})
        status, _ = await here.json("POST", "/v1/conversations/c/fork", {"id": "mine"})
        assert status == 400


@pytest.mark.rule("R-MEM-8")
async def test_a_conversation_is_taken_back_to_a_turn() -> None:
    async with serving(echoing()) as here:
        first, _ = await say(here, "one", "two")
        path = "/v1/conversations/c/rollback"
        assert (await here.json("POST", path, {"to": first}))[0] == 204
        _, shown = await here.json("GET", "/v1/conversations/c")
        assert [point["turn"] for point in shown["points"]] == [first]
        assert (await here.json("POST", path, {"to": "nowhere"}))[0] == 400
        assert (await here.json("POST", path, {}))[0] == 400


async def test_what_is_deleted_is_not_found_any_more() -> None:
    async with serving(echoing()) as here:
        await say(here, "one")
        assert (await here.json("DELETE", "/v1/conversations/c"))[0] == 204
        for method, path, body in (
            ("GET", "/v1/conversations/c", None),
            ("GET", "/v1/conversations/c/messages", None),
            ("DELETE", "/v1/conversations/c", None),
            ("POST", "/v1/conversations/c/fork", {}),
        ):
            status, got = await here.json(method, path, body)
            assert (status, got["error"]["code"]) == (404, "not_found")


async def test_a_change_does_not_wait_for_ever_for_a_turn_that_writes() -> None:
    stuck = Stuck()
    agent = Agent(Scripted("one", stuck), advisors=[Memory(InMemory())], name="slow")
    async with serving(agent) as here:
        await say(here, "first")
        here.gateway.conversations._patience = 0.05  # pyright: ignore[reportPrivateUsage]
        asking = asyncio.create_task(say(here, "second"))
        await within(stuck.asked.wait())
        status, got = await within(here.json("POST", "/v1/conversations/c/fork", {}))
        assert (status, got["error"]["code"]) == (409, "conflict")
        assert "A turn is writing" in got["error"]["message"]
        stuck.go.set()
        await within(asking)
        assert (await here.json("POST", "/v1/conversations/c/fork", {}))[0] == 201


async def test_a_query_that_cannot_be_is_refused() -> None:
    async with serving(echoing()) as here:
        for query in ("limit=0", "limit=many", "limit=1e9", "before=-1"):
            path = f"/v1/conversations/c/messages?{query}"
            status, got = await here.json("GET", path)
            assert (status, got["error"]["code"]) == (400, "invalid"), query


async def test_conversations_outlive_the_server(tmp_path: Any) -> None:
    def agent(*steps: str) -> Agent:
        return Agent(Scripted(*steps), name="helper")

    file = tmp_path / "chat.db"
    async with serving(agent("one"), store=SQLite(file)) as here:
        await say(here, "first")
    async with serving(agent("two"), store=SQLite(file)) as here:
        await say(here, "second")
        _, page = await here.json("GET", "/v1/conversations/c/messages")
    assert texts(page) == ["first", "one", "second", "two"]


async def test_a_server_without_a_memory_says_that_it_keeps_nothing() -> None:
    async with serving(Agent(Scripted("never"))) as here:
        assert (await here.json("GET", "/v1/conversations"))[1] == {"conversations": []}
        status, got = await here.json("GET", "/v1/conversations/c")
        assert (status, got["error"]["message"]) == (404, "This server keeps no conversations.")
