"""How numbers, calls and foreign text are put on a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.cli.wording import call_words, count_words, cut, safe, seconds_words, usage_words
from retinue.messages import Usage


@given(st.text(st.characters(codec=None, categories=None)))
def test_safe_text_can_be_printed_and_steers_nothing(text: str) -> None:
    shown = safe(text)
    shown.encode()
    assert all(letter in "\t\n" or not _steers(letter) for letter in shown)
    assert safe(shown) == shown


def _steers(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter <= "\x9f"


@given(st.text(), st.integers(1, 80))
def test_a_cut_text_fits_on_its_line(text: str, width: int) -> None:
    line = cut(text, width)
    assert len(line) <= width
    assert "\n" not in line


@pytest.mark.parametrize(
    ("usage", "price", "says"),
    [
        (Usage(), None, "tokens unknown · cost unknown · 2.0 s"),
        (Usage(input=1200, output=5), 0.00123, "1,200 tokens in · 5 out · $0.0012 · 2.0 s"),
        (
            Usage(input=9, cache_read=8, output=7, reasoning=6),
            0.0,
            "9 tokens in (8 cached) · 7 out (6 thinking) · $0.0000 · 2.0 s",
        ),
        (Usage(output=5), None, "5 out · cost unknown · 2.0 s"),
    ],
)
def test_usage_says_what_is_known(usage: Usage, price: float | None, says: str) -> None:
    assert usage_words(usage, price, 2) == says


def test_a_call_reads_like_a_call() -> None:
    assert call_words("look", {"at": "Oslo", "deep": True}) == 'look(at="Oslo", deep=true)'
    assert call_words("look", {}) == "look()"
    assert call_words("look", None) == "look(?)"
    assert len(call_words("look", {"at": "x" * 1000})) < 80


def test_times_and_counts_are_in_words() -> None:
    assert (seconds_words(0.04), seconds_words(59.94)) == ("0.0 s", "59.9 s")
    assert seconds_words(125) == "2 min 5 s"
    assert (count_words(1, "message"), count_words(2000, "message")) == (
        "1 message",
        "2,000 messages",
    )
