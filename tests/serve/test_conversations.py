"""Conversations in several stores, of which two may lead to one database."""

from pathlib import Path

import pytest

from retinue import Agent, user
from retinue.advisors import Memory
from retinue.errors import ConversationNotFound
from retinue.models.scripted import Scripted
from retinue.serve.access import Caller
from retinue.serve.declared import gateway_of
from retinue.serve.jobs import Job
from retinue.stores import InMemory, SQLite
from tests.serve.scenes import within

ANN = Caller("ann", frozenset(["turns"]))


def keeping(name: str, store: InMemory | SQLite) -> Agent:
    return Agent(Scripted("Hi", repeat=True), advisors=[Memory(store)], name=name)


def job(agent: str, conversation: str) -> Job:
    return Job(agent=agent, messages=(user("Hello"),), conversation=conversation)


async def test_two_agents_with_one_database_show_each_conversation_once(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    gateway = gateway_of({n: keeping(n, SQLite(file)) for n in ("one", "two")})
    async with await gateway.start(ANN, job("one", "c-1")) as reader:
        await within(reader.end())
    async with await gateway.start(ANN, job("two", "c-2")) as reader:
        await within(reader.end())
    conversations = gateway.conversations
    assert [one.id for one in await conversations.recent("ann", 10)] == ["c-2", "c-1"]
    assert {branch.conversation.id for branch in await conversations.tree("ann")} == {"c-1", "c-2"}
    log = await conversations.log(reader.turn.job, reader.turn.turn)
    assert [message.text for message in log] == ["Hello", "Hi"]
    await gateway.close()


async def test_each_store_is_asked_and_the_right_one_is_changed() -> None:
    gateway = gateway_of({n: keeping(n, InMemory()) for n in ("one", "two")})
    for agent in ("one", "two"):
        async with await gateway.start(ANN, job(agent, f"c-{agent}")) as reader:
            await within(reader.end())
    conversations = gateway.conversations
    await conversations.delete("c-two", "ann")
    assert [one.id for one in await conversations.recent("ann", 10)] == ["c-one"]
    for change in (
        conversations.delete("c-one", "bob"),
        conversations.rollback("c-one", "bob", None),
        conversations.fork("c-one", "bob", new=None, at=None),
        conversations.points("c-one", "bob"),
        conversations.entries("c-one", "bob", before=None, limit=1),
    ):
        with pytest.raises(ConversationNotFound, match="no conversation 'c-one'"):
            await change
    assert await conversations.recent("bob", 10) == []
