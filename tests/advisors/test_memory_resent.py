"""Callers that send their whole transcript every time: each message is stored and sent once."""

from collections.abc import Sequence
from typing import Any

import pytest

from retinue import Agent, Image, Layer, system, tool, user
from retinue.advisors import Memory
from retinue.errors import ConfigError, ModelRefused
from retinue.messages import Delta, Message, TextDelta, ThinkingDelta, assistant
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import Store
from tests.advisors.talking import WAYS, Way, kept, sent, strictly

ways = pytest.mark.parametrize("way", WAYS)


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


def answers(count: int) -> list[Say]:
    """Answers of a model that thinks and uses a tool now and then."""
    script: list[Say] = []
    for n in range(count):
        if n % 2:
            script.append(Say(text="wait", calls=[call("search")]))
        script.append(Say(thinking="hm", signature="s", text=f"answer {n}"))
    return script


def copied(messages: Sequence[Message]) -> list[Message]:
    """What a chat window keeps of a transcript: who said what, without ids."""
    return [
        Message(message.role, tuple(p for p in message.parts if not isinstance(p, Message)))
        if message.role in ("user", "system")
        else assistant(message.text)
        for message in messages
        if message.role in ("user", "system") or (message.text and not message.tool_calls)
    ]


@pytest.mark.rule("R-MEM-1")
@pytest.mark.behaviour("B-ME-3")
@pytest.mark.parametrize("with_ids", [True, False])
@ways
async def test_a_transcript_resent_for_five_rounds_is_stored_and_sent_once(
    store: Store, way: Way, with_ids: bool
) -> None:
    model = Scripted(*answers(5))
    agent = Agent(model, tools=[search], advisors=[Memory(store)])
    transcript: list[Message] = [system("Be brief.")]
    for n in range(5):
        transcript.append(user(f"question {n}?"))
        asked = transcript if with_ids else copied(transcript)
        response = await way(agent, asked, conversation="c")
        transcript += response.messages[-1:] if not with_ids else [
            m for m in response.messages if m.id not in {one.id for one in transcript}
        ]  # fmt: skip
    strictly(model)
    log = await kept(store)
    assert [line for line in log if line.startswith(("user", "system"))] == [
        "system: Be brief.", *(f"user: question {n}?" for n in range(5)),
    ]  # fmt: skip
    assert sent(model) == log[:-1]
    assert len(log) == 1 + 5 * 2 + 2 * 2


@pytest.mark.behaviour("B-ME-3")
@pytest.mark.parametrize("with_ids", [True, False])
async def test_a_resent_transcript_is_known_beyond_the_window(store: Store, with_ids: bool) -> None:
    model = Scripted(lambda request: f"re {request.messages[-1].text}", repeat=True)
    agent = Agent(model, advisors=[Memory(store, max_messages=2)])
    transcript: list[Message] = []
    for n in range(6):
        transcript.append(user(f"{n}?"))
        response = await agent.run(transcript if with_ids else copied(transcript), conversation="c")
        transcript.append(response.messages[-1])
        assert len(response.messages) == 2
    assert len(await kept(store)) == 12
    # An older state of the transcript, as a page has it that was not reloaded.
    await agent.run([*transcript[:2], user("again?")], conversation="c")
    assert len(await kept(store)) == 14


@pytest.mark.rule("R-MEM-1")
@pytest.mark.parametrize("with_ids", [True, False])
async def test_a_question_said_before_in_the_same_words_is_asked_again(
    store: Store, with_ids: bool
) -> None:
    model = Scripted(*(f"answer {n}" for n in range(5)))
    agent = Agent(model, advisors=[Memory(store)])
    transcript: list[Message] = []
    for _ in range(4):
        transcript.append(user("yes"))
        response = await agent.run(transcript if with_ids else copied(transcript), conversation="c")
        transcript.append(response.messages[-1])
    assert len(await kept(store)) == 8
    assert len(sent(model)) == 7


@pytest.mark.behaviour("B-ME-3")
async def test_an_answer_may_be_asked_for_once_more(store: Store) -> None:
    model = Scripted("one", "two", "two again")
    agent = Agent(model, advisors=[Memory(store)])
    await agent.run("first?", conversation="c")
    await agent.run("second?", conversation="c")
    await agent.run([user("first?"), assistant("one"), user("second?")], conversation="c")
    assert sent(model) == [
        "user: first?", "assistant: one", "user: second?", "assistant: two", "user: second?",
    ]  # fmt: skip


@pytest.mark.behaviour("B-ME-3")
@pytest.mark.parametrize("with_ids", [True, False])
async def test_an_answer_that_was_shown_otherwise_than_stored_is_known(
    store: Store, with_ids: bool
) -> None:
    class Censor:
        delivery_only = True

        def feed(self, delta: Delta) -> tuple[Delta]:
            return (delta,)

        def flush(self) -> tuple[Delta]:
            return (TextDelta(" [censored]"),)

    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(store), Layer("censor", stream=lambda _: Censor())])
    first = await agent.run("first?", conversation="c")
    assert first.text == "one [censored]"
    assert first.message is not None
    shown = first.message if with_ids else assistant(first.text)
    question = first.messages[0] if with_ids else user("first?")
    await agent.run([question, shown, user("second?")], conversation="c")
    assert sent(model) == ["user: first?", "assistant: one", "user: second?"]


@pytest.mark.behaviour("B-ME-3")
async def test_a_picture_tells_questions_of_the_same_words_apart(store: Store) -> None:
    cat, dog = Image(url="http://x/cat"), Image(url="http://x/dog")
    model = Scripted("a cat", "a dog")
    agent = Agent(model, advisors=[Memory(store)])
    await agent.run(["what?", cat], conversation="c")
    await agent.run([user("what?", dog), assistant("hm"), user("well?")], conversation="c")
    assert len(sent(model)) == 5, "the exchange about the dog is new"


@pytest.mark.rule("R-MEM-3", "R-MEM-1")
@pytest.mark.behaviour("B-ME-3")
async def test_what_was_given_up_is_not_sent_though_the_caller_resends_it(store: Store) -> None:
    async def once_more(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        if request.reentry or "first" not in request.messages[-1].text:
            return response
        return await call_next(request.again("shorter"))

    model = Scripted("long", "short", "two")
    agent = Agent(model, advisors=[Layer("again", turn=once_more), Memory(store)])
    first = await agent.run("first?", conversation="c")
    assert len(first.messages) == 4
    await agent.run([*first.messages, user("second?")], conversation="c")
    assert sent(model) == ["user: first?", "assistant: short", "user: second?"]
    assert [line for line in await kept(store) if line.startswith("(superseded)")] == [
        "(superseded) assistant: long", "(superseded) user: shorter",
    ]  # fmt: skip


@pytest.mark.rule("R-MEM-3")
@pytest.mark.behaviour("B-ME-3")
async def test_what_a_failed_turn_gave_up_is_not_sent_though_the_caller_resends_it(
    store: Store,
) -> None:
    async def insist(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return await call_next(request.again("no")) if response.text == "bad" else response

    model = Scripted("bad", ModelRefused("no"), "two")
    agent = Agent(model, advisors=[Layer("insist", turn=insist), Memory(store)])
    turn = agent.stream("first?", conversation="c")
    with pytest.raises(ModelRefused):
        await turn.result()
    assert turn.outcome is not None
    await agent.run([*turn.outcome.messages, user("second?")], conversation="c")
    assert sent(model) == ["user: second?"]


@pytest.mark.behaviour("B-ME-6", "B-ME-3")
async def test_a_blocked_exchange_that_is_resent_blocks_nothing(store: Store) -> None:
    async def guard(request: Any, call_next: Any) -> Any:
        if "bad" in request.messages[-1].text:
            return request.refuse("no", answer="Not that.")
        return await call_next(request)

    model = Scripted("one", "two", "three")
    agent = Agent(model, advisors=[Layer("guard", turn=guard), Memory(store)])
    transcript: list[Message] = []
    for question in ("first?", "bad!", "second?", "third?"):
        transcript.append(user(question))
        response = await agent.run(transcript, conversation="c")
        assert response.message is not None
        transcript.append(response.message)
    assert "user: third?" in sent(model)
    assert sum("bad!" in line for line in await kept(store)) <= 1
    strictly(model)


async def test_an_input_that_is_answered_already_is_refused(store: Store) -> None:
    model = Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(store)])
    question = user("first?")
    first = await agent.run(question, conversation="c")
    for asked in (question, first.messages):
        with pytest.raises(ConfigError, match="answered already"):
            await agent.run(asked, conversation="c")
    assert len(model.requests) == 1
    await agent.run(question, conversation="another")


async def test_examples_before_the_first_question_are_kept(store: Store) -> None:
    examples = [user("2+2"), assistant("4")]
    model = Scripted("6", "8")
    agent = Agent(model, advisors=[Memory(store)])
    await agent.run([*examples, user("3+3")], conversation="c")
    await agent.run([*examples, user("3+3"), assistant("6"), user("4+4")], conversation="c")
    assert sent(model) == [
        "user: 2+2", "assistant: 4", "user: 3+3", "assistant: 6", "user: 4+4",
    ]  # fmt: skip


async def test_a_question_that_failed_is_sent_with_the_next_where_the_caller_resends_it(
    store: Store,
) -> None:
    model = Scripted("one", ModelRefused("no"), "three", "four")
    agent = Agent(model, advisors=[Memory(store)])
    first = await agent.run("first?", conversation="c")
    failed = user("second?")
    with pytest.raises(ModelRefused):
        await agent.run([*first.messages, failed], conversation="c")
    await agent.run([*first.messages, failed, user("third?")], conversation="c")
    assert sent(model)[2:] == ["user: second?", "user: third?"]
    await agent.run("fourth?", conversation="c")
    assert sent(model)[2:] == ["user: second?", "user: third?", "assistant: three", "user: fourth?"]


@pytest.mark.rule("R-MEM-3")
@pytest.mark.parametrize("outside", [True, False])
async def test_a_layer_that_answers_after_all_does_not_store_the_resent_part_again(
    store: Store, outside: bool
) -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return request.respond("mine") if len(request.messages) == 3 or not outside else response

    layer = Layer("instead", turn=instead)
    model = Scripted("one", "two", "three")
    plain = Agent(model, advisors=[memory := Memory(store)])
    agent = plain.with_(advisors=[layer, memory] if outside else [memory, layer])
    await plain.run("first?", conversation="c")
    await agent.run([user("first?"), assistant("one"), user("second?")], conversation="c")
    await plain.run("third?", conversation="c")
    strictly(model)
    assert sent(model) == [
        "user: first?", "assistant: one", "user: second?", "assistant: mine", "user: third?",
    ]  # fmt: skip


async def test_thinking_that_a_caller_left_out_does_not_make_an_answer_new(store: Store) -> None:
    thought = Say(text="one", deltas=[ThinkingDelta("late", signature="s")], thinking="hm")
    model = Scripted(thought, "two")
    agent = Agent(model, advisors=[Memory(store)])
    await agent.run("first?", conversation="c")
    await agent.run([user("first?"), assistant("one"), user("second?")], conversation="c")
    assert model.requests[-1].messages[1].thinking == "hmlate"
    assert len(model.requests[-1].messages) == 3
