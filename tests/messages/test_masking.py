"""What looks like a key or a password is masked, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.messages.masking import error_words, excerpt, mask


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("my key is sk-proj-abc_DEF123456", "my key is ***"),
        ("ghp_abcdefghijklmnop1234", "***"),
        ("xoxb-1234567890-abc", "***"),
        ("AKIAABCDEFGHIJKLMNOP", "***"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.SflKxwRJ", "***"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic ***"),
        ("x-api-key: abcd1234", "x-api-key: ***"),
        ("OPENAI_API_KEY=abcd1234 next", "OPENAI_API_KEY=*** next"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI", "AWS_SECRET_ACCESS_KEY=***"),
        ('{"password": "hunter22", "user": "ann"}', '{"password": "***", "user": "ann"}'),
        ("client_secret=abcd1234&x=1", "client_secret=***"),
        ("password: Bearer abcdef", "password: Bearer ***"),
        ("postgres://ann:hunter22@db/x", "postgres://ann:***@db/x"),
    ],
)
def test_secrets_are_masked(text: str, shown: str) -> None:
    assert mask(text) == shown


@pytest.mark.parametrize(
    "text",
    ["max_tokens=4000", "the secret of success", "http://host:8080/a@b", "skiing at ten", "a: b",
     "tokens: 12345", "Read the basic rules first"[:9]],
)  # fmt: skip
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert mask(text) == text


@given(st.text(max_size=300), st.integers(1, 40))
def test_an_excerpt_is_the_beginning_and_says_where_it_was_cut(text: str, longest: int) -> None:
    short = excerpt(text, longest, hide=str)
    assert short == (text if len(text) <= longest else text[:longest] + "…")


def test_a_secret_across_the_cut_is_masked_whole() -> None:
    text = "x" * 30 + " token=abcdefghijklmnop and more"
    assert excerpt(text, 44) == "x" * 30 + " token=*** and…"


def test_what_is_far_behind_the_cut_is_not_read() -> None:
    read: list[int] = []

    def hide(text: str) -> str:
        read.append(len(text))
        return text

    for longest in (10, 10_000):
        assert excerpt("x" * 1_000_000, longest, hide) == "x" * longest + "…"
    assert max(read) < 20_000


def test_the_words_of_an_error_are_its_class_and_what_it_says_masked_and_cut() -> None:
    assert error_words(ValueError("token=abcdefgh")) == "ValueError: token=***"
    assert len(error_words(ValueError("x" * 5_000))) == 1_001
