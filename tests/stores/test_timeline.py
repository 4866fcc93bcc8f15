"""Forks, roll-backs and cuts of conversations, on every store that needs no server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from retinue.errors import ConfigError, ConversationBusy, ConversationNotFound
from retinue.messages import assistant, user
from retinue.stores import Branch, Held, InMemory, SQLite, Store, Timeline
from tests.stores.shared import texts

pytestmark = pytest.mark.rule("R-MEM-8")


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    kept = InMemory() if request.param == "in-memory" else SQLite(tmp_path / "chat.db")
    yield kept
    await kept.close()


async def talk(store: Store, *questions: str, conversation: str = "c") -> None:
    for question in questions:
        messages = [user(question), assistant(f"about {question}")]
        await store.append(conversation, messages, turn=f"turn-{question}")


async def test_points_are_the_ends_of_turns_and_the_pause(store: Store) -> None:
    await talk(store, "one", "two")
    await store.hold("c", "p", b"{}")
    points = await Timeline(store).points("c")
    assert [(one.turn, one.question, one.messages, one.paused) for one in points] == [
        ("turn-one", "one", 2, False), ("turn-two", "two", 2, True),
    ]  # fmt: skip


async def test_a_fork_at_a_turn_ends_with_it(store: Store) -> None:
    await talk(store, "one", "two")
    name = await Timeline(store).fork("c", at="turn-one")
    assert await texts(store, name) == ["one", "about one"]
    assert name != "c"
    assert await Timeline(store).fork("c", "mine") == "mine"
    assert await texts(store, "mine") == await texts(store)


async def test_a_fork_at_the_turn_that_waits_waits_too(store: Store) -> None:
    await talk(store, "one", "two")
    await store.hold("c", "p", b"{}")
    await Timeline(store).fork("c", "d", at="turn-two")
    await Timeline(store).fork("c", "e", at="turn-one")
    assert await store.held("d") == Held("p", b"{}")
    assert await store.held("e") is None


async def test_a_question_that_was_asked_again_is_one_turn_with_its_answer(store: Store) -> None:
    await store.append("c", [user("one")], turn="failed")
    await store.append("c", [assistant("about one")], turn="asked again")
    await talk(store, "two")
    line = Timeline(store)
    points = await line.points("c")
    assert [(one.turn, one.question, one.messages) for one in points] == [
        ("asked again", "one", 2), ("turn-two", "two", 2),
    ]  # fmt: skip
    await line.fork("c", "d", at="failed")
    assert await texts(store, "d") == ["one", "about one"]


async def test_turns_that_others_took_the_place_of_are_no_points_and_do_not_count(
    store: Store,
) -> None:
    await talk(store, "one", "two")
    given_up = [entry.message.id for entry in await store.tail("c", limit=2)]
    await store.append("c", [], turn="t", states=dict.fromkeys(given_up, "superseded"))
    await talk(store, "other")
    line = Timeline(store)
    assert [one.question for one in await line.points("c")] == ["one", "other"]
    with pytest.raises(ConfigError, match="no turn 'turn-two'; it has 2, the last is 'turn-other'"):
        await line.fork("c", at="turn-two")
    assert await line.prune("c", 2) == 0
    assert "one" in await texts(store)
    assert await line.prune("c", 1) == 1
    assert await texts(store) == ["other", "about other"]


async def test_a_cut_at_no_turn_is_refused_by_name(store: Store) -> None:
    await talk(store, "one")
    line = Timeline(store)
    with pytest.raises(ConfigError, match="no turn 'two'; it has 1, the last is 'turn-one'"):
        await line.fork("c", at="two")
    with pytest.raises(ConfigError, match="no turn 'two'"):
        await line.rollback("c", "two")
    with pytest.raises(ConfigError, match="keep 1 turn or more"):
        await line.prune("c", 0)
    for work in (line.points("x"), line.fork("x", at="t"), line.lineage("x"), line.prune("x", 1)):
        with pytest.raises(ConversationNotFound):
            await work
    assert await texts(store) == ["one", "about one"]


async def test_a_rollback_leaves_whole_turns(store: Store) -> None:
    await talk(store, "one", "two", "three")
    await Timeline(store).rollback("c", "turn-one")
    assert await texts(store) == ["one", "about one"]
    await Timeline(store).rollback("c", None)
    assert await texts(store) == []


async def test_pruning_removes_the_oldest_turns(store: Store) -> None:
    await talk(store, "one", "two", "three")
    assert await Timeline(store).prune("c", 2) == 1
    assert await texts(store) == ["two", "about two", "three", "about three"]
    assert await Timeline(store).prune("c", 2) == 0


async def test_lineage_and_tree_tell_who_comes_from_whom(store: Store) -> None:
    await talk(store, "one")
    line = Timeline(store)
    await line.fork("c", "d")
    await line.fork("d", "e")
    await line.fork("c", "f")
    assert await line.lineage("e") == ("c", "d", "e")
    assert await line.lineage("c") == ("c",)

    def shape(branches: tuple[Branch, ...]) -> dict[str, object]:
        return {one.conversation.id: shape(one.forks) for one in branches}

    assert shape(await line.tree()) == {"c": {"d": {"e": {}}, "f": {}}}
    await store.delete("d")
    assert await line.lineage("e") == ("d", "e")
    assert shape(await line.tree()) == {"c": {"f": {}}, "e": {}}


async def test_a_conversation_that_took_the_id_of_a_deleted_one_is_not_its_forks_origin(
    store: Store,
) -> None:
    await talk(store, "one")
    line = Timeline(store)
    await line.fork("c", "d")
    await store.delete("c")
    await line.fork("d", "c")
    assert await line.lineage("c") == ("c", "d", "c")
    (root,) = await line.tree()
    assert (root.conversation.id, [one.conversation.id for one in root.forks]) == ("d", ["c"])


async def test_a_tree_may_be_deeper_than_python_can_call() -> None:
    store = InMemory()
    await talk(store, "one", conversation="0")
    depth = 1_500
    for n in range(depth):
        await store.fork(str(n), str(n + 1), at=0)
    (branch,) = await Timeline(store).tree()
    for n in range(depth):
        assert branch.conversation.id == str(n)
        (branch,) = branch.forks


async def test_no_cut_is_made_while_a_turn_writes(store: Store) -> None:
    await talk(store, "one")
    line = Timeline(store)
    async with store.writing("c"):
        works = [line.fork("c", "d"), line.rollback("c", "turn-two"), line.prune("c", 1)]
        cutting = [asyncio.create_task(work) for work in works]
        await store.known("c", ["m"])
        await store.known("c", ["m"])
        assert not any(task.done() for task in cutting)
        await talk(store, "two")
        with pytest.raises(ConversationBusy):
            async with store.writing("c", wait=False):
                pass
    async with asyncio.timeout(20):
        await asyncio.gather(*cutting)
    assert await texts(store, "d") == ["one", "about one", "two", "about two"]
