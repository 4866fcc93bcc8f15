"""Text that is held: how it is cut, what a judge sees, and what becomes of reasoning."""

# ruff: noqa: RUF001  (letters that look alike are what this is about)

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retinue.chains.holding import Holding, Sentences, Thoughts, Window
from retinue.messages import Delta, TextDelta, ThinkingDelta
from tests.advisors.holding import cuts, split

prose = st.text(
    st.sampled_from("ab.!?。！」\"') \n\t…*1中क।") | st.characters(exclude_categories=["Cs"]),
    max_size=60,
)


def pieces(chunks: Sequence[str], longest: int) -> list[str]:
    """What a judge is given, sentence by sentence."""
    seen = Seen()
    holding = Holding(Sentences(longest), lambda: seen)
    for chunk in chunks:
        assert isinstance(holding.feed(TextDelta(chunk)), tuple)
    assert isinstance(holding.flush(), tuple)
    return seen.texts


class Seen:
    """A judge that lets all go, and remembers it."""

    def __init__(self, verdict: str | None = None) -> None:
        self.verdict = verdict
        self.texts: list[str] = []

    def judge(self, held: str, *, complete: bool) -> str | None:
        self.texts.append(held)
        return self.verdict

    def left(self, text: str) -> None: ...


@given(prose, cuts, st.integers(1, 30))
@example("a. b", [1, 2, 3], 2)
@example("好。」好", [1, 2, 3], 9)
@example("\n\n \na.\n\nb", [1, 2, 3, 4, 5, 6, 7], 30)
def test_sentences_are_the_same_however_the_text_is_cut_and_nothing_is_lost(
    text: str, places: list[int], longest: int
) -> None:
    whole = pieces([text], longest)
    assert pieces(split(text, places), longest) == whole
    assert "".join(whole) == text
    assert all(0 < len(piece) <= longest for piece in whole)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("It costs 3.14 at example.org. Yes.", ["It costs 3.14 at example.org. ", "Yes."]),
        ('He said "no." Then (he left.) So?', ['He said "no." ', "Then (he left.) ", "So?"]),
        ("Wait... what?! **Yes.** No", ["Wait... ", "what?! ", "**Yes.** ", "No"]),
        ("你好。「走吧！」他说。好", ["你好。", "「走吧！」", "他说。", "好"]),
        ("はい。\nいいえ？", ["はい。\n", "いいえ？"]),
        ("- one\n- two\n\nthree", ["- one\n", "- two\n", "\nthree"]),
        ("क्या? हाँ। ठीक", ["क्या? ", "हाँ। ", "ठीक"]),
    ],
)
def test_a_sentence_ends_where_readers_of_its_script_say_so(text: str, expected: list[str]) -> None:
    assert pieces([text], 100) == expected


def test_a_sentence_that_is_too_long_is_cut_at_its_last_space_or_anywhere() -> None:
    assert pieces(["some words here"], 11) == ["some words ", "here"]
    assert pieces(["x" * 25], 10) == ["x" * 10, "x" * 10, "x" * 5]


@given(prose, cuts, st.integers(1, 20))
def test_a_window_keeps_its_last_characters_and_gives_all_in_the_end(
    text: str, places: list[int], size: int
) -> None:
    holding = Holding(Window(size), Seen)
    out = ""
    fed = 0
    for chunk in split(text, places):
        out += words(holding.feed(TextDelta(chunk)))
        fed += len(chunk)
        assert len(out) == max(0, fed - size)
    assert out + words(holding.flush()) == text


def test_what_takes_the_place_of_a_window_is_held_in_its_turn() -> None:
    holding = Holding(Window(2), lambda: Seen("12345"))
    assert words(holding.feed(TextDelta("abcdef"))) == "123"
    holding = Holding(Window(8), lambda: Seen("12"))
    assert words(holding.feed(TextDelta("abcdefghijk"))) == ""


def words(given: Any) -> str:
    return "".join(delta.text for delta in given)


def thoughts(choice: Thoughts, verdict: str | None, deltas: Sequence[Delta]) -> list[Delta]:
    holding = Holding(None, lambda: Seen(verdict), thinking=choice)
    out: list[Any] = []
    for delta in deltas:
        out += holding.feed(delta)  # pyright: ignore[reportOperatorIssue]
    return [*out, *holding.flush()]  # pyright: ignore[reportGeneralTypeIssues]


BLOCK: Sequence[Delta] = (ThinkingDelta("a"), ThinkingDelta("b", "proof"), TextDelta("x"))


@pytest.mark.rule("R-STREAM-7")
def test_reasoning_passes_or_is_held_as_a_block_with_its_proof_or_is_dropped_but_for_it() -> None:
    assert thoughts("pass", None, BLOCK) == [*BLOCK]
    assert thoughts("hold", None, BLOCK) == [ThinkingDelta("ab", "proof"), TextDelta("x")]
    assert thoughts("drop", None, BLOCK) == [ThinkingDelta("", "proof"), TextDelta("x")]
    assert thoughts("drop", None, [ThinkingDelta("a")]) == []


def test_reasoning_that_is_replaced_loses_the_proof_of_what_it_was() -> None:
    assert thoughts("hold", "-", BLOCK) == [ThinkingDelta("-"), TextDelta("-")]
    assert thoughts("hold", "", BLOCK) == []


def test_reasoning_is_judged_where_text_follows_and_where_nothing_does() -> None:
    assert thoughts("hold", None, [ThinkingDelta("a"), TextDelta("x")]) == [
        ThinkingDelta("a"), TextDelta("x"),
    ]  # fmt: skip
    assert thoughts("hold", None, [ThinkingDelta("a")]) == [ThinkingDelta("a")]
    assert thoughts("hold", None, [ThinkingDelta("", "proof")]) == [ThinkingDelta("", "proof")]
