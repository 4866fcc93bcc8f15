"""Reasoning in tags, told from the text however it is cut."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import ConfigError
from retinue.advisors import Thinking
from retinue.advisors.thinking.tags import TAGS, Tags, Untag
from retinue.messages import TextDelta, ThinkingDelta, ToolCallDelta

PIECES = [
    "<think>", "</think>", "<THINK>", "</Think>", "<thinking>", "</thinking>", "<", "</", "thin",
    "k>", ">", " ", "\n", "a", "\u017f", "\u212a", "é<",
]  # fmt: skip
"""Two of them are letters that some foldings take for an s and a k."""


def told(
    chunks: Sequence[str], *, tags: Any = TAGS, anywhere: bool = False, opened: bool = False
) -> tuple[str, str]:
    """The text and the reasoning that come of the chunks of an answer."""
    untag = Untag(Tags(tags), anywhere=anywhere, opened=opened, note=lambda: None)
    deltas = [made for chunk in chunks for made in untag.feed(TextDelta(chunk))] + [*untag.flush()]
    assert all(delta.text for delta in deltas)  # pyright: ignore[reportAttributeAccessIssue]
    text = "".join(one.text for one in deltas if isinstance(one, TextDelta))
    return text, "".join(one.text for one in deltas if isinstance(one, ThinkingDelta))


def by_pattern(answer: str, anywhere: bool) -> tuple[str, str]:
    """The same by a regular expression over the whole answer."""
    opening = re.compile("<(think|thinking|thought|reasoning)>", re.IGNORECASE | re.ASCII)
    text, thought, rest = "", "", answer
    while True:
        blank = len(rest) - len(rest.lstrip())
        found = opening.search(rest) if anywhere else opening.match(rest, blank)
        if found is None:
            return text + rest, thought
        text += rest[: found.start()]
        rest = rest[found.end() :]
        closing = re.search(f"</{found[1]}>", rest, re.IGNORECASE | re.ASCII)
        end, after = (len(rest), len(rest)) if closing is None else closing.span()
        thought += rest[:end]
        rest = rest[after:]


@st.composite
def cut(draw: Any) -> list[str]:
    """An answer made of awkward pieces, cut anywhere."""
    answer = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=14)))
    places = draw(st.sets(st.integers(0, len(answer)))) | {0, len(answer)}
    return [answer[a:b] for a, b in itertools.pairwise(sorted(places))]


@pytest.mark.behaviour("B-TH-1")
@given(chunks=cut(), anywhere=st.booleans())
def test_every_cut_gives_the_same_text_and_the_same_reasoning(
    chunks: list[str], anywhere: bool
) -> None:
    assert told(chunks, anywhere=anywhere) == by_pattern("".join(chunks), anywhere)


@pytest.mark.behaviour("B-TH-1")
@given(chunks=cut())
def test_an_answer_that_begins_inside_a_tag_is_cut_the_same_everywhere(chunks: list[str]) -> None:
    assert told(chunks, opened=True) == told(["".join(chunks)], opened=True)


@pytest.mark.behaviour("B-TH-1")
@pytest.mark.parametrize(
    ("answer", "text", "thought"),
    [
        ("<think>\nhm\n</think>\n\nOslo.", "\n\nOslo.", "\nhm\n"),
        (" \n<think>a</think> <think>b</think>c", " \n c", "ab"),
        ("<think></think>Oslo.", "Oslo.", ""),
        ("<think>never closed", "", "never closed"),
        ("<think>a</thinking>b</think>c", "c", "a</thinking>b"),
        ("Use <think> for it.", "Use <think> for it.", ""),
        ("<thin air>", "<thin air>", ""),
        ("<think", "<think", ""),
        ("<think>a</thi", "", "a</thi"),
        ("", "", ""),
    ],
)
def test_what_is_text_and_what_is_thought(answer: str, text: str, thought: str) -> None:
    assert told([answer]) == told([*answer]) == (text, thought)


def test_in_the_middle_of_an_answer_tags_count_by_choice() -> None:
    answer = "First. <think>or</think>Then <THINK>x</THINK>."
    assert told([*answer], anywhere=True) == ("First. Then .", "orx")


def test_an_answer_may_begin_inside_a_tag_that_the_template_has_opened() -> None:
    assert told([*"hm</think>Oslo."], opened=True) == ("Oslo.", "hm")
    assert told([*"hm</thought><think>b</think>Oslo."], opened=True) == ("Oslo.", "hmb")


def test_tags_may_have_other_names_and_other_shapes() -> None:
    tags = ["Scratch_Pad", ("[THINK]", "[/THINK]"), ("◁É", "▷")]
    answer = "[think]a[/think]<scratch_pad>b</SCRATCH_PAD>◁Éc▷<think>d"
    assert told([*answer], tags=tags) == ("<think>d", "abc")


def test_only_what_may_be_a_tag_is_held() -> None:
    untag = Untag(Tags(TAGS), anywhere=True, opened=False, note=lambda: None)
    assert untag.feed(TextDelta("a <")) == (TextDelta("a "),)
    assert untag.feed(TextDelta("thi")) == ()
    assert untag.feed(TextDelta("s")) == (TextDelta("<this"),)


def test_other_deltas_pass_as_they_are() -> None:
    untag = Untag(Tags(TAGS), anywhere=False, opened=False, note=lambda: None)
    signed, call = ThinkingDelta("hm", signature="proof"), ToolCallDelta(0, "1", "search", "{}")
    assert [*untag.feed(signed), *untag.feed(call)] == [signed, call]


@pytest.mark.parametrize(
    ("tags", "match"),
    [
        ("think", r"tags=\['think'\]"),
        (["<think>"], "'<think>' is no tag"),
        ([""], "'' is no tag"),
        ([("a",)], "is no tag"),
        ([("a", " ")], "is no tag"),
        ([(" a", "b")], "is no tag"),
        ([("[T]", "x"), ("[T][X]", "y")], r"'\[t\]\[x\]' begins with '\[t\]'"),
    ],
)
def test_what_is_no_tag_is_refused(tags: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Thinking(tags=tags)
