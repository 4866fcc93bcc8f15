"""Answers that a guard holds and looks at, and those that no model gave."""

# ruff: noqa: RUF001  (letters that look alike are what this is about)

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retinue import Agent, ConfigError, Layer, tool
from retinue.advisors import Memory, Safeguard
from retinue.chains.events import TextChunk, ThinkingChunk
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from retinue.stores import InMemory
from tests.advisors.holding import cuts, shown, split
from tests.advisors.talking import WAYS, Way, by_parent, kept
from tests.agent.reading import read

ANSWER = ["The secret. It is ", "in the o", "ld Ｓ\u200bａ", "fe, he said."]
TEXT = "".join(ANSWER)
TOLD = "The answer breaks the rule 'old safe'."
ways = pytest.mark.parametrize("way", WAYS)
modes = pytest.mark.parametrize("hold", [None, "all", "sentence", 20])


def text_of(events: Sequence[Any]) -> str:
    return "".join(one.text for one in events if isinstance(one, TextChunk))


@pytest.mark.behaviour("B-ST-3", "B-ON-5", "B-GU-2")
@modes
@ways
async def test_an_answer_that_breaks_a_rule_is_blocked_and_nobody_keeps_it(
    way: Way, hold: Any
) -> None:
    store = InMemory()
    guard = Safeguard("old safe", output=True, hold=hold, answer="No.")
    agent = Agent(Scripted(Say(text=ANSWER), "hello"), advisors=[guard, Memory(store)])
    response = await way(agent, "Where?", conversation="c")
    assert (response.status, response.blocked_by) == ("blocked", "Safeguard")
    assert (response.text, response.reason) == ("No.", TOLD)
    assert (await way(agent, "Hi.", conversation="c")).text == "hello"
    assert not [line for line in await kept(store) if "secret" in line]


@modes
@ways
async def test_an_answer_that_breaks_none_arrives_as_it_was(way: Way, hold: Any) -> None:
    guard = Safeguard("new safe", output=True, hold=hold)
    assert (await way(Agent(Scripted(Say(text=ANSWER)), advisors=[guard]), "Where?")).text == TEXT


@pytest.mark.behaviour("B-ST-3")
@pytest.mark.parametrize(
    ("hold", "released"),
    [
        ("all", ""),
        ("sentence", "The secret. "),
        (None, "The secret. It is in th"),
        (20, "The secret."),
    ],
)
async def test_a_guard_that_trips_late_has_shown_the_released_part_at_most(
    hold: Any, released: str
) -> None:
    guard = Safeguard("old safe", output=True, hold=hold, answer="")
    events = await read(Agent(Scripted(Say(text=ANSWER)), advisors=[guard]).stream("Where?"))
    assert TEXT.startswith(text_of(events))
    assert text_of(events) == released


@pytest.mark.behaviour("B-ON-5")
async def test_a_sub_agent_s_answer_is_blocked_before_its_parent_sees_it() -> None:
    child = Agent(Scripted(Say(text=ANSWER)), advisors=[Safeguard("old safe", output=True)])
    response = await by_parent(child, "Where?")
    results = [one for message in response.messages for one in message.tool_results]
    assert [one.ok for one in results] == [False]
    assert "Safe" not in results[0].text


@pytest.mark.behaviour("B-GU-2")
@pytest.mark.parametrize("direct", [False, True])
@ways
async def test_what_a_tool_says_is_stopped_where_it_becomes_the_answer(
    way: Way, direct: bool
) -> None:
    @tool(return_direct=direct)
    def search(query: str = "x") -> str:
        """Looks it up."""
        return "in the old safe"

    model = Scripted(call("search"), "It is in the old safe.")
    agent = Agent(model, tools=[search], advisors=[Safeguard("old safe", output=True)])
    response = await way(agent, "Where?")
    assert (response.status, response.blocked_by) == ("blocked", "Safeguard")
    assert response.text == "I cannot help with that."
    assert len(model.requests) == (1 if direct else 2)


@ways
async def test_what_a_layer_inside_answers_is_looked_at(way: Way) -> None:
    async def answer(request: Any, call_next: Any) -> Any:
        return request.respond("In the old safe.")

    layers = [Safeguard("old safe", output=True), Layer("inner", chat=answer)]
    response = await way(Agent(Scripted(), advisors=layers), "Where?")
    assert (response.blocked_by, response.reason) == ("Safeguard", TOLD)


async def test_a_function_is_asked_once_about_each_sentence_and_not_again_at_the_end() -> None:
    seen: list[str] = []

    async def moderate(text: str) -> bool:
        seen.append(text)
        return "stop" in text

    guard = Safeguard(moderate, input=False, output=True, hold="sentence")
    agent = Agent(Scripted(Say(text=["One. T", "wo. Three"]), "One. stop. Two"), advisors=[guard])
    assert (await agent.run("stop")).text == "One. Two. Three"
    assert seen == ["One. ", "Two. ", "Three"]
    assert (await agent.run("Go.")).reason == "The answer breaks the rule 'moderate'."
    assert seen[3:] == ["One. ", "stop. "]


async def test_where_a_length_is_unknown_all_of_an_answer_is_held() -> None:
    for rule in (re.compile("old .*"), lambda text: "secret" in text):
        guard = Safeguard(["x", rule], output=True, answer="")
        events = await read(Agent(Scripted(Say(text=ANSWER)), advisors=[guard]).stream("Where?"))
        assert text_of(events) == ""


@pytest.mark.parametrize(("hold", "rule"), [(8, r"\bo\w+ s\w+"), ("sentence", r"secret\. it")])
async def test_an_expression_is_found_in_a_window_and_across_sentences(
    hold: Any, rule: str
) -> None:
    guard = Safeguard(re.compile(rule), output=True, hold=hold)
    assert (await shown(guard, ANSWER))[1] is not None
    assert (await shown(guard, list(TEXT)))[1] is not None


async def test_an_expression_waits_for_the_end_of_a_word_that_is_cut() -> None:
    guard = Safeguard(re.compile(r"\bass\b"), output=True, hold=5)
    assert (await shown(guard, ["Let us ass", "ume it"])) == ("Let us assume it", None)


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.parametrize(
    ("thinking", "status", "thought"),
    [("hold", "blocked", ""), ("pass", "completed", "the old safe"), ("drop", "completed", "")],
)
async def test_reasoning_is_looked_at_unless_it_may_pass_or_is_dropped(
    thinking: Any, status: str, thought: str
) -> None:
    guard = Safeguard("old safe", output=True, thinking=thinking)
    model = Scripted(Say(thinking=["the old ", "safe"], text="I will not say."))
    events = await read(turn := Agent(model, advisors=[guard]).stream("Where?"))
    assert "".join(one.text for one in events if isinstance(one, ThinkingChunk)) == thought
    assert turn.outcome is not None
    assert turn.outcome.status == status


WORDS = ["bad", "c++", "a b", "弹", "ass", "か", "x."]
near = [
    "class",
    "assume",
    "bass",
    "ass",
    "badge",
    "bad",
    "c++",
    "炸弹",
    "か\u3099",
    " ",
    "\u200b",
    ". ",
]
speech = st.text(st.sampled_from("abds cx+. \u200b\u0301ＡB弹か\u3099\n"), max_size=40) | (
    st.lists(st.sampled_from(near), max_size=10).map("".join)
)


@given(speech, cuts, st.sampled_from(["word", "substring"]), st.sampled_from([None, 3, 9]))
@example("clasa bass", [5], "word", None)
@example("a" + "\u200b" * 9 + "b", [3, 5], "substring", None)
@example("か\u3099", [1], "word", None)
@example("ass\u200bass", [3], "word", 3)
@example("a class dab", [], "word", None)
@example("we assume", [], "word", None)
@example("classb", [2, 3, 4, 5], "word", 3)
async def test_no_split_hides_a_word_or_makes_one(
    text: str, places: list[int], mode: Any, hold: Any
) -> None:
    guard = Safeguard(WORDS, output=True, mode=mode, hold=hold)
    whole = (await shown(Safeguard(WORDS, output=True, mode=mode, hold="all"), [text]))[1]
    for chunks in (split(text, places), list(text)):
        left, reason = await shown(guard, chunks)
        assert reason == whole
        assert text.startswith(left)
        assert reason is not None or left == text


@given(
    speech.map(lambda text: text.replace("+", ". ")), cuts, st.sampled_from(["word", "substring"])
)
async def test_by_sentence_every_split_comes_to_the_same(
    text: str, places: list[int], mode: Any
) -> None:
    guard = Safeguard(WORDS, output=True, mode=mode, hold="sentence", longest=12)
    whole, told = await shown(guard, [text])
    left, reason = await shown(guard, split(text, places))
    assert reason == told
    assert text.startswith(left)
    assert reason is not None or left == whole == text


async def test_a_phrase_over_two_sentences_is_found_when_it_is_whole() -> None:
    guard = Safeguard("kill. him", output=True, hold="sentence")
    assert await shown(guard, ["We kill. ", "Him we do. Not"]) == (
        "We kill. ", "The answer breaks the rule 'kill. him'.",
    )  # fmt: skip


def test_inside_a_layer_that_forwards_it_is_refused() -> None:
    forward = Layer("forward", stream=lambda request: None, traits=frozenset({"forwards"}))
    guard = Safeguard("bomb", output=True)
    with pytest.raises(ConfigError, match="forward outside Safeguard cannot work"):
        Agent(Scripted(), advisors=[forward, guard])
    Agent(Scripted(), advisors=[guard, forward])
    Agent(Scripted(), advisors=[forward, Safeguard("bomb")])
