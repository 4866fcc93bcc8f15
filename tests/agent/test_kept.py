"""A layer says how the log keeps the messages of a turn, or how an answer is shown."""

from typing import Any

import pytest

from retinue import Agent, Layer, tool
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, kept, said, sent
from tests.agent.reading import read

ways = pytest.mark.parametrize("way", WAYS)


def keeping(mark: str) -> Layer:
    """A layer that has every text of the turn stored with a mark behind it."""

    async def turn(request: Any, call_next: Any) -> Any:
        request.keep_as(lambda message: message.with_text(message.text + mark))
        return await call_next(request)

    return Layer(f"keeps{mark}", turn=turn)


@pytest.mark.rule("R-STREAM-3")
@ways
async def test_the_log_and_the_result_have_each_message_as_it_is_kept_and_the_turn_has_not(
    way: Way,
) -> None:
    store, model = InMemory(), Scripted("one", "two")
    agent = Agent(model, advisors=[keeping("!"), keeping("?"), Memory(store)])
    response = await way(agent, "Go.", conversation="c")
    assert response.text == "one"
    assert sent(model) == ["user: Go."]
    assert await kept(store) == said(response.messages) == ["user: Go.?!", "assistant: one?!"]
    await way(agent, "On.", conversation="c")
    assert sent(model) == ["user: Go.?!", "assistant: one?!", "user: On."]


async def test_a_turn_that_fails_keeps_what_had_come_in_the_same_way() -> None:
    store = InMemory()
    model = Scripted(Say(text="half", error=ValueError("broken")))
    turn = Agent(model, advisors=[keeping("!"), Memory(store)]).stream("Go.", conversation="c")
    await read(turn)
    assert turn.outcome is not None
    assert said(turn.outcome.messages) == ["user: Go.!", "assistant: half! …"]
    assert await kept(store) == said(turn.outcome.messages)


@pytest.mark.rule("R-LOOP-5")
@ways
async def test_on_re_entry_each_message_is_kept_once(way: Way) -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Shorter."))

    store = InMemory()
    advisors = [keeping("!"), Memory(store), Layer("again", turn=again)]
    await way(Agent(Scripted("long", "short"), advisors=advisors), "Go.", conversation="c")
    assert await kept(store) == [
        "user: Go.!", "(superseded) assistant: long!", "(superseded) user: Shorter.!",
        "assistant: short!",
    ]  # fmt: skip


@pytest.mark.rule("R-TOOL-7", "R-STREAM-8")
@ways
async def test_a_reworded_answer_is_shown_and_the_log_has_it_as_it_was(way: Way) -> None:
    async def turn(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=request.reworded(response.message, "other"))

    @tool(return_direct=True)
    async def look() -> str:
        """Looks."""
        return "found"

    for script, log in (
        (["plain"], ["user: Go.", "assistant: plain"]),
        ([call("look")], ["user: Go.", "assistant: +look", "tool: found"]),
    ):
        store = InMemory()
        advisors = [Memory(store), Layer("rewords", turn=turn)]
        agent = Agent(Scripted(*script), tools=[look], advisors=advisors)
        response = await way(agent, "Go.", conversation="c")
        assert response.text == "other"
        assert await kept(store) == said(response.messages) == log
