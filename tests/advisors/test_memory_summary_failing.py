"""What becomes of a turn whose summary fails, is cancelled or asked for twice; wrong settings."""

import asyncio
import logging
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, tool
from retinue.advisors import Memory, Summarizer
from retinue.errors import ModelRefused, UnknownModelError
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import Store
from tests.advisors.minutes import ASKED, Notes, answering, remembering, talk
from tests.advisors.talking import WAYS, Way, layer, sent, soon

ways = pytest.mark.parametrize("way", WAYS)


@pytest.mark.rule("R-MEM-4", "R-FAIL-3")
@pytest.mark.parametrize(
    "broken",
    [ModelRefused("no such model"), Say(text=" \n"), LookupError("a model of your own")],
    ids=["refused", "empty", "broken"],
)
@ways
async def test_a_summary_that_fails_costs_the_oldest_turns_and_is_tried_again_next_time(
    way: Way, broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    notes, model = Notes(broken, "minutes"), answering()
    agent = Agent(model, advisors=[remembering(None, notes)])
    await talk(agent, "1?", "2?", "3?", way=way)
    with caplog.at_level(logging.WARNING, "retinue"):
        response = await way(agent, "4?", conversation="c")
    assert response.status == "completed"
    assert sent(model) == [
        "user: 2?", "assistant: re 2?", "user: 3?", "assistant: re 3?", "user: 4?"
    ]  # fmt: skip
    (record,) = caplog.records
    assert "'c' could not be summed up" in record.getMessage()
    await talk(agent, "5?", way=way)
    assert sent(model)[1] == "assistant: minutes"
    assert "1?" in notes.asked[1], "nothing is lost by the failure"


@pytest.mark.rule("R-MEM-4")
async def test_one_failure_a_turn_is_enough() -> None:
    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    notes = Notes(*[ModelRefused("no")] * 9)
    script = ["1", "2", "3", call("look"), call("look"), "4"]
    agent = Agent(Scripted(*script), tools=[look], advisors=[remembering(None, notes)])
    await talk(agent, "1?", "2?", "3?", "4?")
    assert len(notes.requests) == 1


@pytest.mark.rule("R-LOOP-8", "R-USAGE-4")
async def test_a_summary_is_cancelled_with_its_turn(store: Store) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def hang(request: Any) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    model = answering()
    memory = remembering(store, Scripted(hang, "minutes"))
    agent = Agent(model, advisors=[memory])
    await talk(agent, "1?", "2?", "3?")
    async with agent.stream("4?", conversation="c") as turn:
        await soon(asked.wait())
        turn.cancel()
        assert (await soon(turn.result())).status == "cancelled"
    assert ended.is_set()
    await talk(agent, "5?")
    assert sent(model)[:2] == [ASKED, "assistant: minutes"]


@pytest.mark.rule("R-ONION-3", "R-ONION-12")
async def test_inner_calls_at_the_same_time_share_one_summary(store: Store) -> None:
    async def twice(request: Any, call_next: Any) -> Any:
        first, _ = await asyncio.gather(call_next(request), call_next(request))
        return first

    notes, model = Notes(), answering()
    agent = Agent(model, advisors=[layer("twice", "chat", twice), remembering(store, notes)])
    await talk(agent, "1?", "2?", "3?", "4?")
    assert len(notes.requests) == 1
    assert sent(model, -1) == sent(model, -2)


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: Summarizer(tokens=0), "tokens=0"),
        (lambda: Summarizer(piece=1.5), "piece=1.5"),  # pyright: ignore[reportArgumentType]
        (lambda: Summarizer(keep=1), "keep=1"),
        (lambda: Summarizer(keep=-0.1), "keep=-0.1"),
        (lambda: Memory(summary=True), "summary=True"),  # pyright: ignore[reportArgumentType]
        (lambda: Memory(max_messages=None, summary=Summarizer()), "max_tokens"),
        (
            lambda: Memory(max_tokens=1_000, reserve=500, summary=Summarizer(tokens=500)),
            "500 tokens leaves no room in a window of 500",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(build: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        build()


def test_a_model_that_is_none_is_refused_when_the_memory_is_built() -> None:
    with pytest.raises(UnknownModelError, match="opnai"):
        Summarizer(model="opnai:gpt-5")


async def test_two_layers_called_memory_are_still_refused() -> None:
    with pytest.raises(ConfigError, match="Memory outside Memory"):
        Agent("local", advisors=[remembering(None, Notes()), Layer("x", chat=_on), Memory()])


async def _on(request: Any, call_next: Any) -> Any:
    return await call_next(request)
