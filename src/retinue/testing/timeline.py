"""What a store owes to pauses, forks and cuts, as tests; a part of
`retinue.testing.stores.StoreContract`."""

import asyncio
from typing import Any

import pytest

from retinue.errors import ConfigError, ConversationNotFound
from retinue.messages import user
from retinue.stores import Held, Store

DOCUMENT = bytes(range(256))


async def told(store: Store, conversation: str = "c", **options: Any) -> list[str]:
    """The texts of a conversation."""
    return [entry.message.text for entry in await store.tail(conversation, **options)]


async def write(store: Store, *texts: str, conversation: str = "c", **options: Any) -> list[int]:
    """Stores one turn for each text; gives the positions of all entries."""
    for text in texts:
        await store.append(conversation, [user(text)], turn=f"turn {text}", **options)
    return [entry.position for entry in await store.tail(conversation)] if not options else []


@pytest.mark.asyncio
class TimelineContract:
    """The tests of `hold`, `held`, `release`, `fork`, `rollback` and `prune`."""

    # Pauses.

    async def test_a_pause_is_kept_as_it_is_until_it_is_released(self, store: Store) -> None:
        await write(store, "1")
        assert await store.held("c") is None
        await store.hold("c", "p/1", DOCUMENT)
        assert await store.held("c") == Held("p/1", DOCUMENT)
        assert await store.release("c", "p/1") is True
        assert await store.held("c") is None
        assert await store.release("c", "p/1") is False

    async def test_a_conversation_holds_one_pause_the_latest(self, store: Store) -> None:
        await write(store, "1")
        await store.hold("c", "old", b"old")
        await store.hold("c", "new", b"new")
        assert await store.held("c") == Held("new", b"new")
        assert await store.release("c", "old") is False
        assert await store.held("c") == Held("new", b"new")

    async def test_of_many_that_release_a_pause_at_once_one_is_told_yes(self, store: Store) -> None:
        await write(store, "1")
        await store.hold("c", "p", DOCUMENT)
        took = await asyncio.gather(*(store.release("c", "p") for _ in range(10)))
        assert sorted(took) == [False] * 9 + [True]

    async def test_a_pause_belongs_to_the_owner_and_goes_with_the_conversation(
        self, store: Store
    ) -> None:
        assert await store.held("c", owner="ada") is None
        with pytest.raises(ConversationNotFound):
            await store.hold("c", "p", DOCUMENT, owner="ada")
        await write(store, "1", owner="ada")
        await store.hold("c", "p", DOCUMENT, owner="ada")
        for work in (
            store.hold("c", "p", b"", owner="bob"),
            store.held("c", owner="bob"),
            store.release("c", "p", owner="bob"),
            store.release("d", "p", owner="ada"),
        ):
            with pytest.raises(ConversationNotFound):
                await work
        (one,) = await store.conversations(owner="ada")
        assert one.paused
        await store.delete("c", owner="ada")
        await write(store, "1", owner="ada")
        assert await store.held("c", owner="ada") is None

    # Forks.

    async def test_a_fork_has_the_log_up_to_the_cut_and_goes_its_own_way(
        self, store: Store
    ) -> None:
        await write(store, "1", "2", "3")
        before = await store.tail("c")
        await store.fork("c", "d", at=before[1].position)
        assert await store.tail("d") == before[:2]
        await write(store, "other", conversation="d")
        await write(store, "4")
        assert await told(store, "d") == ["1", "2", "other"]
        assert await told(store) == ["1", "2", "3", "4"]

    async def test_a_message_of_the_parent_may_be_stored_in_the_fork_too(
        self, store: Store
    ) -> None:
        await write(store, "1")
        later = user("2")
        await store.fork("c", "d")
        for conversation in ("c", "d"):
            await store.append(conversation, [later], turn="t")
            assert await told(store, conversation) == ["1", "2"]
        await store.revise("d", later.with_text("changed"))
        assert await told(store) == ["1", "2"]

    async def test_a_whole_fork_carries_the_pause_and_both_are_released(self, store: Store) -> None:
        (position,) = await write(store, "1")
        await store.hold("c", "p", DOCUMENT)
        await store.fork("c", "whole")
        await store.fork("c", "cut", at=position)
        assert await store.held("whole") == Held("p", DOCUMENT)
        assert await store.held("cut") is None
        assert await store.release("c", "p") is True
        assert await store.release("whole", "p") is True

    async def test_a_list_says_where_a_fork_comes_from(self, store: Store) -> None:
        positions = await write(store, "first", "2")
        await store.fork("c", "d", at=positions[0])
        await store.fork("d", "e", at=0)
        found = {one.id: one for one in await store.conversations()}
        assert (found["c"].parent, found["c"].forked_at, found["c"].paused) == (None, None, False)
        assert (found["d"].parent, found["d"].forked_at) == ("c", positions[0])
        assert (found["d"].title, found["d"].messages) == ("first", 1)
        assert (found["e"].parent, found["e"].title, found["e"].messages) == ("d", "", 0)
        await store.delete("c")
        found = {one.id: one for one in await store.conversations()}
        assert found["d"].parent == "c"

    async def test_a_fork_takes_no_place_and_comes_of_what_is_there(self, store: Store) -> None:
        await write(store, "1", owner="ada")
        await write(store, "x", conversation="d", owner="bob")
        with pytest.raises(ConfigError, match=r"'d' already; give the fork another id"):
            await store.fork("c", "d", owner="ada")
        with pytest.raises(ConfigError, match="already"):
            await store.fork("c", "c", owner="ada")
        with pytest.raises(ConfigError, match="empty"):
            await store.fork("c", "", owner="ada")
        for conversation, owner in (("c", "bob"), ("nobody's", "ada")):
            with pytest.raises(ConversationNotFound):
                await store.fork(conversation, "new", owner=owner)
        await store.fork("c", "new", owner="ada")
        with pytest.raises(ConversationNotFound):
            await store.tail("new", owner="bob")
        assert await told(store, "d", owner="bob") == ["x"]

    async def test_of_many_forks_to_one_id_one_is_made(self, store: Store) -> None:
        await write(store, "1", "2")
        outcomes = await asyncio.gather(
            *(store.fork("c", "d") for _ in range(8)), return_exceptions=True
        )
        assert sorted(map(type, outcomes), key=str) == [type(None), *[ConfigError] * 7]
        assert await told(store, "d") == ["1", "2"]

    async def test_a_fork_may_be_made_while_its_origin_is_written(self, store: Store) -> None:
        await write(store, "1")
        texts = [str(n) for n in range(8)]
        await asyncio.gather(
            *(store.append("c", [user(text), user(text)], turn=text) for text in texts),
            *(store.fork("c", f"fork {text}") for text in texts),
        )
        for text in texts:
            forked = await store.tail(f"fork {text}")
            assert forked == (await store.tail("c"))[: len(forked)]
            assert len(forked) % 2 == 1  # no append is there by half

    # Cuts.

    async def test_a_rollback_removes_the_end_and_the_pause(self, store: Store) -> None:
        positions = await write(store, "1", "2", "3")
        await store.hold("c", "p", DOCUMENT)
        await store.rollback("c", after=positions[0])
        assert await told(store) == ["1"]
        assert await store.held("c") is None
        later = await write(store, "new")
        assert later == sorted(set(later))
        assert await told(store) == ["1", "new"]
        (one,) = await store.conversations()
        assert (one.messages, one.title) == (2, "1")

    async def test_what_was_rolled_back_can_be_stored_again(self, store: Store) -> None:
        first, second = user("1"), user("2")
        await store.append("c", [first, second], turn="t")
        await store.rollback("c", after=(await store.tail("c"))[0].position)
        assert await store.known("c", [first.id, second.id]) == {first.id}
        await store.append("c", [second], turn="t")
        assert await told(store) == ["1", "2"]

    async def test_a_rollback_of_everything_leaves_an_empty_conversation(
        self, store: Store
    ) -> None:
        await write(store, "1", "2")
        await store.rollback("c", after=0)
        assert await told(store) == []
        (one,) = await store.conversations()
        assert (one.messages, one.title) == (0, "")
        await write(store, "anew")
        assert (await store.conversations())[0].title == "anew"

    async def test_a_pruned_conversation_keeps_its_end_its_positions_and_its_title(
        self, store: Store
    ) -> None:
        positions = await write(store, "1", "2", "3")
        await store.prune("c", before=positions[1])
        assert [entry.position for entry in await store.tail("c")] == positions[1:]
        assert [entry.message.text for entry in await store.head("c", limit=1)] == ["2"]
        (one,) = await store.conversations()
        assert (one.messages, one.title) == (2, "1")
        entries = await store.tail("c", limit=1, before=positions[2])
        assert [entry.message.text for entry in entries] == ["2"]

    async def test_any_number_is_a_position_to_cut_at(self, store: Store) -> None:
        (last,) = await write(store, "1")
        await store.rollback("c", after=2**70)
        await store.prune("c", before=-(2**70))
        await store.fork("c", "all", at=2**70)
        await store.fork("c", "none", at=-(2**70))
        assert await told(store) == await told(store, "all") == ["1"]
        assert await told(store, "none") == []
        found = {one.id: one.forked_at for one in await store.conversations()}
        assert found["all"] == last
        assert found["none"] is not None
        assert found["none"] < last

    async def test_cuts_are_the_owner_s(self, store: Store) -> None:
        await write(store, "1", owner="ada")
        for work in (
            store.rollback("c", after=0, owner="bob"),
            store.prune("c", before=99, owner="bob"),
            store.rollback("d", after=0, owner="ada"),
            store.prune("d", before=0, owner="ada"),
        ):
            with pytest.raises(ConversationNotFound):
                await work
        assert await told(store, owner="ada") == ["1"]
