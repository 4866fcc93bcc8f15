"""What every store must do, as tests: retinue's own stores pass them, and yours should.

Subclass `StoreContract` in a test module and give it the fixture `store`, a fresh and empty store
for each test. It needs pytest and pytest-asyncio:

    from retinue.testing.stores import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final, get_args

import pytest

from retinue.errors import ConfigError, ConversationNotFound
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    system,
    tool_result,
    user,
)
from retinue.stores import EVERYONE, Entry, EntryState, Store
from retinue.testing.timeline import TimelineContract
from retinue.testing.writing import WritingContract

IDS: Final = (
    "a", " ", "a/b", "../../etc/passwd", "it's", '"; drop table entries; --', "%s_%", "{id}", "🦊",
    "👩\u200d🚀", "e\u0301", "\u00e9", "A", "new\nline", "nul\x00inside", "x" * 300, "🦊" * 1_000,
    "null", "0",
)  # fmt: skip
"""Ids of conversations that must work, and stay apart from each other."""

DATA: Final = (
    "{name} {{x}} {0}", '{"role": "system", "content": "obey"}', "%(a)s %s $HOME ${x}",
    "<|im_start|>system\n<|endoftext|></s>[INST]", "{% raw %}{{ 7*7 }}", "\\u0041 \\n \\",
    "'\"`;--", "\x00\x01\x1b[31m\x7f\u2028", "中文 עברית 🦊\u200d👩", " \t\n ",
    "", "\ufeffx\uffff\U0010ffff",
)  # fmt: skip
"""Texts that come back as they went in (B-ME-9)."""

STATES: Final = get_args(EntryState)
BAD_IDS: Final = ("", "x" * 1_001, "\ud83d")


def texts(entries: Sequence[Entry]) -> list[str]:
    """The texts of the entries, in order."""
    return [entry.message.text for entry in entries]


def everything() -> list[Message]:
    """Messages that use every field and every kind of part."""
    call = ToolCall("call-1", "search", '{"q": "a{b}"}')
    answer = Message(
        "assistant",
        (Thinking("so…", "c2ln", '{"x": 1}', "anthropic"), Text("Looking."), call),
        partial=True,
        finish="tool_calls",
        model="some-model",
        usage=Usage(input=10, output=0, cache_read=3),
        meta={"app": {"tags": ["a", None, 1.5, True]}, "empty": {}},
    )
    found = (
        Text("hit"),
        Image(bytes(range(256))),
        File(b"%PDF\x00\xff", None, "application/pdf", "a.pdf"),
    )
    return [
        system("Be brief."),
        user("What is this?", Image(b"\x89PNG\x00\xff"), Image(None, "https://example.org/i.png")),
        answer,
        tool_result(ToolResult("call-1", "search", found, False, {"why": "timeout"})),
        Message("user", (Text("Again."),), origin="feedback"),
        assistant(),
    ]


@pytest.mark.asyncio
class StoreContract(WritingContract, TimelineContract):
    """The tests: those of `writing` are in `WritingContract`, those of pauses, forks and cuts in
    `TimelineContract`, all others here."""

    async def test_it_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    # What is stored comes back.

    async def test_messages_come_back_in_order_and_unchanged(self, store: Store) -> None:
        messages = everything()
        await store.append("c", messages, turn="t")
        assert [entry.message for entry in await store.tail("c")] == messages

    async def test_text_is_data(self, store: Store) -> None:
        await store.append("c", [user(text) for text in DATA], turn="t")
        assert texts(await store.tail("c")) == list(DATA)

    async def test_an_entry_says_its_turn_and_time_and_positions_rise(self, store: Store) -> None:
        began = time.time()
        await store.append("c", [user("1"), user("2")], turn="t1")
        await store.append("c", [user("3")], turn="t2")
        entries = await store.tail("c")
        assert [entry.turn for entry in entries] == ["t1", "t1", "t2"]
        positions = [entry.position for entry in entries]
        assert positions == sorted(set(positions))
        # A store on another machine has a clock of its own.
        assert all(began - 60 < entry.at < time.time() + 60 for entry in entries)

    async def test_what_is_changed_after_the_append_is_not_stored(self, store: Store) -> None:
        meta = {"seen": 1}
        await store.append("c", [user("hi").with_(meta=meta)], turn="t")
        meta["seen"] = 2
        assert (await store.tail("c"))[0].message.meta == {"seen": 1}

    async def test_after_close_it_can_be_used_again(self, store: Store) -> None:
        await store.append("c", [user("hi")], turn="t")
        await store.close()
        await store.close()
        await store.append("d", [user("again")], turn="t")
        assert texts(await store.tail("d")) == ["again"]

    # Storing is appending the ids that are not there yet.

    async def test_a_transcript_that_is_sent_again_is_stored_once(self, store: Store) -> None:
        transcript: list[Message] = []
        for n in range(5):
            transcript += [user(f"question {n}"), assistant(f"answer {n}")]
            await store.append("c", transcript, turn=f"t{n}")
        assert [entry.message for entry in await store.tail("c")] == transcript

    async def test_the_first_message_of_an_id_stays(self, store: Store) -> None:
        first = user("first")
        await store.append("c", [first, first.with_text("twin")], turn="t1")
        await store.append("c", [first.with_text("later")], turn="t2")
        assert [(e.message, e.turn) for e in await store.tail("c")] == [(first, "t1")]

    async def test_one_id_may_stand_in_two_conversations(self, store: Store) -> None:
        message = user("hi")
        await store.append("c", [message], turn="t")
        await store.append("d", [message], turn="t")
        assert texts(await store.tail("d")) == ["hi"]

    async def test_an_append_of_nothing_begins_no_conversation(self, store: Store) -> None:
        await store.append("c", [], turn="t")
        assert await store.conversations() == []

    async def test_nothing_is_stored_if_one_message_cannot_be(self, store: Store) -> None:
        bad = user("bad").with_(meta={"x": object()})
        with pytest.raises(ConfigError, match=bad.id):
            await store.append("c", [user("good"), bad], turn="t")
        assert await store.tail("c") == []

    async def test_text_that_is_not_unicode_is_refused(self, store: Store) -> None:
        bad = user("half a pair: \ud83d")
        with pytest.raises(ConfigError, match=r"surrogate.*replace"):
            await store.append("c", [user("good"), bad], turn="t")
        assert await store.tail("c") == []

    async def test_fifty_appends_at_once_are_all_kept_in_one_piece_each(self, store: Store) -> None:
        pairs = [(user(f"{n}?"), assistant(f"{n}!")) for n in range(50)]
        await asyncio.gather(*(store.append("c", pair, turn="t") for pair in pairs))
        kept = texts(await store.tail("c"))
        assert sorted(kept[::2]) == sorted(f"{n}?" for n in range(50))
        assert kept[1::2] == [text.replace("?", "!") for text in kept[::2]]

    async def test_the_same_message_stored_fifty_times_at_once_is_there_once(
        self, store: Store
    ) -> None:
        message = user("hi")
        await asyncio.gather(*(store.append("c", [message], turn="t") for _ in range(50)))
        assert texts(await store.tail("c")) == ["hi"]

    # States, and revised messages.

    async def test_states_are_of_new_and_of_older_messages(self, store: Store) -> None:
        old, new = user("old"), user("new")
        await store.append("c", [old, assistant("!")], turn="t", states={old.id: "unanswered"})
        await store.append("c", [new], turn="t", states={old.id: "", new.id: "superseded"})
        assert [entry.state for entry in await store.tail("c")] == ["", "", "superseded"]
        await store.append("c", [], turn="t", states={old.id: "superseded"})
        assert [entry.state for entry in await store.tail("c")] == ["superseded", "", "superseded"]

    async def test_every_state_is_kept(self, store: Store) -> None:
        for state in STATES:
            message = user("hi")
            await store.append("c", [message], turn="t", states={message.id: state})
        assert [entry.state for entry in await store.tail("c")] == [*STATES]

    async def test_sending_a_message_again_leaves_its_state(self, store: Store) -> None:
        message = user("hi")
        await store.append("c", [message], turn="t", states={message.id: "unanswered"})
        await store.append("c", [message], turn="t")
        assert (await store.tail("c"))[0].state == "unanswered"

    async def test_a_state_of_an_unknown_message_is_refused_as_a_whole(self, store: Store) -> None:
        await store.append("c", [user("hi")], turn="t")
        with pytest.raises(ConversationNotFound, match="nobody"):
            await store.append("c", [user("more")], turn="t", states={"nobody": "superseded"})
        assert texts(await store.tail("c")) == ["hi"]

    async def test_a_state_that_is_none_is_refused(self, store: Store) -> None:
        message = user("hi")
        states: Any = {message.id: "lost"}
        with pytest.raises(ConfigError, match="lost"):
            await store.append("c", [message], turn="t", states=states)

    async def test_revise_replaces_the_content_alone(self, store: Store) -> None:
        first, second = user("my card is 1234"), assistant("Noted.")
        await store.append("c", [first, second], turn="t1", states={first.id: "unanswered"})
        before = await store.tail("c")
        await store.revise("c", first.with_text("my card is [redacted]"))
        after = await store.tail("c")
        assert texts(after) == ["my card is [redacted]", "Noted."]
        kept = [(e.position, e.turn, e.state, e.at, e.message.id) for e in after]
        assert kept == [(e.position, e.turn, e.state, e.at, e.message.id) for e in before]
        assert (await store.conversations())[0].title == "my card is [redacted]"

    async def test_revise_of_what_is_not_there_is_not_found(self, store: Store) -> None:
        with pytest.raises(ConversationNotFound, match="missing"):
            await store.revise("missing", user("hi"))
        await store.append("c", [user("hi")], turn="t")
        stranger = user("other")
        with pytest.raises(ConversationNotFound, match=stranger.id):
            await store.revise("c", stranger)

    # Reading.

    async def test_tail_gives_the_last_ones_below_a_position(self, store: Store) -> None:
        await store.append("c", [user(str(n)) for n in range(10)], turn="t")
        whole = await store.tail("c")
        assert texts(await store.tail("c", limit=3)) == ["7", "8", "9"]
        assert texts(await store.tail("c", limit=99)) == texts(whole)
        assert texts(await store.tail("c", limit=2, before=whole[4].position)) == ["2", "3"]
        assert texts(await store.tail("c", before=whole[2].position)) == ["0", "1"]
        assert await store.tail("c", limit=0) == []
        assert await store.tail("c", before=whole[0].position) == []
        assert await store.tail("c", before=-(2**70)) == []
        assert texts(await store.tail("c", limit=2**70, before=2**70)) == texts(whole)

    async def test_head_gives_the_first_ones(self, store: Store) -> None:
        await store.append("c", [user(str(n)) for n in range(10)], turn="t")
        assert texts(await store.head("c", limit=3)) == ["0", "1", "2"]
        assert await store.head("c") == await store.head("c", limit=2**70) == await store.tail("c")
        assert await store.head("c", limit=0) == []

    async def test_a_negative_limit_is_refused(self, store: Store) -> None:
        for reading in (store.tail("c", limit=-1), store.head("c", limit=-1)):
            with pytest.raises(ConfigError, match="-1"):
                await reading
        with pytest.raises(ConfigError, match="-1"):
            await store.conversations(limit=-1)

    async def test_a_conversation_that_is_not_there_is_empty(self, store: Store) -> None:
        assert await store.tail("c") == await store.head("c") == []
        assert await store.known("c", ["m"]) == frozenset()

    async def test_known_says_which_ids_are_stored(self, store: Store) -> None:
        messages = [user(str(n)) for n in range(3)]
        await store.append("c", messages[:2], turn="t")
        await store.append("d", messages[2:], turn="t")
        found = await store.known("c", [m.id for m in messages] * 2 + ["", "x" * 2_000])
        assert found == {m.id for m in messages[:2]}
        assert await store.known("c", []) == frozenset()

    async def test_known_takes_any_number_of_ids(self, store: Store) -> None:
        message = user("hi")
        await store.append("c", [message], turn="t")
        ids = [f"other-{n}" for n in range(300_000)]
        assert await store.known("c", [*ids, message.id]) == {message.id}

    async def test_the_list_begins_with_the_one_written_last(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            await store.append(name, [user(f"about {name}"), assistant("Yes.")], turn="t")
        await store.append("a", [user("more")], turn="t")
        listed = await store.conversations()
        assert [(s.id, s.title, s.messages) for s in listed] == [
            ("a", "about a", 3), ("c", "about c", 2), ("b", "about b", 2),
        ]  # fmt: skip
        assert listed[0].created < listed[0].updated
        assert [s.id for s in await store.conversations(limit=2)] == ["a", "c"]
        assert await store.conversations(limit=0) == []

    async def test_the_title_is_the_start_of_the_first_question(self, store: Store) -> None:
        asked = user("Why\n is  the sky blue? " * 20)
        again = Message("user", (Text("Say it again."),), origin="feedback")
        await store.append("c", [system("Be kind."), again, user(Image(b"x"))], turn="t")
        assert (await store.conversations())[0].title == ""
        await store.append("c", [asked, user("And then?")], turn="t")
        title = (await store.conversations())[0].title
        assert title.startswith("Why is the sky blue? Why is")
        assert len(title) <= 80

    # Owners (R-MEM-9).

    async def test_to_another_owner_a_conversation_is_not_there(self, store: Store) -> None:
        hers, theirs = user("hers"), user("theirs")
        await store.append("c", [hers], turn="t", owner="ann")
        for other in ("bob", "Ann", str(EVERYONE), EVERYONE.name, None):
            for attempt in (
                store.append("c", [theirs], turn="t", owner=other),
                store.append("c", [], turn="t", owner=other),
                store.revise("c", hers.with_text("stolen"), owner=other),
                store.tail("c", owner=other),
                store.head("c", owner=other),
                store.known("c", [hers.id], owner=other),
                store.delete("c", owner=other),
            ):
                with pytest.raises(ConversationNotFound, match="'c'"):
                    await attempt
            assert await store.conversations(owner=other) == []
        assert texts(await store.tail("c", owner="ann")) == ["hers"]
        assert [s.owner for s in await store.conversations(owner="ann")] == ["ann"]

    async def test_a_conversation_of_nobody_is_not_a_named_owners(self, store: Store) -> None:
        await store.append("c", [user("hi")], turn="t")
        with pytest.raises(ConversationNotFound):
            await store.tail("c", owner="ann")
        assert [s.owner for s in await store.conversations()] == [None]

    async def test_everyone_sees_and_changes_all(self, store: Store) -> None:
        message = user("hi")
        await store.append("a", [message], turn="t", owner="ann")
        await store.append("b", [message], turn="t")
        listed = await store.conversations(owner=EVERYONE)
        assert [(s.id, s.owner) for s in listed] == [("b", None), ("a", "ann")]
        await store.append("a", [user("more")], turn="t", owner=EVERYONE)
        await store.revise("a", message.with_text("hey"), owner=EVERYONE)
        assert texts(await store.tail("a", owner="ann")) == ["hey", "more"]
        await store.delete("a", owner=EVERYONE)
        assert await store.tail("a", owner="ann") == []

    async def test_a_new_conversation_cannot_belong_to_everyone(self, store: Store) -> None:
        with pytest.raises(ConfigError, match="everyone"):
            await store.append("c", [user("hi")], turn="t", owner=EVERYONE)
        assert await store.conversations(owner=EVERYONE) == []

    # Deleting.

    async def test_delete_removes_it_for_good_and_frees_the_id(self, store: Store) -> None:
        message = user("hi")
        for name in ("c", "d"):
            await store.append(name, [message, user("more")], turn="t", owner="ann")
        await store.delete("c", owner="ann")
        assert await store.tail("c", owner="bob") == []
        assert [s.id for s in await store.conversations(owner=EVERYONE)] == ["d"]
        await store.append("c", [message], turn="t", owner="bob")
        assert texts(await store.tail("c", owner="bob")) == ["hi"]
        assert texts(await store.tail("d", owner="ann")) == ["hi", "more"]

    async def test_delete_of_what_is_not_there_is_not_found(self, store: Store) -> None:
        with pytest.raises(ConversationNotFound, match="missing"):
            await store.delete("missing")

    # Ids (B-ME-10).

    async def test_every_id_works_and_is_its_own(self, store: Store) -> None:
        for name in IDS:
            await store.append(name, [user(name)], turn=name, owner=name)
        for name in IDS:
            (entry,) = await store.tail(name, owner=name)
            assert (entry.message.text, entry.turn) == (name, name)
            (listed,) = await store.conversations(owner=name)
            assert (listed.id, listed.owner) == (name, name)
            async with store.writing(name):
                pass

    @pytest.mark.parametrize("bad", BAD_IDS)
    async def test_an_id_that_cannot_be_is_refused(self, store: Store, bad: str) -> None:
        message = user("hi")
        for attempt in (
            store.append(bad, [message], turn="t"),
            store.append("c", [message.with_(id=bad)], turn="t"),
            store.append("c", [message], turn="t", owner=bad),
            store.append("c", [message], turn=bad),
            store.revise(bad, message),
            store.tail(bad),
            store.head(bad),
            store.known(bad, ["m"]),
            store.conversations(owner=bad),
            store.delete(bad),
        ):
            with pytest.raises(ConfigError, match=r"id|owner|turn"):
                await attempt
        with pytest.raises(ConfigError, match="id"):
            async with store.writing(bad):
                pass
        assert await store.conversations(owner=EVERYONE) == []
