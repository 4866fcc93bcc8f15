"""What counts as a word: folding, parts, and scripts without spaces."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.retrieval.words import asked, indexed

TEXTS = st.text(st.characters(exclude_categories=("Cs",)) | st.sampled_from("aZé _9.猫がプ고ส'\"*"))


@pytest.mark.parametrize(
    ("written", "sought"),
    [
        ("CAFÉ", "cafe"),
        ("e\u0301cole", "école"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ISPARTA", "\u0131sparta"),
        ("Łódź", "lodz"),
        ("\uff26\uff35\uff2c\uff2c width", "full"),
        ("zero\u200bwidth", "zerowidth"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("cats and boxes", "Cat"),
        ("the cities", "city"),
        ("the bus", "bus"),
        ("parseHTTPResponse", "response"),
        ("parseHTTPResponse", "http"),
        ("parseHTTPResponse", "parsehttpresponse"),
        ("snake_case_name", "case"),
        ("gpt4", "gpt"),
        ("version 3.14", "14"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("مُحَمَّد", "محمد"),
        ("猫は魚が好きです", "猫"),
        ("我们的首都是北京市", "北京"),
        ("使用Python编程", "编程"),
        ("使用Python编程", "python"),
        ("東京タワーへ行く", "タワー"),
        ("고양이는 좋다", "고양이"),
        ("ผมชอบแมว", "แมว"),
    ],
)
def test_a_word_is_found_however_it_is_written(written: str, sought: str) -> None:
    words = asked(sought)
    assert words
    assert set(words) <= set(indexed(written))


@pytest.mark.parametrize(
    ("written", "sought"), [("class", "ass"), ("北京", "京北"), ("bus", "bu"), ("が", "か")]
)
def test_a_part_of_a_word_and_turned_characters_are_other_words(written: str, sought: str) -> None:
    assert not set(asked(sought)) & set(indexed(written))


def test_words_that_find_nothing_are_left_out_of_a_question() -> None:
    assert asked("What is the capital of the island?") == ["capital", "island"]
    assert asked("猫が好き") == ["猫", "好", "き"]


def test_a_question_of_such_words_alone_keeps_them() -> None:
    assert asked("To be or not to be") == ["to", "be", "or", "not"]
    assert asked("die Katze", {"die"}) == ["katze"]


@pytest.mark.parametrize("text", ["", " \n", "?!… —", "\u0301\u200b"])
def test_a_text_without_words_has_none(text: str) -> None:
    assert (indexed(text), asked(text)) == ([], [])


def test_a_picture_in_letters_is_one_short_word() -> None:
    (word,) = indexed("aGVr" * 5_000)
    assert len(word) == 64


@given(TEXTS)
def test_a_text_is_found_by_itself(text: str) -> None:
    assert set(asked(text)) <= set(indexed(text))


@given(st.text(st.sampled_from("aZ sS9_.'-")))
def test_the_quick_way_for_plain_letters_gives_the_same(text: str) -> None:
    assert indexed(text) == indexed(f"{text} é")[:-1]


@given(TEXTS)
def test_no_word_holds_what_could_be_syntax(text: str) -> None:
    for word in (*indexed(text), *asked(text)):
        assert word
        assert not set(word) & set(" \t\n\"'*^:()-+{}\x00_")


@given(TEXTS)
def test_every_word_is_asked_once(text: str) -> None:
    words = asked(text)
    assert len(words) == len(set(words))


@given(
    st.lists(
        st.sampled_from(["Éclair", "STRASSE", "\uff37\uff49\uff44\uff45", "猫", "İz", "ship"]),
        min_size=1,
    )
)
def test_case_accents_and_width_do_not_count(words: list[str]) -> None:
    text = " ".join(words)
    assert indexed(text) == indexed(text.casefold())
    assert indexed(text) == indexed(unicodedata.normalize("NFKD", text))
