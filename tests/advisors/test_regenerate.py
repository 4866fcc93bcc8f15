"""Turns that are asked anew, in place or in a fork (R-MEM-8)."""

from typing import Any

import pytest

from retinue import Agent, Approve, ConfigError, ModelError, assistant, system, user
from retinue.advisors import Memory, Summarizer
from retinue.chains.events import TextChunk
from retinue.errors import ConversationNotFound, ModelRefused, PauseNotFound
from retinue.models.scripted import Scripted, call
from retinue.stores import Store, Timeline
from tests.advisors.pausing import Desk
from tests.advisors.talking import kept, sent, strictly
from tests.agent.reading import read

pytestmark = pytest.mark.rule("R-MEM-8")


def talking(store: Store, *script: Any, **options: Any) -> tuple[Agent, Scripted]:
    model = Scripted(*script)
    return Agent(model, advisors=[Memory(store, **options)]), model


async def ask(agent: Agent, *questions: str) -> list[str]:
    """Asks them; gives the ids of the turns."""
    return [(await agent.run(one, conversation="c")).id for one in questions]


async def test_the_last_question_is_asked_again(store: Store) -> None:
    agent, model = talking(store, "1", "2", "two", "3")
    await ask(agent, "one?", "two?")
    result = await agent.regenerate("c")
    assert (result.text, result.conversation) == ("two", "c")
    assert sent(model) == ["user: one?", "assistant: 1", "user: two?"]
    await ask(agent, "three?")
    assert sent(model) == [
        "user: one?", "assistant: 1", "user: two?", "assistant: two", "user: three?",
    ]  # fmt: skip
    assert "(superseded) assistant: 2" in await kept(store), "nothing is removed"
    strictly(model)


async def test_an_edited_question_goes_back_to_before_its_turn(store: Store) -> None:
    agent, model = talking(store, "1", "2", "3", "else", "more")
    turns = await ask(agent, "one?", "two?", "three?")
    old = (await store.tail("c"))[2].message
    await agent.regenerate("c", turn=turns[1], question=old.with_text("two, please?"))
    await ask(agent, "and?")
    assert sent(model) == [
        "user: one?", "assistant: 1", "user: two, please?", "assistant: else", "user: and?",
    ]  # fmt: skip
    points = await Timeline(store).points("c")
    assert [one.question for one in points] == ["one?", "two, please?", "and?"]


async def test_a_fork_leaves_the_conversation_as_it_is(store: Store) -> None:
    agent, model = talking(store, "1", "2", "deux", "zwei", "3")
    turns = await ask(agent, "one?", "two?")
    first = await agent.regenerate("c", question="deux?", fork=True)
    second = await agent.regenerate("c", turn=turns[0], question="eins?", fork="german")
    assert second.conversation == "german"
    assert await kept(store) == ["user: one?", "assistant: 1", "user: two?", "assistant: 2"]
    assert await kept(store, first.conversation or "") == [
        "user: one?", "assistant: 1", "user: deux?", "assistant: deux",
    ]  # fmt: skip
    assert await kept(store, "german") == ["user: eins?", "assistant: zwei"]
    assert await Timeline(store).lineage("german") == ("c", "german")
    with pytest.raises(ConfigError, match="There is a conversation 'german' already"):
        await agent.regenerate("c", fork="german")
    strictly(model)


async def test_what_fails_before_its_first_answer_changes_nothing(store: Store) -> None:
    agent, model = talking(store, "1", "2", ModelRefused("no"), "3", "again", "4")
    await ask(agent, "one?", "two?")
    with pytest.raises(ModelRefused):
        await agent.regenerate("c", question="deux?")
    await ask(agent, "three?")
    assert sent(model) == [
        "user: one?", "assistant: 1", "user: two?", "assistant: 2", "user: three?",
    ]  # fmt: skip
    strictly(model)


async def test_after_a_failure_it_can_be_asked_again_in_the_same_place(store: Store) -> None:
    agent, model = talking(store, "1", "2", ModelRefused("no"), "deux", "3")
    await ask(agent, "one?", "two?")
    with pytest.raises(ModelError):
        await agent.regenerate("c", question="deux?")
    await agent.regenerate("c")
    await ask(agent, "three?")
    assert sent(model) == [
        "user: one?", "assistant: 1", "user: deux?", "assistant: deux", "user: three?",
    ]  # fmt: skip


async def test_a_question_of_several_messages_is_repeated_whole(store: Store) -> None:
    agent, model = talking(store, "1", "2", "3")
    await agent.run([system("Be brief."), user("one?")], conversation="c")
    await agent.regenerate("c")
    assert sent(model) == ["system: Be brief.", "user: one?"]
    assert (await store.conversations())[0].title == "one?"


@pytest.mark.parametrize("fork", [False, "c-2"])
async def test_a_turn_that_was_given_a_whole_transcript_is_repeated_from_its_last_question(
    store: Store, fork: bool | str
) -> None:
    agent, model = talking(store, "2", "two")
    await agent.run([user("one?"), assistant("1"), user("two?")], conversation="c")
    await agent.regenerate("c", fork=fork)
    assert sent(model) == ["user: one?", "assistant: 1", "user: two?"]


async def test_a_question_that_was_asked_again_after_a_failure_is_repeated(store: Store) -> None:
    agent, model = talking(store, "0", ModelRefused("no"), "1", "uno", "2")
    await ask(agent, "zero?")
    question = user("one?")
    with pytest.raises(ModelRefused):
        await agent.run(question, conversation="c")
    await agent.run(question, conversation="c")
    await agent.regenerate("c")
    await ask(agent, "two?")
    assert sent(model) == [
        "user: zero?", "assistant: 0", "user: one?", "assistant: uno", "user: two?",
    ]  # fmt: skip


@pytest.mark.rule("R-HITL-5")
async def test_a_paused_turn_is_asked_anew_and_its_pause_is_closed(store: Store) -> None:
    desk = Desk(store)
    await desk.agent("hello").run("hi", conversation="c")
    ids = await desk.paused()
    agent = desk.agent(call("count"), "counted them", "yes")
    assert (await agent.regenerate("c", question="Count.")).text == "counted them"
    assert await agent.pending("c") == ()
    with pytest.raises(PauseNotFound):
        await agent.resume("c", {ids[0]: Approve()})
    await agent.run("sure?", conversation="c")
    model: Any = agent.model
    assert sent(model) == [
        "user: hi", "assistant: hello", "user: Count.", "assistant: +count", "tool: counted",
        "assistant: counted them", "user: sure?",
    ]  # fmt: skip
    strictly(model)


async def test_a_turn_asked_anew_may_pause_and_go_on(store: Store) -> None:
    desk = Desk(store)
    agent = desk.agent("hello", "no", [call("pay", amount=1)])
    await agent.run("hi", conversation="c")
    await agent.run("Pay?", conversation="c")
    paused = await agent.regenerate("c", question="Pay.")
    model = Scripted("done", "yes")
    other = desk.agent(model)
    await other.resume("c", {one.id: Approve() for one in paused.pending})
    await other.run("sure?", conversation="c")
    assert sent(model, 0) == [
        "user: hi", "assistant: hello", "user: Pay.", "assistant: +pay", "tool: paid 1",
    ]  # fmt: skip
    assert sent(model)[4:] == ["tool: paid 1", "assistant: done", "user: sure?"]


@pytest.mark.rule("R-MEM-4")
async def test_a_summary_of_what_was_replaced_is_not_used(store: Store) -> None:
    notes = Scripted(lambda request: f"of {request.messages[0].text.count('user:')}", repeat=True)
    summed = {"max_messages": 4, "summary": Summarizer(model=notes)}
    agent, model = talking(store, *"12345", "due", "6", **summed)
    turns = await ask(agent, "q1", "q2", "q3", "q4", "q5")
    assert any(line.startswith("assistant: of") for line in sent(model))
    await agent.regenerate("c", turn=turns[1], question="q2!")
    assert sent(model) == ["user: q1", "assistant: 1", "user: q2!"]
    await ask(agent, "q6")
    assert not any("q3" in line for line in sent(model))
    read = notes.requests[-1].messages[0].text
    assert "user: q1" in read
    assert "q3" not in read
    assert "minutes" not in read.partition("[conversation")[0], "the old summary is gone"


async def test_it_streams(store: Store) -> None:
    agent, _ = talking(store, "1", "one")
    await ask(agent, "one?")
    events = await read(await agent.stream_regenerate("c"))
    assert [event.text for event in events if isinstance(event, TextChunk)] == ["one"]


async def test_what_cannot_be_asked_anew_is_refused_by_name(store: Store) -> None:
    agent, model = talking(store, "1")
    with pytest.raises(ConversationNotFound):
        await agent.regenerate("c")
    await agent.run("one?", conversation="c", owner="ada")
    with pytest.raises(ConversationNotFound):
        await agent.regenerate("c")
    with pytest.raises(ConfigError, match="'c' has no turn 'x'"):
        await agent.regenerate("c", turn="x", owner="ada")
    with pytest.raises(ConfigError, match="The input is empty"):
        await agent.regenerate("c", question=" ", owner="ada")
    assert len(model.requests) == 1
