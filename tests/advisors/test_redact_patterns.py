"""What is found by name, what is not, and patterns of your own."""

from collections.abc import Iterator
from time import process_time

import pytest

from retinue import ConfigError
from retinue.advisors import Redact
from retinue.advisors.redact import own as own_patterns
from retinue.advisors.redact.own import Find, own
from retinue.advisors.redact.patterns import KNOWN
from retinue.advisors.redact.scanner import redacted
from retinue.errors import MissingExtraError


def found(text: str, *names: str) -> str:
    return redacted(text, [KNOWN[name] for name in names], lambda name, value: f"[{name}]")


def found_by(text: str, pattern: str | Find, longest: int = 100) -> str:
    return redacted(text, own({"x": pattern}, longest), lambda name, value: "[x]")


@pytest.mark.parametrize(
    "text",
    [
        "ann@example.org", "o.brien+news@mail.example.co.uk", "müller@müller.de", "x@y.museum",
        "a_b%c@xn--bcher-kva.example", "иван@пример.рф", "ann@example.xn--p1ai",
    ],
)  # fmt: skip
def test_an_email_address_is_found(text: str) -> None:
    assert found(f"联系{text}谢谢", "email") == "联系[email]谢谢"
    assert found(f"To {text}. <{text}>, ({text})", "email") == "To [email]. <[email]>, ([email])"


@pytest.mark.parametrize("text", ["@ann", "ann@", "a@b", "5 @ 3.50", "x@1.2", "ann at example.org"])
def test_what_is_no_email_address_stays(text: str) -> None:
    assert found(text, "email") == text


@pytest.mark.parametrize(
    "text",
    [
        "+49 30 1234567", "+49 (0)30 1234567", "0049 30 1234567", "+14155552671", "+1 415-555-2671",
        "(415) 555-2671", "415-555-2671", "415.555.2671", "1-415-555-2671", "030 1234567",
        "(0171) 123-4567", "0171/1234567", "01 23 45 67 89", "+86 138 0013 8000",
    ],
)  # fmt: skip
def test_a_phone_number_is_found(text: str) -> None:
    assert found(f"Call {text}, or not.", "phone") == "Call [phone], or not."


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30 17:49", "01.02.2026 10:30", "192.168.100.100", "1 000 000 000", "3.14159265358",
        "20261130123", "order 4155552671", "ISBN 978-3-16-148410-0", "pages 100-200", "+ 5 000",
    ],
)  # fmt: skip
def test_what_is_no_phone_number_stays(text: str) -> None:
    assert found(text, "phone") == text


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "3782 822463 10005",
        "378282246310005", "6304000000000000",
    ],
)  # fmt: skip
def test_a_card_number_is_found_by_its_sum(text: str) -> None:
    assert found(f"card {text}!", "card") == "card [card]!"
    wrong = text[:-1] + str((int(text[-1]) + 1) % 10)
    assert found(f"card {wrong}!", "card") == f"card {wrong}!"


def test_the_code_behind_a_card_number_does_not_hide_it() -> None:
    assert found("12 4111 1111 1111 1111 123", "card") == "12 [card] 123"


@pytest.mark.parametrize(
    "text",
    ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "GB82 WEST 1234 5698 7654 32",
     "NO93-8601-1117-947", "de89370400440532013000", "MT84MALT011000012345MTLCAST001S"],
)  # fmt: skip
def test_an_iban_is_found_by_its_sum_and_length(text: str) -> None:
    assert found(f"to {text} BIC COBADEFF", "iban") == "to [iban] BIC COBADEFF"
    wrong = text[:2] + str((int(text[2]) + 1) % 10) + text[3:]
    assert found(f"to {wrong}.", "iban") == f"to {wrong}."
    assert found(f"to {text}9.", "iban") == f"to {text}9."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sk-proj-abc_DEF123456 there", "[keys] there"),
        ("密钥sk-abcdefgh12345678谢谢", "密钥[keys]谢谢"),
        ("AKIAABCDEFGHIJKLMNOP.", "[keys]."),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.SflKxwRJ", "[keys]"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [keys]"),
        ("curl -H 'bearer 0a1b2c3d4e'", "curl -H 'bearer [keys]'"),
        ('{"password": "hunter22", "user": "ann"}', '{"password": "[keys]", "user": "ann"}'),
        ("OPENAI_API_KEY=abcd1234 next", "OPENAI_API_KEY=[keys] next"),
        ("postgres://ann:hunter22@db/x", "postgres://ann:[keys]@db/x"),
        (
            "key: -----BEGIN RSA PRIVATE KEY-----\nMIIE+a/b=\n-----END RSA PRIVATE KEY-----.",
            "key: [keys].",
        ),
        ("private_key: -----BEGIN PRIVATE KEY-----\nMIIE cut off", "private_key: [keys]"),
    ],
)
def test_keys_and_passwords_are_found(text: str, shown: str) -> None:
    assert found(text, "keys") == shown


@pytest.mark.parametrize(
    "text",
    ["max_tokens=4000", "the secret of success", "Read the basic rules first", "a task-force",
     "bearer of bad news", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"],
)  # fmt: skip
def test_what_is_no_key_stays(text: str) -> None:
    assert found(text, "keys") == text


@pytest.mark.parametrize("text", ["192.168.0.1", "2001:db8::8a2e:370:7334", "fe80::1", "::1"])
def test_an_ip_address_is_found_if_asked_for(text: str) -> None:
    assert found(f"at {text}.", "ip") == "at [ip]."


@pytest.mark.parametrize("text", ["1.2.3.4.5", "999.1.1.1", "10:30:00", "std::vector", "v 1.2.3"])
def test_what_is_no_ip_address_stays(text: str) -> None:
    assert found(text, "ip") == text


def test_what_begins_first_counts_and_then_what_is_longer() -> None:
    assert found("sk-abcdefgh1@example.org", "keys", "email") == "[email]"
    assert found("password: ann@example.org", "email", "keys") == "password: [email]"


# -- patterns of your own ----------------------------------------------------------------------


def test_an_expression_of_your_own_is_found_word_by_word() -> None:
    assert found_by("EMP-123456, XEMP-123456", r"\bEMP-\d{6}\b") == "[x], XEMP-123456"
    assert found_by("Straße, STRASSE", r"(?i)stra(ss|ß)e") == "[x], [x]"


def test_a_match_that_is_longer_than_allowed_is_taken_in_pieces() -> None:
    assert found_by("a" + "1" * 25 + "b", r"\d+", longest=10) == "a[x][x][x]b"


def names(line: str) -> Iterator[tuple[int, int]]:
    at = line.find("Bob")
    if at >= 0:
        yield at, at + 3


def test_a_function_of_your_own_is_shown_one_line_at_a_time() -> None:
    lines: list[str] = []

    def find(line: str) -> Iterator[tuple[int, int]]:
        lines.append(line)
        return names(line)

    assert found_by("Bob met\nAnn and Bob\n", find) == "[x] met\nAnn and [x]\n"
    assert lines == ["Bob met\n", "Ann and Bob\n"]
    assert found_by("x" * 1_999 + "\n" + "y" * 4_500 + "Bob", find).endswith("y[x]")
    assert [len(line) for line in lines[2:]] == [2_000, 2_000, 2_000, 503]


def test_a_function_that_gives_no_place_in_its_line_is_named() -> None:
    with pytest.raises(ConfigError, match=r"pattern 'x' gave \(0, 9\) for a line of 2"):
        found_by("hi", lambda line: [(0, 9)])


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*a){12}", "(?:a?){50}a{50}b"])
def test_an_expression_that_would_blow_up_elsewhere_takes_bounded_time(pattern: str) -> None:
    # A backtracking engine would not come back from these within the age of the universe.
    assert found_by("a" * 10_000 + "!", pattern, longest=200).endswith("!")


@pytest.mark.parametrize("name", list(KNOWN))
@pytest.mark.parametrize(
    "piece",
    ["a", "1", "token_", "eyJ-", "a@", "4111 ", "DE89 ", "+1 ", "://:", "::1 ", "password ",
     "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "a.", "bearer 1"],
)  # fmt: skip
def test_no_text_makes_a_known_pattern_take_its_square(name: str, piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = process_time()
    found(text, name)
    assert process_time() - began < 5, "a tenth of it is usual; the square would be minutes"


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ({"emp": r"(?<=x)\d+"}, "look-around"),
        ({"emp": "a*"}, "fits the empty text"),
        ({"emp": 3}, "is int"),
        ({"": "a"}, "cannot name a pattern"),
        ({"two words": "a"}, "cannot name a pattern"),
        ({"email": "a"}, "two patterns are called 'email'"),
        ("e-mail", "'e-mail' is no pattern; the known ones are email, phone"),
        (3, "3 is no pattern"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused_with_the_way_out(pattern: object, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        Redact("email", pattern)  # pyright: ignore[reportArgumentType]


def test_an_async_function_is_refused() -> None:
    async def find(line: str) -> list[tuple[int, int]]:
        return []

    with pytest.raises(ConfigError, match="is an async function"):
        Redact({"name": find})  # pyright: ignore[reportArgumentType]


def test_a_mark_that_would_be_redacted_is_refused() -> None:
    with pytest.raises(ConfigError, match="would be redacted in its turn"):
        Redact(mark="hidden@example.org")
    with pytest.raises(ConfigError, match="would be redacted in its turn"):
        Redact({"word": r"\w{3,}"})


def test_without_re2_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_patterns, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[re2\]'"):
        Redact({"emp": "EMP"})
    Redact("email", {"name": names})  # needs none


@pytest.mark.parametrize("longest", [0, 1_001])
def test_a_length_that_is_none_is_refused(longest: int) -> None:
    with pytest.raises(ConfigError, match="give 1 to 1,000"):
        Redact(longest=longest)
