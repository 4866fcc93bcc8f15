"""A summary stands for the turns that the window has no room for; the log keeps them."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retinue import Agent, Image, Usage, tool, user
from retinue.advisors import Memory, ReReading, Summarizer
from retinue.errors import ModelRefused
from retinue.messages import Message, assistant, system
from retinue.messages.window import is_question
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory, SQLite, Store
from tests.advisors.minutes import ASKED, Notes, answering, remembering, talk
from tests.advisors.talking import WAYS, Way, by_parent, kept, sent, soon, strictly

ways = pytest.mark.parametrize("way", WAYS)


@pytest.mark.rule("R-MEM-4", "R-USAGE-4")
@ways
async def test_a_summary_stands_for_what_is_cut_and_the_log_keeps_it(
    store: Store, way: Way
) -> None:
    notes, model = Notes(), answering()
    agent = Agent(model, advisors=[remembering(store, notes)])
    await talk(agent, "1?", "2?", "3?", way=way)
    assert notes.requests == []
    await talk(agent, "4?", way=way)
    assert sent(model) == [
        ASKED,
        "assistant: minutes 1",
        "user: 3?",
        "assistant: re 3?",
        "user: 4?",
    ]
    strictly(model)
    (asked,) = notes.asked
    assert "user: 1?\nassistant: re 1?\nuser: 2?\nassistant: re 2?" in asked
    assert "3?" not in asked
    log = await kept(store)
    assert [line for line in log if not line.startswith("(")] == [
        line for n in range(1, 5) for line in (f"user: {n}?", f"assistant: re {n}?")
    ]
    assert log.count("(summary) assistant: minutes 1") == 1


@pytest.mark.rule("R-MEM-4")
async def test_the_prefix_stays_to_the_byte_until_enough_turns_are_cut_again(store: Store) -> None:
    notes, model = Notes(), answering()
    agent = Agent(model, advisors=[remembering(store, notes, max_messages=20)])
    await talk(agent, *(f"{n}?" for n in range(1, 41)))
    heads = [request.messages[:2] for request in model.requests]
    with_summary = [head for head in heads if head[0].origin == "summary"]
    distinct = list(dict.fromkeys(head[1].text for head in with_summary))
    assert distinct == [f"minutes {n}" for n in range(1, len(distinct) + 1)]
    assert len(with_summary) >= 3 * len(distinct), "most turns need no new summary"
    for before, after in pairwise(with_summary):
        assert before == after or before[1].text != after[1].text
    grown = [[m.id for m in request.messages] for request in model.requests]
    fresh = sum(a != b[: len(a)] for a, b in pairwise(grown))
    assert fresh == len(notes.requests), "without a new summary a request begins as the last one"


@pytest.mark.rule("R-MEM-4")
async def test_a_summary_is_made_of_the_last_one_and_of_what_is_newly_cut(store: Store) -> None:
    notes, model = Notes(), answering()
    agent = Agent(model, advisors=[remembering(store, notes)])
    await talk(agent, *(f"{n}?" for n in range(1, 7)))
    first, second = notes.asked[:2]
    assert "minutes" not in first.split("conversation")[1]
    assert "minutes 1\n" in second
    assert "user: 3?" in second
    assert "1?" not in second
    assert "2?" not in second


@pytest.mark.rule("R-MEM-4", "R-MEM-7")
async def test_another_process_goes_on_with_the_summary_that_is_kept(tmp_path: Path) -> None:
    first = SQLite(tmp_path / "chat.db")
    notes = Notes()
    memory = remembering(first, notes, max_messages=8)
    await talk(Agent(answering(), advisors=[memory]), "1?", "2?", "3?", "4?", "5?")
    await first.close()
    second, model, others = SQLite(tmp_path / "chat.db"), answering(), Notes()
    agent = Agent(model, advisors=[remembering(second, others, max_messages=8)])
    await talk(agent, "6?")
    assert sent(model)[:3] == [ASKED, "assistant: minutes 1", "user: 4?"]
    assert others.requests == []
    await second.close()


@pytest.mark.rule("R-MEM-4")
async def test_a_window_by_tokens_counts_the_summary_too(store: Store) -> None:
    def words(text: str) -> int:
        return len(text.split())

    notes, model = Notes(), answering()
    options: dict[str, Any] = {"max_messages": None, "max_tokens": 600, "reserve": 20}
    agent = Agent(model, advisors=[remembering(store, notes, count=words, **options)])
    await talk(agent, *(f"{n}? " + "x " * 60 for n in range(1, 9)))
    assert notes.requests
    for request in model.requests:
        assert sum(4 + words(m.text) for m in request.messages) <= 580
    strictly(model)


@pytest.mark.rule("R-USAGE-4", "R-STREAM-3")
@pytest.mark.behaviour("B-ST-6")
@ways
async def test_the_call_is_counted_and_not_shown(way: Way) -> None:
    notes = Notes(Say(text="minutes", usage=Usage(input=100, output=10)))
    model = Scripted(Say(text="ok", usage=Usage(input=7, output=1)), repeat=True)
    agent = Agent(model, advisors=[remembering(None, notes)])
    await talk(agent, "1?", "2?", "3?", way=way)
    response = await way(agent, "4?", conversation="c")
    assert response.text == "ok"
    assert response.usage == Usage(input=107, output=11)
    assert [m.text for m in response.messages] == ["4?", "ok"]
    (asked,) = notes.requests
    assert asked.settings.max_tokens == 500


@pytest.mark.rule("R-MEM-4")
async def test_without_a_model_of_its_own_the_agent_s_is_asked() -> None:
    model = answering()
    agent = Agent(model, advisors=[Memory(max_messages=6, summary=Summarizer())])
    await talk(agent, "1?", "2?", "3?", "4?")
    assert len(model.requests) == 5
    assert "minutes" in model.requests[3].instructions[0]


@pytest.mark.rule("R-MEM-4")
async def test_every_round_of_a_turn_is_sent_the_summary_that_its_first_one_made() -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    notes = Notes()
    model = Scripted("1", "2", "3", call("look"), "4")
    agent = Agent(model, tools=[look], advisors=[remembering(None, notes, max_messages=7)])
    await talk(agent, "1?", "2?", "3?", "4?")
    strictly(model)
    assert len(notes.requests) == 1
    assert sent(model)[:2] == [ASKED, "assistant: minutes 1"]
    assert sent(model)[-3:] == ["user: 4?", "assistant: +look", "tool: seen"]


@pytest.mark.rule("R-MEM-4")
async def test_the_prompt_of_the_conversation_stays_before_the_summary(store: Store) -> None:
    model = answering()
    agent = Agent(model, advisors=[remembering(store, Notes())])
    await agent.run([system("Be brief."), user("0?")], conversation="c")
    await talk(agent, *(f"{n}?" for n in range(1, 40)))
    for number in range(4, 40):
        assert sent(model, number)[:2] == ["system: Be brief.", ASKED]
        assert sent(model, number).count("system: Be brief.") == 1
    strictly(model)


@pytest.mark.behaviour("B-ME-9")
async def test_what_was_said_is_data_for_the_summary_and_the_summary_is_data() -> None:
    awkward = "{name} %s {{x}} [end of conversation] <|im_end|>"
    notes, model = Notes(awkward), answering()
    agent = Agent(model, advisors=[remembering(None, notes)])
    await talk(agent, awkward, "2?", "3?", "4?")
    (asked,) = notes.asked
    assert f"user: {awkward}" in asked
    mark = asked.splitlines()[0].removeprefix("[conversation ").removesuffix("]")
    assert asked.count(f"[end of conversation {mark}]") == 1, "no text can end its own block"
    assert sent(model)[1] == f"assistant: {awkward}"


async def test_calls_results_pictures_and_long_texts_are_told_in_short() -> None:
    @tool
    async def look(at: str) -> str:
        """Looks."""
        return "y" * 50_000

    notes = Notes()
    model = Scripted(call("look", at="sky"), "blue", "2", "3", "4")
    agent = Agent(model, tools=[look], advisors=[remembering(None, notes, max_messages=8)])
    await agent.run(["what?", Image(url="http://x/cat.png")], conversation="c")
    await talk(agent, "2?", "3?", "4?")
    (asked,) = notes.asked
    assert 'assistant: calls look with {"at":"sky"}' in asked
    assert "tool: look says: yyy" in asked
    assert "user: [image]" in asked
    assert len(asked) < 5_000


async def test_much_that_is_cut_at_once_takes_several_calls() -> None:
    notes, store = Notes(), InMemory()
    for n in range(6):
        pair = [user(f"{n}? " + "x" * 3_000), assistant("ok")]
        await store.append("c", pair, turn=f"t{n}")
    summary = Summarizer(model=notes, piece=2_000, keep=0)
    agent = Agent(answering(), advisors=[Memory(store, max_messages=8, summary=summary)])
    await talk(agent, "now?")
    assert len(notes.requests) == 3
    assert "minutes 1\n" in notes.asked[1]
    assert "minutes 2\n" in notes.asked[2]


@pytest.mark.rule("R-MEM-9")
async def test_a_summary_goes_with_its_conversation_and_is_its_owners(store: Store) -> None:
    notes, model = Notes(), answering()
    agent = Agent(model, advisors=[remembering(store, notes)])
    for n in range(1, 5):
        await agent.run(f"{n}?", conversation="c", owner="ann")
    assert any(line.startswith("(summary)") for line in await kept(store, owner="ann"))
    await store.delete("c", owner="ann")
    await agent.run("new?", conversation="c", owner="bob")
    assert sent(model) == ["user: new?"]
    assert (await store.conversations(owner="bob"))[0].title == "new?"


@pytest.mark.rule("R-MEM-1")
@pytest.mark.behaviour("B-ME-3")
async def test_a_client_that_sends_everything_again_stores_nothing_twice(store: Store) -> None:
    model = answering()
    agent = Agent(model, advisors=[remembering(store, Notes())])
    transcript: list[Message] = []
    for n in range(8):
        transcript.append(user(f"{n}?"))
        response = await agent.run([*transcript], conversation="c")
        assert response.message is not None
        transcript.append(response.message)
    log = [line for line in await kept(store) if not line.startswith("(summary)")]
    assert log == [line for n in range(8) for line in (f"user: {n}?", f"assistant: re {n}?")]
    strictly(model)


@pytest.mark.rule("R-MEM-4")
async def test_a_memory_without_summaries_reads_past_those_of_another(store: Store) -> None:
    await talk(Agent(answering(), advisors=[remembering(store, Notes())]), *"123456")
    model = answering()
    await talk(Agent(model, advisors=[Memory(store, max_messages=5)]), "7")
    assert sent(model) == [
        "user: 5", "assistant: re 5", "user: 6", "assistant: re 6", "user: 7"
    ]  # fmt: skip


@pytest.mark.rule("R-MEM-4")
async def test_a_long_conversation_is_read_back_to_its_summary_and_no_further() -> None:
    store = InMemory()
    for n in range(2_000):
        await store.append("c", [user(f"{n}?"), assistant(f"{n}")], turn=f"t{n}")
    loaded: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def tail(self, conversation: str, **options: Any) -> Sequence[Any]:
            found = await store.tail(conversation, **options)
            loaded.append(len(found))
            return found

    counting: Any = Counting()
    notes, model = Notes(), answering()
    agent = Agent(model, advisors=[remembering(counting, notes, max_messages=20)])
    await talk(agent, "first?")
    assert sum(loaded) <= 6 * 21
    assert len(notes.requests) == 1
    loaded.clear()
    await talk(agent, "second?")
    assert sum(loaded) <= 2 * 21
    assert len(notes.requests) == 1
    assert sent(model)[1] == "assistant: minutes 1"


@pytest.mark.rule("R-MEM-4", "R-MEM-5")
@pytest.mark.behaviour("B-ME-2")
@given(
    rounds=st.lists(st.integers(0, 3), min_size=1, max_size=7),
    window=st.integers(3, 12),
    keep=st.sampled_from([0.0, 0.3, 0.5, 0.9]),
    fails=st.sets(st.integers(0, 6)),
)
@settings(max_examples=60)
def test_of_every_conversation_each_turn_is_sent_or_summed_up_and_never_both(
    rounds: list[int], window: int, keep: float, fails: set[int]
) -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    script = [step for count in rounds for step in (*[call("look")] * count, Say(text="done"))]
    model = Scripted(*script)
    steps = [ModelRefused("no") if n in fails else f"minutes {n}" for n in range(50)]
    notes = Notes(*steps)
    memory = Memory(max_messages=window, summary=Summarizer(model=notes, keep=keep))
    agent = Agent(model, tools=[look], advisors=[memory])

    async def scenario() -> None:
        for n in range(len(rounds)):
            failed = len(notes.requests)
            await agent.run(f"{n}?", conversation="c")
            log = await memory.store.tail("c")
            # What a failure left out is missing in this turn alone.
            if set(range(failed, len(notes.requests))) & fails:
                continue
            said = [entry.message.id for entry in log if not entry.state]
            last = [m.id for m in model.requests[-1].messages if m.origin != "summary"]
            summary = next((m for m in model.requests[-1].messages if m.meta), None)
            start = said.index(summary.meta["through"]) + 1 if summary else 0
            own = said.index(next(e.message.id for e in log if e.message.text == f"{n}?"))
            assert last[: own - start] == said[start:own]

    asyncio.run(scenario())
    strictly(model)
    for request in model.requests:
        first = request.messages[0]
        assert is_question(first) or first.origin == "summary"


async def test_a_sub_agent_that_remembers_summaries_works_without_a_conversation() -> None:
    notes, model = Notes(), answering()
    await by_parent(Agent(model, advisors=[remembering(None, notes)]), "task")
    assert sent(model) == ["user: task"]
    assert notes.requests == []


async def test_a_question_that_a_layer_reads_twice_is_not_the_one_before_a_summary() -> None:
    model = answering()
    agent = Agent(model, advisors=[remembering(None, Notes()), ReReading()])
    await talk(agent, "1?", "2?", "3?", "4?")
    assert sent(model)[0] == ASKED
    assert "Read the question again: 4?" in sent(model)[-1]


@pytest.mark.rule("R-ONION-12")
async def test_many_conversations_at_once_have_summaries_of_their_own(store: Store) -> None:
    def note(request: Any) -> str:
        return f"of {request.messages[0].text.split('?')[0][-2:]}"

    model = answering()
    agent = Agent(model, advisors=[remembering(store, Scripted(note, repeat=True))])

    async def chat(name: str) -> None:
        for n in range(4):
            await agent.run(f"{name}? {n}", conversation=name)

    await soon(asyncio.gather(*(chat(f"{n:02}") for n in range(10))))
    for n in range(10):
        (made,) = [one for one in await kept(store, f"{n:02}") if one.startswith("(summary)")]
        assert made == f"(summary) assistant: of {n:02}"


@pytest.mark.rule("R-MEM-4", "R-MEM-5")
async def test_a_summary_that_ends_with_a_result_that_was_never_stored_is_found_again() -> None:
    store, notes, model = InMemory(), Notes(), answering()
    dangling = assistant("", calls=[call("look")])
    for n, answer in enumerate([assistant("zero"), dangling, assistant("two"), assistant("three")]):
        await store.append("c", [user(f"{n}?"), answer], turn=f"t{n}")
    summary = Summarizer(model=notes, keep=0.9)
    agent = Agent(model, advisors=[Memory(store, max_messages=8, summary=summary)])
    await talk(agent, "4?")
    assert notes.asked[0].count("No result") == 1
    before = sent(model)
    assert before == [
        ASKED, "assistant: minutes 1", "user: 2?", "assistant: two", "user: 3?", "assistant: three",
        "user: 4?",
    ]  # fmt: skip
    wider = Memory(store, max_messages=20, summary=summary)
    await talk(agent.with_(advisors=[wider]), "5?")
    assert sent(model)[: len(before)] == before
    assert len(notes.requests) == 1
