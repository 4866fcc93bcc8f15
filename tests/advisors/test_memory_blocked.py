"""Turns that a layer blocks: nothing of them is sent later."""

from typing import Any

import pytest

from retinue import Agent, Layer, tool
from retinue.advisors import Memory
from retinue.messages import user
from retinue.models.scripted import Scripted, call
from retinue.stores import Store
from tests.advisors.talking import WAYS, Way, kept, layer, sent

ways = pytest.mark.parametrize("way", WAYS)


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


def refusing(hook: str, late: bool) -> Layer:
    async def refuse(request: Any, call_next: Any) -> Any:
        if all("bad" not in message.text for message in request.messages):
            return await call_next(request)
        if late:
            await call_next(request)
        return request.refuse("a bad word", answer="Not that.")

    return layer("guard", hook, refuse)


@pytest.mark.rule("R-ONION-7")
@pytest.mark.behaviour("B-ME-6", "B-ON-4")
@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
@ways
async def test_a_blocked_input_blocks_no_later_turn(
    store: Store, way: Way, hook: str, late: bool, outside: bool
) -> None:
    model = Scripted(*(["bad answer"] if late else []), "two", "three")
    guard, memory = refusing(hook, late), Memory(store)
    agent = Agent(model, advisors=[guard, memory] if outside else [memory, guard])
    blocked = await way(agent, "a bad thing", conversation="c")
    assert (blocked.status, blocked.text) == ("blocked", "Not that.")
    assert blocked.blocked_by == "guard"
    assert (await way(agent, "second?", conversation="c")).status == "completed"
    assert (await way(agent, "third?", conversation="c")).status == "completed"
    assert sent(model) == ["user: second?", "assistant: two", "user: third?"]
    if not late:
        assert await kept(store) == [*sent(model), "assistant: three"], "nothing of it is stored"


@pytest.mark.behaviour("B-ME-6")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
async def test_a_blocked_message_may_be_sent_again(store: Store, hook: str) -> None:
    strict = [True]

    async def late(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return request.refuse("no") if strict[0] else response

    model = Scripted("one", "one again", "two")
    agent = Agent(model, advisors=[Memory(store), layer("guard", hook, late)])
    question = user("first?")
    assert (await agent.run(question, conversation="c")).status == "blocked"
    strict[0] = False
    assert (await agent.run(question, conversation="c")).text == "one again"
    await agent.run("second?", conversation="c")
    assert sent(model) == ["user: first?", "assistant: one again", "user: second?"]


@pytest.mark.behaviour("B-ME-6")
async def test_what_a_guard_stops_in_the_second_round_is_not_sent_later(store: Store) -> None:
    async def guard(request: Any, call_next: Any) -> Any:
        results = [one.text for m in request.messages for one in m.tool_results]
        return request.refuse("injected") if "found evil" in results else await call_next(request)

    model = Scripted(call("search", query="evil"), "two")
    agent = Agent(model, tools=[search], advisors=[Memory(store), Layer("guard", chat=guard)])
    assert (await agent.run("first?", conversation="c")).status == "blocked"
    assert (await agent.run("second?", conversation="c")).text == "two"
    assert sent(model) == ["user: second?"]
    assert await kept(store) == [
        "(superseded) user: first?", "(superseded) assistant: +search",
        "(superseded) tool: found evil", "user: second?", "assistant: two",
    ]  # fmt: skip


@pytest.mark.behaviour("B-ME-6")
async def test_a_question_that_one_layer_changes_and_another_blocks_is_not_stored(
    store: Store,
) -> None:
    async def add(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(messages=(*request.messages, user("be brief"))))

    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("no")

    layers = [Layer("add", round=add), Layer("guard", round=refuse)]
    agent = Agent(Scripted(), advisors=[Memory(store), *layers])
    assert (await agent.run("first?", conversation="c")).status == "blocked"
    assert await kept(store) == []
