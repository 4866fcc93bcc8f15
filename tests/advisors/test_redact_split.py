"""However a text is split, it is redacted alike, and what is held back is bounded."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retinue.advisors import Redact
from retinue.advisors.redact.own import own
from retinue.advisors.redact.patterns import KNOWN, Pattern
from retinue.advisors.redact.scanner import Scanner, redacted
from retinue.advisors.redact.tokens import LOOKALIKE, Restorer, Vault
from retinue.messages import Delta, TextDelta, ThinkingDelta
from tests.advisors.holding import cuts, passed, shown, split


def bobs(line: str) -> Iterator[tuple[int, int]]:
    return ((at, at + 3) for at in range(len(line)) if line.startswith("Bob", at))


PATTERNS: Sequence[Pattern] = [
    *KNOWN.values(),
    *own({"emp": r"\bEMP-\d{3,8}\b", "many": r"(?i)x+y|\d+z", "name": bobs}, 12),
    LOOKALIKE,
]
_PIECES = [
    "ann@example.org", "ann", "@", "example.", ".org", " ", "\n", "x", "xy", "Bob", "中文", "é",
    ".", "4111 1111 1111 1111", "4111111111111111", "123", "22", "1", "00", "+49 30 1234567", "+",
    "(415) 555-2671", "030 1234567", "DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "BIC",
    "sk-abcdefgh12345", "Bearer abc12345xyz", "password: hunter22", "api_key=", "token", "secret_x",
    ": ", "bearer ", "basic ", "'", '"', "://ann:pw@", "postgres", "eyJhbGciOiJI.eyJzdWIiOiIx.Sfl",
    "-----BEGIN ", "RSA PRIVATE KEY-----", "\nMIIabc=\n", "-----END RSA PRIVATE KEY-----", "-",
    "--", "192.168.0.1", "fe80::1", "EMP-123456", "EMP-12", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "<",
    ">", "<EMAIL_1>", "<TEXT_", "5z",
]  # fmt: skip
texts = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)


def marked(name: str, value: str) -> str:
    return f"[{name}:{len(value)}]"


@pytest.mark.rule("R-STREAM-2")
@given(texts, cuts, st.sets(st.sampled_from(PATTERNS), min_size=1))
@settings(max_examples=1_000)
@example("ann@example.org", [5, 12], {PATTERNS[0]})
@example("Bob met\nAnn, not\nBob", [9, 17], {PATTERNS[-2]})
@example("-----BEGIN RSA PRIVATE KEY-----\nMII=", [3, 12, 20, 33], {KNOWN["keys"]})
def test_every_split_of_a_text_is_redacted_as_the_whole(
    text: str, at: list[int], chosen: set[Pattern]
) -> None:
    patterns = sorted(chosen, key=lambda pattern: pattern.name)
    scanner = Scanner(patterns, marked)
    pieces = [scanner.feed(piece) for piece in split(text, at)]
    assert "".join([*pieces, scanner.flush()]) == redacted(text, patterns, marked)


@pytest.mark.rule("R-STREAM-2")
@given(texts)
@settings(max_examples=300)
def test_a_text_that_comes_character_by_character_is_redacted_as_the_whole(text: str) -> None:
    scanner = Scanner(PATTERNS, marked)
    pieces = [scanner.feed(piece) for piece in text]
    assert "".join([*pieces, scanner.flush()]) == redacted(text, PATTERNS, marked)


@pytest.mark.rule("R-STREAM-2")
@given(texts, cuts)
@settings(max_examples=500)
@example("a <EMAIL_1> b", [3, 6])
def test_every_split_of_an_answer_has_the_same_values_put_back(text: str, at: list[int]) -> None:
    vault = Vault()
    assert vault.token("email", "ann@example.org") == "<EMAIL_1>"
    restorer = Restorer(vault, in_json=False)
    pieces = [restorer.feed(piece) for piece in split(text, at)]
    assert "".join([*pieces, restorer.flush()]) == vault.restored(text)
    assert vault.restored(text) == text.replace("<EMAIL_1>", "ann@example.org")


@given(texts)
@settings(max_examples=500)
def test_what_is_replaced_by_placeholders_comes_back_exactly(text: str) -> None:
    vault = Vault()
    patterns = [LOOKALIKE, *KNOWN.values()]
    sent = redacted(text, patterns, vault.token)
    assert vault.restored(sent) == text


# -- what is held ------------------------------------------------------------------------------


def held(text: str, *patterns: Pattern) -> str:
    """What is held of a text of which more may come."""
    scanner = Scanner(patterns, marked)
    return text[len(scanner.feed(text)) :]


@pytest.mark.parametrize(
    ("text", "name", "kept"),
    [
        ("Write to ann", "email", "ann"),
        ("Write to ann ", "email", ""),
        ("你好请写信", "email", ""),
        ("Write to ann", "phone", ""),
        ("in 2026 ", "phone", "2026 "),
        ("so be it", "iban", "it"),
        ("so be it now", "iban", ""),
        ("the password: ", "keys", "password: "),
        ("the password is", "keys", "is"),
        ("-----BEGIN RSA PRIVATE", "keys", "-----BEGIN RSA PRIVATE"),
        ("-----BEGIN A NEW LIFE today. ", "keys", ""),
        ("a <b", "text", ""),
        ("a <EMA", "text", "<EMA"),
        ("number EMP-1", "emp", "EMP-1"),
        ("number EX", "emp", ""),
        ("Bob met\nAnn and", "name", "Ann and"),
    ],
)
def test_only_what_could_still_become_a_value_is_held(text: str, name: str, kept: str) -> None:
    (pattern,) = (one for one in PATTERNS if one.name == name)
    assert held(text.replace("Bob", "Ann"), pattern) == kept


@pytest.mark.parametrize("piece", ["a", "1", "a@", "token=", "-----BEGIN PRIVATE KEY-----a", "1 "])
def test_what_is_held_is_bounded_whatever_comes(piece: str) -> None:
    text = piece * (20_000 // len(piece))
    scanner = Scanner(list(KNOWN.values()), lambda name, value: value)
    out = 0
    for at in range(0, len(text), 50):
        out += len(scanner.feed(text[at : at + 50]))
        assert at + 50 - out <= 9_500
    assert out + len(scanner.flush()) == len(text)


# -- the transform -----------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-7")
async def test_text_ends_where_reasoning_begins_and_each_is_looked_through_alone() -> None:
    deltas: list[Delta] = [
        TextDelta("to ann@"), TextDelta("x.org"), ThinkingDelta("bob@"), ThinkingDelta("y.org"),
        ThinkingDelta(signature="proof"), TextDelta("and ann@"), ThinkingDelta("x.org"),
    ]  # fmt: skip
    out, _ = await passed(Redact("email"), deltas)
    assert out == [
        TextDelta("to "), TextDelta("[email]"), ThinkingDelta("[email]", signature="proof"),
        TextDelta("and "), TextDelta("ann@"), ThinkingDelta("x.org"),
    ]  # fmt: skip


async def test_reasoning_may_be_left_as_it_is() -> None:
    out, _ = await passed(Redact("email", thinking=False), [ThinkingDelta("ann@x.org")])
    assert out == [ThinkingDelta("ann@x.org")]


@given(texts, cuts)
@settings(max_examples=100)
async def test_the_transform_shows_what_the_whole_text_would_be(text: str, at: list[int]) -> None:
    advisor = Redact()
    whole, _ = await shown(advisor, [text])
    assert await shown(advisor, split(text, at)) == (whole, None)
