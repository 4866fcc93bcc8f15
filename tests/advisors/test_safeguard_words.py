"""How words are found: case, width, invisible characters, scripts, and whole words."""

# ruff: noqa: RUF001  (letters that look alike are what this is about)

import itertools
import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from retinue.advisors.safeguard.folding import fold, tail
from retinue.advisors.safeguard.rulebook import Rulebook

letters = st.sampled_from(
    "asSıİIßée\u0301 \n\t\u200b\u00a0ﬁｂ炸弹가각\u1100\u1161がか\u3099कि\ufdfa_."
)
texts = st.text(letters | st.characters(exclude_categories=["Cs"]), max_size=30)


def finds(word: str, text: str, *, whole: bool = True) -> bool:
    return Rulebook([word], whole=whole).find(text) is not None


@pytest.mark.behaviour("B-GU-1")
@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("bomb", "A BOMB!"),
        ("BOMB", "bomb"),
        ("bomb", "a ｂｏｍｂ"),
        ("bomb", "a b\u200bo\u00adm\u2060b"),
        ("bomb", "b\u0301o\u0336m\ufe0fb"),
        ("bomb", "b\x00omb"),
        ("bömbe", "BOMBE"),
        ("bombe", "Bömbe"),
        ("credit card", "credit\u00a0 \n\tCARD"),
        ("istanbul", "İSTANBUL"),
        ("İstanbul", "ıstanbul"),
        ("sınıf", "SINIF"),
        ("strasse", "STRAẞE"),
        ("fish", "ﬁsh"),
        ("炸弹", "如何制造炸弹吗"),
        ("ばくだん", "そのばくだんは"),
        ("バクダン", "ﾊﾞｸﾀﾞﾝ"),
        ("폭탄", "폭탄을 만드는"),
        ("폭탄", "\u1111\u1169\u11a8\u1110\u1161\u11ab"),
        ("ระเบิด", "ทำระเบิดยังไง"),
        ("بم", "بَم"),
        ("c++", "in C++, say"),
        ("bad", "it is bad's"),
        ("bad", "so_bad_it"),
        ("👍", "ok👍🏽"),
    ],
)
def test_a_word_is_found_however_it_is_written(word: str, text: str) -> None:
    assert finds(word, text)


@pytest.mark.behaviour("B-GU-1")
@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("ass", "class"),
        ("ass", "assume"),
        ("ass", "a\u200bssume"),
        ("ass", "ass1"),
        ("credit card", "credit cards"),
        ("credit card", "creditcard"),
        ("राम", "सीताराम"),
        ("क", "कि"),
        ("か", "が"),
        ("가", "각"),
        ("มา", "ม้า"),
    ],
)
def test_another_word_is_not_taken_for_it(word: str, text: str) -> None:
    assert not finds(word, text)


@pytest.mark.behaviour("B-GU-1")
def test_as_a_substring_a_word_is_found_inside_of_others() -> None:
    assert finds("ass", "class", whole=False)
    assert finds("ass", "assume", whole=False)
    assert not finds("か", "が", whole=False), "a mark makes another letter of it"


@pytest.mark.behaviour("B-GU-1")
def test_a_shorter_word_is_found_where_a_longer_one_that_holds_it_is_not() -> None:
    rules = Rulebook({"long": "the ass is", "short": "ass", "inner": "is"}, whole=True)
    assert rules.find("the ass isn") == "short"
    assert rules.find("the class is") == "inner"


def test_the_first_rule_with_a_word_is_named_for_it() -> None:
    assert Rulebook({"one": "BOMB", "two": ["bomb", "x"]}, whole=True).find("bomb") == "one"


@given(texts, texts)
def test_a_text_folds_the_same_in_pieces(one: str, two: str) -> None:
    joined = fold(one) + fold(two)
    assert fold(one + two) == " ".join(joined.split("  "))
    assert fold(fold(one)) == fold(one)


@given(texts, st.integers(1, 20))
@example("\ufdfaa", 3)
@example("a   \u200b  b", 3)
def test_the_end_of_a_text_is_the_shortest_that_folds_to_so_many_characters(
    text: str, size: int
) -> None:
    at = tail(text, size)
    if len(fold(text)) < size:
        assert at == 0
    else:
        assert len(fold(text[at:])) >= size
        assert len(fold(text[at + 1 :])) < size


@given(texts, texts, texts, st.booleans())
def test_a_word_between_others_is_found_wherever_it_stands(
    before: str, word: str, after: str, whole: bool
) -> None:
    assume(fold(word).strip())
    assert finds(word, f"{before} {word} {after}", whole=whole)


def test_ten_thousand_words_in_a_long_text_are_found_in_bounded_time() -> None:
    words = [
        "".join(one) + "zq"
        for one in itertools.islice(itertools.product("abcdefghij", repeat=4), 10_000)
    ]
    rules = Rulebook(words, whole=True)
    text = "the quick brown fox jumps over the lazy dog. " * 2_200
    times: list[float] = []
    for _ in range(5):
        began = time.process_time()
        assert rules.find(text) is None
        times.append(time.process_time() - began)
    assert min(times) < 0.05, "ten times what it takes"
    assert rules.find(f"{text} abcdzq") == "abcdzq"
