"""Answers of the Responses format that are errors, hold one, or are none."""

import json
from typing import Any

import pytest

from retinue.errors import ModelBroken, ModelOverloaded, ModelRefused, ModelUnreachable
from retinue.messages import Usage
from tests.models.vendor import says
from tests.wire.receives.responses.decoding import (
    CREATED,
    USAGE,
    delta,
    ended,
    response,
    stream,
    streamed,
    whole,
)

ERRORS = [
    ({"code": "rate_limit_exceeded", "message": "slow down"}, ModelOverloaded, 429),
    ({"code": "server_error", "message": "slow down"}, ModelOverloaded, 500),
    ({"code": "vector_store_timeout", "message": "slow down"}, ModelOverloaded, 500),
    ({"code": "invalid_prompt", "message": "slow down"}, ModelRefused, 400),
    ({"code": "image_too_large", "message": "slow down"}, ModelRefused, 400),
    ({"code": "bio_policy", "message": "slow down"}, ModelRefused, 400),
    ({"code": "insufficient_quota", "message": "slow down"}, ModelRefused, 402),
    ({"code": "invalid_api_key", "message": "slow down"}, ModelRefused, 401),
    ({"code": "what_is_this", "message": "slow down"}, ModelBroken, None),
    ("slow down", ModelBroken, None),
]


@pytest.mark.behaviour("B-ST-12")
@pytest.mark.parametrize(("error", "kind", "status"), ERRORS)
@pytest.mark.parametrize("form", ["failed", "event", "nested", "whole"])
def test_an_error_keeps_what_came_before_it_and_the_words_of_the_vendor(
    form: str, error: Any, kind: type[Exception], status: int | None
) -> None:
    last: dict[str, Any] = {"type": "error", "error": error}
    if form == "failed":
        last = ended(says("Hello"), status="failed", error=error, usage=USAGE)
    elif form == "event" and isinstance(error, dict):
        last = {"type": "error", "param": None, **error}
    if form == "whole":
        got = whole(response(says("Hello"), status="failed", error=error, usage=USAGE))
    else:
        got = streamed(CREATED, delta("output_text", "Hello"), last, delta("output_text", "!"))
    assert got.message.text == "Hello"
    assert got.error is not None
    assert type(got.error) is kind
    assert got.error.status == status
    assert "slow down" in str(got.error)
    assert (got.error.failure == "environment") is (status in (401, 402))
    if form in ("failed", "whole"):
        assert got.message.usage == Usage(input=9, output=3)


@pytest.mark.rule("R-FAIL-2")
def test_a_stream_that_stops_half_way_is_broken_and_one_that_never_began_is_worth_a_retry() -> None:
    half = streamed(CREATED, delta("output_text", "Hel"))
    assert type(half.error) is ModelBroken
    assert not half.error.retryable
    none = streamed(CREATED)
    assert type(none.error) is ModelUnreachable
    assert none.error.retryable


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_an_answer_that_failed_without_a_word_is_an_error(status: str) -> None:
    got = whole(response(status=status))
    assert got.error is not None
    assert status in str(got.error)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", b"not json", b'{"output": 3}', b"{", b'"text"']
)
def test_a_whole_answer_that_is_none_is_broken(body: bytes) -> None:
    got = whole(body)
    assert type(got.error) is ModelBroken
    assert "api.example" in str(got.error)


@pytest.mark.parametrize(
    "data", ["not json", "[1]", '{"type": "response.completed"}', '{"type": 3, "item": }']
)
def test_an_event_that_is_none_ends_the_answer_as_broken(data: str) -> None:
    got = streamed(delta("output_text", "Hi"), data, delta("output_text", "!"), ended())
    assert got.message.text == "Hi"
    assert type(got.error) is ModelBroken


def test_an_error_in_a_list_or_with_the_status_of_an_answer_is_read_as_an_error() -> None:
    body = json.dumps([{"error": {"code": 400, "message": "no such field"}}]).encode()
    for got in (whole(body), stream([b"data: " + body + b"\n\n"])):
        assert type(got.error) is ModelRefused
        assert "no such field" in str(got.error)
    plain = whole({"error": {"message": "no such field", "code": "invalid_prompt"}})
    assert type(plain.error) is ModelRefused


@pytest.mark.rule("R-FAIL-3")
def test_a_key_that_the_provider_repeats_is_masked() -> None:
    error = streamed({"type": "error", "message": "bad key sk-secret-secret given"}).error
    assert "sk-secret" not in str(error)
    assert "bad key *** given" in str(error)
