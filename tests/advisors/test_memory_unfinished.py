"""Turns that did not end well, and the next turn, which must work all the same."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, ModelError, tool, user
from retinue.advisors import Memory
from retinue.errors import ModelRefused
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory, Store
from tests.advisors.talking import WAYS, Way, by_run, kept, sent, soon, strictly

ways = pytest.mark.parametrize("way", WAYS)


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


# -- the model fails -------------------------------------------------------------------------------


@pytest.mark.rule("R-MEM-2")
@pytest.mark.behaviour("B-ME-5")
@ways
async def test_after_a_failed_call_no_two_user_messages_are_sent(store: Store, way: Way) -> None:
    model = Scripted("one", ModelRefused("no"), ModelRefused("no"), "four")
    agent = Agent(model, advisors=[Memory(store)])
    await way(agent, "first?", conversation="c")
    for question in ("second?", "third?"):
        with pytest.raises(ModelRefused):
            await way(agent, question, conversation="c")
    await way(agent, "fourth?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: one", "user: fourth?"]
    assert await kept(store) == [
        "user: first?", "assistant: one", "(unanswered) user: second?",
        "(unanswered) user: third?", "user: fourth?", "assistant: four",
    ]  # fmt: skip
    strictly(model)


@pytest.mark.rule("R-MEM-1", "R-MEM-2")
@pytest.mark.behaviour("B-ME-5")
@ways
async def test_the_same_message_may_be_sent_again_after_a_failure(store: Store, way: Way) -> None:
    model = Scripted(ModelRefused("no"), ModelRefused("no"), "one", "two")
    agent, question = Agent(model, advisors=[Memory(store)]), user("first?")
    for _ in range(2):
        with pytest.raises(ModelRefused):
            await way(agent, question, conversation="c")
    assert (await way(agent, question, conversation="c")).text == "one"
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: one", "user: second?"]
    assert await kept(store) == [*sent(model), "assistant: two"], "it is stored once"


@pytest.mark.rule("R-MEM-2")
async def test_a_message_that_failed_may_be_sent_again_after_others(store: Store) -> None:
    model = Scripted(ModelRefused("no"), "two", "one at last", "three")
    agent, question = Agent(model, advisors=[Memory(store)]), user("first?")
    with pytest.raises(ModelRefused):
        await agent.run(question, conversation="c")
    await agent.run("second?", conversation="c")
    await agent.run(question, conversation="c")
    await agent.run("third?", conversation="c")
    assert sent(model) == [
        "user: second?", "assistant: two", "user: first?", "assistant: one at last", "user: third?",
    ]  # fmt: skip
    strictly(model)


@pytest.mark.rule("R-MEM-2", "R-FAIL-2")
@ways
async def test_a_call_that_breaks_off_leaves_its_partial_answer(store: Store, way: Way) -> None:
    model = Scripted(Say(text="I th", error=ModelError("cut")), "two")
    agent = Agent(model, advisors=[Memory(store)])
    with pytest.raises(ModelError, match="cut"):
        await way(agent, "first?", conversation="c")
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: I th …", "user: second?"]


@pytest.mark.rule("R-MEM-2")
@ways
async def test_a_failure_after_a_tool_round_keeps_the_round(store: Store, way: Way) -> None:
    model = Scripted(call("search"), ModelRefused("no"), "two")
    agent = Agent(model, tools=[search], advisors=[Memory(store)])
    with pytest.raises(ModelRefused):
        await way(agent, "first?", conversation="c")
    await way(agent, "second?", conversation="c")
    assert sent(model) == [
        "user: first?", "assistant: +search", "tool: found x", "user: second?",
    ]  # fmt: skip
    strictly(model)


@pytest.mark.rule("R-LOOP-5", "R-MEM-3")
@pytest.mark.behaviour("B-ME-5")
@ways
async def test_a_failure_after_an_answer_was_given_up_leaves_no_question(
    store: Store, way: Way
) -> None:
    async def insist(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return await call_next(request.again("no")) if response.text == "bad" else response

    model = Scripted("bad", ModelRefused("no"), "two", "three")
    agent = Agent(model, advisors=[Layer("insist", turn=insist), Memory(store)])
    with pytest.raises(ModelRefused):
        await way(agent, "first?", conversation="c")
    await way(agent, "second?", conversation="c")
    await way(agent, "third?", conversation="c")
    assert sent(model) == ["user: second?", "assistant: two", "user: third?"]
    strictly(model)


@ways
async def test_a_layer_that_raises_leaves_the_question_unanswered(store: Store, way: Way) -> None:
    async def failing(request: Any, call_next: Any) -> Any:
        if request.messages[-1].text == "first?":
            raise ZeroDivisionError
        return await call_next(request)

    model = Scripted("two")
    agent = Agent(model, advisors=[Memory(store), Layer("failing", turn=failing)])
    with pytest.raises(ZeroDivisionError):
        await way(agent, "first?", conversation="c")
    await way(agent, "second?", conversation="c")
    assert sent(model) == ["user: second?"]
    assert await kept(store) == ["(unanswered) user: first?", "user: second?", "assistant: two"]


# -- the turn is stopped ---------------------------------------------------------------------------


@pytest.mark.rule("R-LOOP-8", "R-MEM-2")
@pytest.mark.behaviour("B-LO-14")
@pytest.mark.parametrize("stop", ["task", "turn", "reader"])
async def test_a_turn_stopped_in_a_tool_leaves_a_log_that_works(store: Store, stop: str) -> None:
    running = asyncio.Event()

    @tool
    async def wait() -> str:
        """Takes for ever."""
        running.set()
        await asyncio.Event().wait()
        return "never"

    model = Scripted([call("search"), call("wait")], "two")
    agent = Agent(model, tools=[search, wait], advisors=[Memory(store)])
    if stop == "task":
        task = asyncio.create_task(agent.run("first?", conversation="c"))
        await soon(running.wait())
        task.cancel()
        await asyncio.wait([task], timeout=5)
    else:
        async with agent.stream("first?", conversation="c") as turn:
            await soon(running.wait())
            if stop == "turn":
                turn.cancel("enough")
                assert (await soon(turn.result())).status == "cancelled"
    await soon(agent.run("second?", conversation="c"))
    strictly(model)
    log = await kept(store)
    assert log[:3] == ["user: first?", "assistant: +search +wait", "tool: found x"]
    assert log[3].startswith("tool: Not finished.")
    assert sent(model) == log[:5]


@pytest.mark.rule("R-LOOP-8")
async def test_a_turn_stopped_while_the_model_speaks_keeps_what_it_said(store: Store) -> None:
    model = Scripted(Say(text=["I ", "think ", *("on " * 1000)], delay=0.001), "two")
    agent = Agent(model, advisors=[Memory(store)])
    shown = ""
    async with agent.stream("first?", conversation="c") as turn:
        async for event in turn:
            shown += getattr(event, "text", "")
            if shown.endswith("think "):
                break
    await soon(agent.run("second?", conversation="c"))
    question, answer, second = sent(model)
    assert question == "user: first?"
    assert answer.startswith("assistant: I think ")
    assert answer.endswith("…")
    assert second == "user: second?"


@pytest.mark.rule("R-LOOP-8", "R-MEM-2")
async def test_a_turn_stopped_before_any_answer_is_not_sent_again(store: Store) -> None:
    asked = asyncio.Event()

    def slow(request: Any) -> Say:
        asked.set()
        return Say(text="late", delay=60)

    model = Scripted(slow, "two")
    agent = Agent(model, advisors=[Memory(store)])
    task = asyncio.create_task(agent.run("first?", conversation="c"))
    await soon(asked.wait())
    task.cancel()
    await asyncio.wait([task], timeout=5)
    await soon(agent.run("second?", conversation="c"))
    assert sent(model) == ["user: second?"]


@pytest.mark.rule("R-MEM-2")
async def test_an_answer_is_never_kept_without_its_question(store: Store) -> None:
    class Interrupting:
        """Passes all on, and cancels the turn when its answer is about to be stored."""

        def __init__(self) -> None:
            self.task: asyncio.Task[Any] | None = None

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def append(self, conversation: str, messages: Any, **options: Any) -> None:
            if self.task and any(message.role == "assistant" for message in messages):
                self.task.cancel()
                self.task = None
                await asyncio.sleep(0)
            await store.append(conversation, messages, **options)

    between: Any = Interrupting()
    memory = Memory(between)
    model = Scripted("one", "two")
    between.task = asyncio.create_task(Agent(model, advisors=[memory]).run("a?", conversation="c"))
    await asyncio.wait([between.task], timeout=5)
    await soon(Agent(model, advisors=[memory]).run("b?", conversation="c"))
    assert await kept(store) == ["user: a?", "assistant: one", "user: b?", "assistant: two"]


@pytest.mark.rule("R-LOOP-1")
@pytest.mark.behaviour("B-LO-11")
@ways
async def test_after_calls_that_were_not_eligible_the_next_turn_is_valid(
    store: Store, way: Way
) -> None:
    model = Scripted(Say(text="I would", calls=[call("search"), call("search")]), "two")
    agent = Agent(model, tools=[search], eligible=lambda _: False, advisors=[Memory(store)])
    assert (await way(agent, "first?", conversation="c")).text == "I would"
    await way(agent, "second?", conversation="c")
    strictly(model)
    assert sent(model)[:2] == ["user: first?", "assistant: I would +search +search"]
    assert [line[:13] for line in sent(model)[2:4]] == ["tool: Not run"] * 2


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-16")
@ways
async def test_after_a_limit_with_open_calls_the_next_turn_is_valid(store: Store, way: Way) -> None:
    model = Scripted(call("search"), [call("search"), call("search")], "two")
    memory = Memory(store)
    agent = Agent(model, tools=[search], limits=Limits(rounds=2), advisors=[memory])
    assert (await way(agent, "first?", conversation="c")).status == "limit"
    await way(agent, "second?", conversation="c")
    strictly(model)
    assert len(sent(model)) == 7


@pytest.mark.rule("R-TOOL-7")
@pytest.mark.behaviour("B-LO-12")
@ways
async def test_a_turn_after_return_direct_may_ask_about_the_result(store: Store, way: Way) -> None:
    @tool(return_direct=True)
    async def report() -> str:
        """The report itself."""
        return "42 pages"

    model = Scripted([call("report"), call("report")], "long")
    agent = Agent(model, tools=[report], advisors=[Memory(store)])
    assert (await way(agent, "report!", conversation="c")).text == "42 pages\n42 pages"
    await way(agent, "how long is it?", conversation="c")
    strictly(model)
    assert sent(model) == [
        "user: report!", "assistant: +report +report", "tool: 42 pages", "tool: 42 pages",
        "user: how long is it?",
    ]  # fmt: skip


@pytest.mark.rule("R-FAIL-3")
@ways
async def test_a_store_that_breaks_fails_the_turn_and_frees_the_conversation(way: Way) -> None:
    class Broken(InMemory):
        works = False

        async def append(self, conversation: str, *args: Any, **options: Any) -> None:
            if not self.works:
                raise OSError(28, "No space left on device")
            await super().append(conversation, *args, **options)

    store, model = Broken(), Scripted("two", repeat=True)
    agent = Agent(model, advisors=[Memory(store, wait=False)])
    with pytest.raises(OSError, match="No space left"):
        await way(agent, "first?", conversation="c")
    assert model.requests == [], "what cannot be kept is not asked"
    store.works = True
    assert (await soon(by_run(agent, "second?", conversation="c"))).text == "two"


async def test_an_empty_answer_is_no_message_of_the_next_turn(store: Store) -> None:
    model = Scripted("", "two")
    agent = Agent(model, advisors=[Memory(store)])
    await agent.run("first?", conversation="c")
    await agent.run("second?", conversation="c")
    strictly(model)
    assert sent(model)[-1] == "user: second?"
