"""What looks like a key or a password is masked, and nothing else."""

import pytest

from retinue.messages.masking import mask


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
