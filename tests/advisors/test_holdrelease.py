"""Answers that are held until a check lets them go."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given

from retinue import Agent, ConfigError, Layer, tool
from retinue.advisors import HoldRelease, Memory, Stop
from retinue.chains import OnionWarning
from retinue.chains.events import (
    AttemptDiscarded,
    TextChunk,
    ThinkingChunk,
    ToolStarted,
)
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from retinue.stores import InMemory
from tests.advisors.holding import cuts, shown, split
from tests.advisors.talking import WAYS, Way, by_parent, kept, soon
from tests.agent.reading import read
from tests.chains.test_holding import prose

ANSWER = ["The code. ", "Of the ", "safe. It is 1234", "."]
TEXT = "".join(ANSWER)
ways = pytest.mark.parametrize("way", WAYS)
modes = pytest.mark.parametrize("hold", ["all", "sentence", 4])


def chunks(events: Sequence[Any]) -> list[str]:
    return [one.text for one in events if isinstance(one, TextChunk)]


def no_code(held: str) -> bool:
    return "1234" not in held


async def no_code_later(held: str) -> bool:
    await asyncio.sleep(0)
    return no_code(held)


@pytest.mark.rule("R-STREAM-2", "R-STREAM-3")
@modes
@ways
async def test_what_the_check_lets_go_arrives_as_it_was(way: Way, hold: Any) -> None:
    store = InMemory()
    agent = Agent(
        Scripted(Say(text=ANSWER), repeat=True),
        advisors=[Memory(store), HoldRelease(lambda held: None, hold=hold)],
    )
    assert (await way(agent, "Code?", conversation="c")).text == TEXT
    assert await kept(store) == ["user: Code?", f"assistant: {TEXT}"]


@pytest.mark.behaviour("B-ST-3", "B-ON-5")
@pytest.mark.parametrize("check", [no_code, no_code_later])
@modes
@ways
async def test_what_the_check_stops_is_blocked_and_nobody_keeps_it(
    way: Way, hold: Any, check: Any
) -> None:
    store = InMemory()
    layers = [Memory(store), HoldRelease(check, hold=hold, answer="No.")]
    agent = Agent(Scripted(Say(text=ANSWER), "hello"), advisors=layers)
    response = await way(agent, "Code?", conversation="c")
    assert (response.status, response.blocked_by, response.text) == (
        "blocked", "HoldRelease", "No.",
    )  # fmt: skip
    assert response.reason == "The check of the answer stopped it."
    assert (await way(agent, "Hi.", conversation="c")).text == "hello"
    assert not [line for line in await kept(store) if "1234" in line or "safe" in line]


@pytest.mark.behaviour("B-ST-3")
@pytest.mark.parametrize(
    ("hold", "released"),
    [
        ("all", []),
        ("sentence", ["The code. ", "Of the safe. "]),
        (8, ["Th", "e code."]),
    ],
)
@pytest.mark.parametrize("check", [no_code, no_code_later])
async def test_a_check_that_trips_late_has_shown_the_released_part_at_most(
    check: Any, hold: Any, released: list[str]
) -> None:
    agent = Agent(Scripted(Say(text=ANSWER)), advisors=[HoldRelease(check, hold=hold)])
    events = await read(agent.stream("Code?"))
    assert chunks(events) == released
    assert [type(one) for one in events if isinstance(one, AttemptDiscarded)] == (
        [AttemptDiscarded] if released else []
    )


@pytest.mark.behaviour("B-ON-5")
async def test_a_sub_agent_is_held_too_and_run_sync_says_the_same() -> None:
    child = Agent(Scripted("it is 1234", repeat=True), advisors=[HoldRelease(no_code)])
    response = await by_parent(child, "Code?")
    results = [one for message in response.messages for one in message.tool_results]
    assert [one.ok for one in results] == [False]
    assert "1234" not in results[0].text
    told = await asyncio.to_thread(child.run_sync, "Code?")
    assert (told.status, told.blocked_by) == ("blocked", "HoldRelease")


@ways
async def test_a_text_takes_the_place_of_what_was_held(way: Way) -> None:
    store = InMemory()

    def masked(held: str) -> str:
        return held.replace("1234", "****")

    layers = [Memory(store), HoldRelease(masked, hold="sentence")]
    agent = Agent(Scripted(Say(text=ANSWER)), advisors=layers)
    masked_text = TEXT.replace("1234", "****")
    assert (await way(agent, "Code?", conversation="c")).text == masked_text
    assert (await kept(store))[-1] == f"assistant: {masked_text}"


async def test_an_empty_text_in_its_place_leaves_nothing_of_it() -> None:
    def drop(held: str) -> str | None:
        return "" if "1234" in held else None

    agent = Agent(Scripted(Say(text=ANSWER)), advisors=[HoldRelease(drop, hold="sentence")])
    assert (await agent.run("Code?")).text == "The code. Of the safe. "


@ways
async def test_a_stop_gives_its_reason_and_its_answer(way: Way) -> None:
    said: list[Stop] = [Stop("A code.", "Ask the owner."), Stop("A code."), Stop("A code.", "")]
    agent = Agent(
        Scripted(TEXT, repeat=True), advisors=[HoldRelease(lambda _: said.pop(0), answer="No.")]
    )
    answers = [await way(agent, "Code?") for _ in range(3)]
    assert {one.reason for one in answers} == {"A code."}
    assert [one.text for one in answers] == ["Ask the owner.", "No.", ""]


async def test_a_check_of_two_arguments_gets_what_has_left() -> None:
    seen: list[tuple[str, str]] = []

    def check(held: str, before: str) -> str | None:
        seen.append((held, before))
        return "Two. " if held.startswith("2") else None

    agent = Agent(
        Scripted(Say(text=["One. 2", ". Three"])), advisors=[HoldRelease(check, hold="sentence")]
    )
    assert (await agent.run("Go.")).text == "One. Two. Three"
    assert seen == [("One. ", ""), ("2. ", "One. "), ("Three", "One. Two. ")]


@given(prose, cuts)
async def test_by_sentence_every_split_gives_the_same_checks_and_the_same_text(
    text: str, places: list[int]
) -> None:
    def told(pieces: Sequence[str]) -> tuple[HoldRelease, list[str]]:
        checks: list[str] = []

        def check(held: str) -> str | None:
            checks.append(held)
            return held.upper() if "a" in held else None

        return HoldRelease(check, hold="sentence", longest=20), checks

    one, whole = told([text])
    many, cut = told([text])
    assert await shown(one, [text]) == await shown(many, split(text, places))
    assert cut == whole


@given(prose.map(lambda text: text.replace("b", "b1234c")), cuts)
@example("b1234c", [2])
async def test_no_split_hides_from_a_window_what_is_no_longer_than_it(
    text: str, places: list[int]
) -> None:
    masked = HoldRelease(lambda held: held.replace("1234", "-"), hold=4)
    for chunks in ([text], split(text, places), list(text)):
        assert await shown(masked, chunks) == (text.replace("1234", "-"), None)
    stopping = HoldRelease(no_code, hold=4)
    text_shown, reason = await shown(stopping, split(text, places))
    assert (reason is None) == ("1234" not in text)
    assert text.startswith(text_shown)
    assert "1234" not in text_shown


async def test_text_before_a_tool_call_is_checked_before_the_tool_runs() -> None:
    ran: list[str] = []

    @tool
    def search(query: str = "x") -> str:
        """Looks it up."""
        ran.append(query)
        return "found"

    def script() -> Scripted:
        return Scripted(Say(text="Looking for 1234. ", calls=[call("search")]), "done")

    agent = Agent(script(), tools=[search], advisors=[HoldRelease(no_code)])
    assert (await agent.run("Go.")).status == "blocked"
    assert ran == []
    agent = Agent(script(), tools=[search], advisors=[HoldRelease(lambda held: None)])
    events = await read(agent.stream("Go."))
    assert chunks(events) == ["Looking for 1234. ", "done"]
    text = next(n for n, one in enumerate(events) if isinstance(one, TextChunk))
    assert text < next(n for n, one in enumerate(events) if isinstance(one, ToolStarted))


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.parametrize(
    ("thinking", "status", "thought"),
    [("pass", "completed", "it is 1234"), ("hold", "blocked", ""), ("drop", "completed", "")],
)
async def test_reasoning_does_not_leak_past_the_check_unless_it_may_pass(
    thinking: Any, status: str, thought: str
) -> None:
    model = Scripted(Say(thinking=["it is ", "1234"], text="I will not say."))
    agent = Agent(model, advisors=[HoldRelease(no_code, thinking=thinking)])
    events = await read(turn := agent.stream("Code?"))
    assert "".join(one.text for one in events if isinstance(one, ThinkingChunk)) == thought
    assert turn.outcome is not None
    assert turn.outcome.status == status
    message = turn.outcome.message
    assert message is None or message.thinking == thought


async def test_a_slow_check_slows_the_answer_and_loses_nothing_of_it() -> None:
    gate = asyncio.Event()
    asked = asyncio.Event()

    async def slow(held: str) -> None:
        asked.set()
        await gate.wait()

    agent = Agent(Scripted(Say(text=ANSWER)), advisors=[HoldRelease(slow, hold="sentence")])
    seen: list[str] = []

    async def reading() -> None:
        async for event in agent.stream("Code?"):
            if isinstance(event, TextChunk):
                seen.append(event.text)

    task = asyncio.create_task(reading())
    await soon(asked.wait())
    assert seen == []
    gate.set()
    await soon(task)
    assert "".join(seen) == TEXT


async def test_a_check_that_is_cancelled_while_it_waits_shows_nothing() -> None:
    asked = asyncio.Event()

    async def never(held: str) -> None:
        asked.set()
        await asyncio.Event().wait()

    turn = Agent(Scripted("secret"), advisors=[HoldRelease(never)]).stream("Go.", detached=True)
    await soon(asked.wait())
    turn.cancel()
    response = await soon(turn.result())
    assert (response.status, response.text) == ("cancelled", "")


@modes
@ways
async def test_a_check_that_fails_lets_nothing_go(way: Way, hold: Any) -> None:
    def fails(held: str) -> None:
        raise RuntimeError("the service is down")

    agent = Agent(Scripted(TEXT), advisors=[HoldRelease(fails, hold=hold)])
    with pytest.raises(RuntimeError, match="the service is down"):
        await way(agent, "Code?")


async def test_a_check_is_not_asked_about_nothing() -> None:
    asked: list[str] = []
    agent = Agent(Scripted(""), advisors=[HoldRelease(lambda held: asked.append(held))])
    assert (await agent.run("Go.")).text == ""
    assert asked == []


async def test_a_check_that_gives_no_ruling_is_refused_by_name() -> None:
    agent = Agent(Scripted("x"), advisors=[HoldRelease(lambda held: 1)])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match=r"The check of HoldRelease gave int; .*True"):
        await agent.run("Go.")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("text",), r"HoldRelease\('text'\): give a function"),
        ((str,), "give a function"),
        ((lambda: None,), r"it must take \(held\), or \(held, before\)"),
        ((no_code, "words"), r"hold='words'.*'all', 'sentence'"),
        ((no_code, 0), "hold=0"),
        ((no_code, True), "hold=True"),
        ((no_code, "all", "show"), r"thinking='show'.*'pass', 'hold' or 'drop'"),
        ((no_code, "sentence", "pass", 0), "longest=0"),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(arguments: Any, told: str) -> None:
    names = ("check", "hold", "thinking", "longest")
    with pytest.raises(ConfigError, match=told):
        HoldRelease(**dict(zip(names, arguments, strict=False)))


@pytest.mark.rule("R-ONION-9")
def test_the_wrong_orders_are_refused_or_warned_about() -> None:
    def layer(trait: str) -> Layer:
        return Layer("other", stream=lambda request: None, traits=frozenset({trait}))

    holds = HoldRelease(no_code)
    with pytest.raises(ConfigError, match="other outside HoldRelease cannot work"):
        Agent(Scripted(), advisors=[layer("forwards"), holds])
    with pytest.raises(ConfigError, match="HoldRelease outside other cannot work"):
        Agent(Scripted(), advisors=[holds, layer("validates-stream")])
    with pytest.warns(OnionWarning, match="other stands outside HoldRelease: .*Swap them"):
        Agent(Scripted(), advisors=[layer("rewrites"), holds])
    for right in ("forwards", "rewrites"):
        assert Agent(Scripted(), advisors=[holds, layer(right)]).explain().warnings == ()


def test_explain_says_that_the_first_token_comes_late() -> None:
    told = Agent(Scripted(), advisors=[HoldRelease(no_code)]).explain()
    assert told.layers[0].notes == ("holds the stream back: the first token comes late",)
