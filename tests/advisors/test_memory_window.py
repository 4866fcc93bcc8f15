"""What of a long conversation a model call is sent, and what it costs to keep one."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retinue import Agent, Image, Layer, Limits, tool, user
from retinue.advisors import Memory
from retinue.errors import ModelRefused
from retinue.messages import Message, Text, assistant, system
from retinue.messages.window import is_question
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory, Store
from tests.advisors.talking import WAYS, Way, sent, strictly


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


def words(text: str) -> int:
    return len(text.split())


async def talk(agent: Agent, *questions: str, way: Way = WAYS[0]) -> None:
    for question in questions:
        await way(agent, question, conversation="c")


@pytest.mark.rule("R-MEM-4")
@pytest.mark.behaviour("B-ME-2")
@pytest.mark.parametrize("way", WAYS)
async def test_a_window_by_messages_keeps_the_latest_turns_whole(store: Store, way: Way) -> None:
    script = [call("search"), "one", "two", call("search"), "three", "four"]
    model = Scripted(*script)
    agent = Agent(model, tools=[search], advisors=[Memory(store, max_messages=7)])
    await talk(agent, "1?", "2?", "3?", "4?", way=way)
    strictly(model)
    assert sent(model) == [
        "user: 2?", "assistant: two",
        "user: 3?", "assistant: +search", "tool: found x", "assistant: three", "user: 4?",
    ]  # fmt: skip
    assert len(await store.tail("c")) == 12, "the log keeps everything"


@pytest.mark.rule("R-MEM-4")
async def test_a_window_by_tokens_leaves_the_reserve_and_room_for_what_is_sent_beside(
    store: Store,
) -> None:
    def sized(tokens: int) -> Memory:
        return Memory(store, max_messages=None, max_tokens=tokens, reserve=20, count=words)

    model = Scripted(lambda request: "a b c d", repeat=True)
    plain = Agent(model, advisors=[sized(1000)])
    await talk(plain, *("p q r s" for _ in range(6)))
    turn = 2 * (4 + 4)  # two messages of four words, and four tokens for the frame of each

    async def turns_sent(agent: Agent) -> int:
        await agent.run("p q r s", conversation="c")
        return len(model.requests[-1].messages) // 2

    assert await turns_sent(plain.with_(advisors=[sized(20 + 8 + 3 * turn)])) == 3
    assert await turns_sent(plain.with_(advisors=[sized(20 + 8 + 3 * turn - 1)])) == 2
    instructed = plain.with_(advisors=[sized(20 + 8 + 3 * turn)], instructions="be very brief")
    assert await turns_sent(instructed) == 2

    @tool
    async def long() -> str:
        """Does something that takes a great many words to say, so that it weighs on the window."""
        return ""

    armed = plain.with_(advisors=[sized(20 + 8 + 3 * turn)], tools=[long])
    assert await turns_sent(armed) < 2


@pytest.mark.rule("R-MEM-4")
async def test_the_default_count_takes_pictures_and_other_scripts_for_what_they_are(
    store: Store,
) -> None:
    async def turns_sent(question: Any) -> int:
        model = Scripted("ok", repeat=True)
        name = repr(question)[:200]
        agent = Agent(model, advisors=[Memory(store, max_tokens=2_600, reserve=100)])
        for _ in range(5):
            await agent.run(question, conversation=name)
        return len(model.requests[-1].messages) // 2

    assert await turns_sent("x" * 400) == 4
    assert await turns_sent(["see", Image(url="http://x/cat.png")]) == 1
    assert await turns_sent("語" * 800) == 3, "a character of Chinese is no quarter of a token"


@pytest.mark.rule("R-MEM-4")
@pytest.mark.behaviour("B-ME-2")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "window",
    [{"max_messages": 5}, {"max_messages": None, "max_tokens": 54, "reserve": 20, "count": words}],
    ids=["messages", "tokens"],
)
async def test_a_turn_larger_than_the_window_is_trimmed_pair_by_pair(
    store: Store, way: Way, window: dict[str, Any]
) -> None:
    model = Scripted("zero", *(call("search", query=f"q{n}") for n in range(6)), "done")
    agent = Agent(model, tools=[search], advisors=[Memory(store, **window)])
    await talk(agent, "before?", "now?", way=way)
    strictly(model)
    for request in model.requests[1:]:
        assert [m.text for m in request.messages if is_question(m)][-1] == "now?"
    assert sent(model) == [
        "user: now?", "assistant: +search", "tool: found q4", "assistant: +search", "tool: found q5"
    ]  # fmt: skip
    assert len(await store.tail("c")) == 2 + 1 + 12 + 1


@pytest.mark.rule("R-MEM-4")
async def test_a_question_larger_than_the_window_is_sent_all_the_same(store: Store) -> None:
    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(store, max_tokens=50, reserve=10)])
    await talk(agent, "x" * 10_000, "y" * 10_000)
    assert sent(model) == ["user: " + "y" * 10_000]


@pytest.mark.rule("R-MEM-4")
async def test_the_very_first_turn_of_a_conversation_passes_the_window(store: Store) -> None:
    model = Scripted("one")
    agent = Agent(model, advisors=[Memory(store, max_messages=1, max_tokens=5_000)])
    await talk(agent, "first?")
    assert sent(model) == ["user: first?"]


@pytest.mark.rule("R-MEM-4")
async def test_a_layer_that_writes_the_messages_anew_does_not_lose_the_question(
    store: Store,
) -> None:
    async def anew(request: Any, call_next: Any) -> Any:
        copies = [Message(m.role, m.parts) for m in request.messages]
        return await call_next(request.with_(messages=tuple(copies)))

    model = Scripted("one", "two", "three")
    layers = [Layer("anew", chat=anew), Memory(store, max_messages=None, max_tokens=60, reserve=1)]
    await talk(Agent(model, advisors=layers), "1?", "2?", "y" * 1_000)
    assert sent(model) == ["user: " + "y" * 1_000]


@pytest.mark.rule("R-MEM-4")
@pytest.mark.behaviour("B-ME-2")
async def test_a_view_begins_with_a_question_also_where_one_was_asked_again(store: Store) -> None:
    memory = Memory(store, max_messages=4)
    model = Scripted(ModelRefused("no"), *(f"a{n}" for n in range(8)), repeat=True)
    agent, question = Agent(model, advisors=[memory]), user("q")
    with pytest.raises(ModelRefused):
        await agent.run(question, conversation="c")
    await agent.run(question, conversation="c")
    await talk(agent, "1?", "2?", "3?", "4?", "5?")
    for request in model.requests:
        assert is_question(request.messages[0])
    strictly(model)


@pytest.mark.rule("R-MEM-4", "R-MEM-5", "R-LOOP-8")
@pytest.mark.behaviour("B-ME-2")
@given(
    rounds=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    window=st.integers(1, 9),
    by_tokens=st.booleans(),
)
@settings(max_examples=60)
def test_every_request_of_every_conversation_is_valid(
    rounds: list[int], window: int, by_tokens: bool
) -> None:
    model = Scripted(
        *(
            step
            for count in rounds
            for step in (*([[call("search")] * 1, [call("search"), call("search")]] * 2)[:count],
                         Say(text="done"))
        )
    )  # fmt: skip
    sizes: dict[str, Any] = {"max_messages": window}
    if by_tokens:
        sizes = {"max_messages": None, "max_tokens": 12 * window, "reserve": 0, "count": words}
    memory = Memory(InMemory(), **sizes)
    agent = Agent(model, tools=[search], advisors=[memory], limits=Limits(rounds=20))

    async def scenario() -> None:
        for n in range(len(rounds)):
            await agent.run(f"{n}?", conversation="c")

    asyncio.run(scenario())
    strictly(model)
    assert all(is_question(request.messages[0]) for request in model.requests)


@pytest.mark.rule("R-MEM-4")
@pytest.mark.parametrize(
    "window",
    [{"max_messages": 4}, {"max_messages": None, "max_tokens": 24, "reserve": 0, "count": words}],
    ids=["by messages", "by tokens"],
)
async def test_the_prompt_of_a_conversation_stays_however_long_it_grows(
    store: Store, window: dict[str, Any]
) -> None:
    refused = Layer("strict", turn=refuses_shouting)
    model = Scripted(*map(str, range(80)))
    agent = Agent(model, advisors=[Memory(store, **window), refused])
    await agent.run([system("Be kind."), user("WHAT?")], conversation="c")
    await agent.run([system("Be brief."), user("0?")], conversation="c")
    await talk(agent, *(f"{n}?" for n in range(1, 80)))
    views = [sent(model, number) for number in range(1, 80)]
    assert {view[0] for view in views} == {"system: Be brief."}
    assert all(view.count("system: Be brief.") == 1 for view in views)
    assert views[-1][-3:] == ["user: 78?", "assistant: 78", "user: 79?"]


@pytest.mark.rule("R-MEM-4")
async def test_a_prompt_behind_a_question_that_was_never_answered_is_sent_once(
    store: Store,
) -> None:
    model = Scripted(ModelRefused("no"), "one", "two")
    agent = Agent(model, advisors=[Memory(store, max_messages=4)])
    with pytest.raises(ModelRefused):
        await agent.run("what?", conversation="c")
    await agent.run([system("Be brief."), user("1?"), user("I mean 2?")], conversation="c")
    await talk(agent, "3?")
    assert sent(model) == ["system: Be brief.", "user: 3?"]


async def refuses_shouting(request: Any, call_next: Any) -> Any:
    return request.refuse("no") if request.messages[-1].text.isupper() else await call_next(request)


# -- cost ------------------------------------------------------------------------------------------


class Counting:
    """Passes all on to another store, and counts what goes through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.loaded = 0
        self.appended: list[int] = []
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)

    async def tail(self, conversation: str, **options: Any) -> Sequence[Any]:
        found = await self._store.tail(conversation, **options)
        self.calls.append("tail")
        self.loaded += len(found)
        return found

    async def append(self, conversation: str, messages: Sequence[Message], **options: Any) -> None:
        self.calls.append("append")
        self.appended.append(len(messages))
        await self._store.append(conversation, messages, **options)


@pytest.mark.rule("R-MEM-2")
@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_writes_each_of_its_messages_once(store: Store, way: Way) -> None:
    counting: Any = Counting(store)
    model = Scripted(*(call("search", query=f"{n}") for n in range(9)), "done", "two")
    agent = Agent(model, tools=[search], advisors=[Memory(counting)])
    await talk(agent, "first?", way=way)
    assert counting.appended == [1] + [1, 1] * 9 + [1]
    counting.appended.clear()
    await talk(agent, "second?", way=way)
    assert counting.appended == [1, 1]
    assert "revise" not in counting.calls


@pytest.mark.rule("R-MEM-4")
async def test_a_turn_of_a_long_conversation_loads_its_window_and_no_more() -> None:
    store = InMemory()
    for n in range(5_000):
        pair = [user(f"question {n}?"), assistant(f"answer {n}")]
        await store.append("c", pair, turn=f"t{n}")
    windows: list[tuple[dict[str, Any], int]] = [
        ({}, 2 * 201),
        ({"max_messages": 10}, 2 * 11),
        ({"max_messages": None, "max_tokens": 1_000, "reserve": 100}, 3 * 65),
        ({"max_messages": 100, "max_tokens": 5_000}, 2 * 101),
    ]
    for options, at_most in windows:
        counting: Any = Counting(store)
        model = Scripted("done")
        agent = Agent(model, advisors=[Memory(counting, **options)])
        await talk(agent, "next?")
        assert counting.loaded <= at_most
        assert counting.appended == [1, 1]
        assert sent(model)[-2] == "assistant: answer 4999" or options, "the end of the log"
        assert len(model.requests[0].messages) > 8


@pytest.mark.rule("R-MEM-4")
async def test_two_new_messages_do_not_load_the_whole_conversation() -> None:
    store = InMemory()
    for n in range(500):
        await store.append("c", [user(f"{n}?"), assistant(f"{n}")], turn=f"t{n}")
    counting: Any = Counting(store)
    agent = Agent(Scripted("done"), advisors=[Memory(counting, max_messages=10)])
    await agent.run([user("a"), user("b")], conversation="c")
    assert counting.loaded <= 22


async def test_without_a_window_all_is_sent(store: Store) -> None:
    model = Scripted("x", repeat=True)
    agent = Agent(model, advisors=[Memory(store, max_messages=None)])
    await talk(agent, *(f"{n}?" for n in range(150)))
    assert len(model.requests[-1].messages) == 299
    assert model.requests[-1].messages[0].parts == (Text("0?"),)
