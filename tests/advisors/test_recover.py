"""Turns that a crash has cut off, gone on with from their log alone."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Approve, ConfigError, Limits, assistant, tool, user
from retinue.advisors import Memory
from retinue.errors import ConversationNotFound, PauseNotFound
from retinue.messages import Message, Text, ToolCall, ToolResult
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory, Store
from retinue.tools import ask_user
from tests.advisors.crashing import UNKNOWN
from tests.advisors.pausing import Desk
from tests.advisors.talking import kept, layer, sent, soon, strictly
from tests.agent.till import Till
from tests.agent.toolbox import told

CALLS = [ToolCall("a", "count"), ToolCall("b", "look"), ToolCall("c", "pay", '{"amount":1}')]


@tool(retry=True)
async def look() -> str:
    """Looks."""
    return "seen"


def result(call_id: str, name: str, text: str, turn: str = "t") -> Message:
    """A result as the log keeps it."""
    return Message("tool", (ToolResult(call_id, name, (Text(text),)),), f"{turn}:{call_id}")


async def cut_off(store: Store, *messages: Message, owner: str | None = None) -> None:
    """A log that ends where a process died."""
    await store.append("c", [user("Go."), *messages], turn="t", owner=owner)


@pytest.mark.rule("R-MEM-5", "R-TOOL-10")
async def test_only_calls_that_may_are_run_again_and_the_others_are_told_of(store: Store) -> None:
    await cut_off(store, assistant(calls=CALLS), result("a", "count", "counted"))
    desk, model = Desk(store), Scripted("done")
    found = await desk.agent(model, tools=[look]).recover("c")
    assert found is not None
    assert (found.id, found.text, found.rounds, desk.till.did) == ("t", "done", 2, [])
    (first, second, third) = told(found)
    assert (first, second) == ((True, "counted"), (True, "seen"))
    assert third == (False, f"{UNKNOWN}: the process ended. It was not run again.")
    strictly(model)
    assert len(await kept(store)) == 6
    assert await desk.agent().recover("c") is None


@pytest.mark.rule("R-MEM-2")
async def test_a_question_that_no_model_has_answered_is_answered(store: Store) -> None:
    await store.append("c", [user("Before?"), assistant("yes")], turn="s")
    question = user("Go.")
    await store.append("c", [question], turn="t", states={question.id: "unanswered"})
    model = Scripted("done")
    found = await Agent(model, advisors=[Memory(store)]).recover("c")
    assert found is not None
    assert sent(model) == ["user: Before?", "assistant: yes", "user: Go."]
    assert await kept(store) == [*sent(model), "assistant: done"]


async def test_what_has_ended_is_not_gone_on_with(store: Store) -> None:
    agent = Agent(
        Scripted("hi", call("count"), call("count"), repeat=True),
        tools=Till().tools, limits=Limits(rounds=1), advisors=[Memory(store)],
    )  # fmt: skip
    assert await agent.recover("c") is None
    await agent.run("hello", conversation="c")
    assert await agent.recover("c") is None
    assert (await agent.run("Go.", conversation="c")).status == "limit"
    assert await agent.recover("c") is None


@pytest.mark.rule("R-TOOL-7")
async def test_results_that_are_the_answer_stay_the_answer(store: Store) -> None:
    @tool(return_direct=True)
    async def fetch() -> str:
        """Fetches."""
        raise AssertionError("it has run")

    await cut_off(store, assistant(calls=[ToolCall("a", "fetch")]), result("a", "fetch", "it"))
    model = Scripted("never")
    found = await Agent(model, tools=[fetch], advisors=[Memory(store)]).recover("c")
    assert found is not None
    assert (found.status, found.text, model.requests) == ("completed", "it", [])
    assert await Agent(model, advisors=[Memory(store)]).recover("c") is None


@pytest.mark.rule("R-HITL-1")
async def test_calls_that_are_answered_elsewhere_are_asked_about_anew(store: Store) -> None:
    @tool(retry=True, sensitive=True)
    async def send() -> str:
        """Sends."""
        return "sent"

    asked = [ToolCall("a", "ask_user", '{"question": "Which?"}'), ToolCall("b", "send")]
    await cut_off(store, assistant(calls=asked))
    agent = Agent(
        Scripted("done"), tools=[ask_user(), send], gate="sensitive", advisors=[Memory(store)]
    )
    found = await agent.recover("c")
    assert found is not None
    assert [(one.id, one.kind) for one in found.pending] == [("a", "question"), ("b", "approval")]
    with pytest.raises(ConfigError, match=r"'c' is paused, not cut off; answer it with resume\(\)"):
        await agent.recover("c")


@pytest.mark.rule("R-LOOP-3")
async def test_rounds_that_are_done_count(store: Store) -> None:
    rounds = [
        message
        for n in range(3)
        for message in (assistant(calls=[ToolCall(f"{n}", "count")]), result(f"{n}", "count", "1"))
    ]
    await cut_off(store, *rounds)
    model = Scripted(call("count"), repeat=True)
    agent = Agent(model, tools=Till().tools, limits=Limits(rounds=5), advisors=[Memory(store)])
    found = await agent.recover("c")
    assert found is not None
    assert (found.status, found.rounds, len(model.requests)) == ("limit", 5, 2)
    strictly(model)


@pytest.mark.rule("R-MEM-9")
async def test_another_owner_s_turn_is_not_found(store: Store) -> None:
    await cut_off(store, owner="ada")
    agent = Agent(Scripted("done"), advisors=[Memory(store)])
    with pytest.raises(ConversationNotFound):
        await agent.recover("c", owner="bob")
    found = await agent.recover("c", owner="ada")
    assert found is not None
    assert found.text == "done"


async def test_a_layer_that_raises_leaves_the_turn_to_be_gone_on_with(store: Store) -> None:
    async def failing(request: Any, call_next: Any) -> Any:
        raise ZeroDivisionError

    await cut_off(store, assistant(calls=CALLS))
    before = await kept(store)
    agent = Agent(Scripted(), advisors=[Memory(store), layer("failing", "turn", failing)])
    with pytest.raises(ZeroDivisionError):
        await agent.recover("c")
    assert await kept(store) == before
    found = await Desk(store).agent("done", tools=[look]).recover("c")
    assert found is not None
    assert found.text == "done"


@pytest.mark.rule("R-MEM-6")
async def test_a_turn_that_still_runs_is_not_gone_on_with_a_second_time() -> None:
    running, go = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Waits."""
        running.set()
        await go.wait()
        return "over"

    store = InMemory()
    model = Scripted(call("slow"), "done")
    agent = Agent(model, tools=[slow], advisors=[Memory(store)])
    first = asyncio.create_task(agent.run("Go.", conversation="c"))
    await soon(running.wait())
    second = asyncio.create_task(agent.recover("c"))
    await asyncio.sleep(0)
    go.set()
    assert (await soon(first)).text == "done"
    with pytest.raises(PauseNotFound, match="has been gone on with elsewhere; nothing was done"):
        await soon(second)
    assert len(model.requests) == 2
    assert await agent.recover("c") is None


@pytest.mark.rule("R-ONION-12")
async def test_layers_see_the_agent_and_its_model_in_a_turn_that_goes_on(store: Store) -> None:
    seen: list[Any] = []

    async def look_at(request: Any, call_next: Any) -> Any:
        seen.append((request.agent, request.own_model.name, request.resumed))
        return await call_next(request)

    await cut_off(store)
    agent = Agent(
        Scripted("done"), name="clerk", advisors=[Memory(store), layer("look", "turn", look_at)]
    )
    await agent.recover("c")
    desk = Desk(store)
    await desk.paused()
    waiting = await desk.agent().pending("c")
    agent = desk.agent("done", name="clerk", advisors=[layer("look", "turn", look_at)])
    await agent.resume("c", {one.id: Approve() for one in waiting})
    assert seen == [("clerk", "script", True)] * 2
