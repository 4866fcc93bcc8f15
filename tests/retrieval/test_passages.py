"""Long documents cut into passages."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import ConfigError
from retinue.retrieval import Document, split
from retinue.retrieval.passages import as_documents, passages

TEXTS = st.text(st.sampled_from("ab c.\n。\t…é猫"), max_size=300)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    size = draw(st.integers(1, 60))
    return size, draw(st.integers(0, (size - 1) // 2))


@given(TEXTS, sizes())
def test_passages_are_cut_from_the_text_in_order_and_lose_nothing(
    text: str, given: tuple[int, int]
) -> None:
    size, overlap = given
    document = Document(text, "d")
    seen = 0
    before = -1
    for passage in passages(document, size, overlap):
        end = passage.start + len(passage.text)
        assert text[passage.start : end] == passage.text
        assert len(passage.text) <= size or len(text) <= size
        assert passage.start > before
        assert seen - passage.start <= overlap
        assert not text[seen : passage.start].strip(), "what lies between is white space"
        before, seen = passage.start, end
    assert not text[seen:].strip()


@given(TEXTS, sizes())
def test_split_gives_the_texts_of_the_passages(text: str, given: tuple[int, int]) -> None:
    pieces = split(text, *given)
    assert all(piece == piece.strip() and piece for piece in pieces)
    assert re.sub(r"\s", "", "".join(split(text, given[0], 0))) == re.sub(r"\s", "", text)


def test_a_cut_prefers_a_paragraph_then_a_line_then_a_sentence_then_a_word() -> None:
    assert split("one two. three\n\nfour five six", 20, 0) == ["one two. three", "four five six"]
    assert split("one two. three\nfour five six", 20, 0) == ["one two. three", "four five six"]
    assert split("one two three. four five six", 20, 0) == ["one two three.", "four five six"]
    assert split("one two three four five six", 20, 0) == ["one two three four", "five six"]
    assert split("o" * 25, 20, 0) == ["o" * 20, "o" * 5]


def test_sentences_without_spaces_are_cut_too() -> None:
    assert split("猫は魚が好きです。犬は肉が好きです。", 12, 0) == [
        "猫は魚が好きです。",
        "犬は肉が好きです。",
    ]


def test_neighbours_share_whole_sentences() -> None:
    assert split("One is here. Two is here. Three is here. Four is here.", 28, 13) == [
        "One is here. Two is here.",
        "Two is here. Three is here.",
        "is here. Four is here.",
    ]
    assert split("aaa bbbbbbbb", 8, 3) == ["aaa bbbb", "bbbbbbb"]


@pytest.mark.parametrize(
    ("size", "overlap", "words"),
    [(0, 0, "holds nothing"), (10, 5, "less than half"), (10, -1, "less than half")],
)
def test_sizes_that_make_no_passages_are_refused(size: int, overlap: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        split("text", size, overlap)


def test_a_short_document_stays_as_it_is_and_so_does_a_long_one_that_is_to_be_whole() -> None:
    short, long = Document(" short ", "s"), Document("x " * 5_000, "l")
    assert passages(short, 100, 10) == (short,)
    assert passages(long, None, 10) == (long,)


def test_passages_keep_the_id_and_what_is_kept_with_the_document() -> None:
    document = Document("word " * 20, "handbook", {"title": "T"})
    found = passages(document, 30, 0)
    assert len(found) > 2
    assert {(one.id, one.meta["title"]) for one in found} == {("handbook", "T")}


def test_texts_become_documents_whose_id_is_their_text_and_the_last_of_an_id_counts() -> None:
    first, again = as_documents(["text", "text", "other"])
    assert (first.text, again.text) == ("text", "other")
    assert first.id == Document("text").id != again.id
    (last,) = as_documents([Document("old", "d"), Document("new", "d")])
    assert last.text == "new"
    assert as_documents("alone") == [Document("alone")]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([7], "not int"),
        (None, "not NoneType"),
        (["good", " "], "blank"),
        ([Document("", "empty")], "'empty' is blank"),
        (["half \ud800"], "lone surrogate"),
        ([Document("good", "\ud800")], "lone surrogate"),
    ],
)
def test_what_is_no_document_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        as_documents(wrong)
