"""Every recorded answer of the Chat Completions format means here what it means to a decoder that
is not ours: in one piece, and cut anywhere."""

import random
from typing import Any

import pytest

from retinue.models import failures
from retinue.models.openai.decode import FINISH
from tests.wire.receives.openai.decoding import PEER, Decoded, arguments, pieces, stream, whole
from tests.wire.recordings import Recording, recordings

CUTS = 4  # random ways to cut each stream
SHORT = 2500  # bytes; streams up to this length are cut at every place

DISAGREEMENTS = {
    "a3f82b8b7e16": {"finish": "an error comes after it, and ends the answer instead"},
    "4a7088f0d04d": {"usage": "a prompt of no tokens is one that nobody counted"},
}
"""What is read otherwise here, by recording and field, and why."""


def expected_usage(raw: dict[str, Any] | None) -> dict[str, int | None]:
    """The counts that every provider gives under one name, and the two whose names differ."""
    if not raw:
        return {"input": None, "output": None, "cache_read": None, "reasoning": None}
    before = raw.get("prompt_tokens_details") or {}
    after = raw.get("completion_tokens_details") or {}
    output, reasoning = raw["completion_tokens"], after.get("reasoning_tokens")
    if reasoning and raw["total_tokens"] == raw["prompt_tokens"] + output + reasoning:
        output += reasoning
    cached = [
        before.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),
        raw.get("cached_tokens"),
        raw.get("num_cached_tokens"),
    ]
    return {
        "input": raw["prompt_tokens"],
        "output": output,
        "cache_read": next((count for count in cached if count is not None), None),
        "reasoning": reasoning,
    }


def differences(recording: Recording, got: Decoded) -> dict[str, tuple[Any, Any]]:
    """What differs from `expect`, by field: what is expected, what came."""
    expect, message = recording.expect, got.message
    usage = message.usage
    finish = expect["finish"]
    calls = [
        # An id that the provider did not give is made here.
        {"id": want["id"] and call.id, "name": call.name, "arguments": arguments(call.arguments)}
        for call, want in zip(message.tool_calls, expect["tool_calls"], strict=False)
    ]
    # No arguments, written as nothing at all, are an empty object here.
    wanted_calls = [{**c, "arguments": c["arguments"] or {}} for c in expect["tool_calls"]]
    pairs = {
        "text": (expect["text"], message.text),
        "thinking": (expect["thinking"] or "", message.thinking),
        "tool_calls": (wanted_calls, calls),
        "number of calls": (len(wanted_calls), len(message.tool_calls)),
        "finish": (FINISH.get(finish, finish), message.finish),
        "error": (bool(expect["error"]), got.error is not None),
        "refusal": (expect.get("refusal"), got.meta.get("refusal")),
        "usage": (
            expected_usage(expect["usage"]),
            {
                name: getattr(usage, name, None)
                for name in ("input", "output", "cache_read", "reasoning")
            },
        ),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def check(recording: Recording, got: Decoded) -> None:
    """Fails for a difference that is not on the list, and for one on the list that is none."""
    found = differences(recording, got)
    excused = DISAGREEMENTS.get(recording.id, {})
    assert found.keys() == excused.keys(), (recording.source, found)


def answers(*, streamed: bool) -> list[Recording]:
    return [r for r in recordings("chat_completions") if r.status == 200 and r.stream is streamed]


def test_every_recorded_whole_answer_means_what_it_should() -> None:
    for recording in answers(streamed=False):
        check(recording, whole(recording.bytes))


@pytest.mark.behaviour("B-US-1", "B-TH-1")
def test_every_recorded_stream_means_what_it_should() -> None:
    for recording in answers(streamed=True):
        check(recording, stream([recording.bytes]))


@pytest.mark.behaviour("B-ST-11")
def test_recorded_streams_mean_the_same_however_they_are_cut() -> None:
    chance = random.Random(20)
    for recording in answers(streamed=True):
        body = recording.bytes
        for _ in range(CUTS):
            cuts = [chance.randrange(len(body)) for _ in range(chance.randrange(1, 60))]
            check(recording, stream(pieces(body, cuts)))


@pytest.mark.behaviour("B-ST-11")
def test_short_recorded_streams_mean_the_same_cut_at_every_byte() -> None:
    short = [r for r in answers(streamed=True) if len(r.bytes) <= SHORT]
    assert len(short) >= 10
    for recording in short:
        body = recording.bytes
        check(recording, stream([body[n : n + 1] for n in range(len(body))]))
        for cut in range(1, len(body)):
            check(recording, stream(pieces(body, [cut])))


@pytest.mark.rule("R-FAIL-3")
def test_every_recorded_refusal_keeps_the_words_of_the_provider() -> None:
    refused = [r for r in recordings("chat_completions") if r.status != 200]
    assert len(refused) > 20
    for recording in refused:
        error = failures.of_status(PEER, recording.status, {}, recording.bytes)
        value = recording.expect["error"]
        words = value if isinstance(value, str) else value.get("message") or value.get("detail")
        assert " ".join(words.split())[:200] in str(error), recording.source
        assert error.status == recording.status
        assert error.retryable is (recording.status == 429)


def test_errors_within_answers_keep_the_words_of_the_provider() -> None:
    failed = [r for r in recordings("chat_completions") if r.status == 200 and r.expect["error"]]
    assert {r.id for r in failed} >= {
        "53b44413fbf6",
        "a3f82b8b7e16",
        "4ae0bc4ca124",
        "22b0e7d47f0e",
    }
    for recording in failed:
        got = stream([recording.bytes]) if recording.stream else whole(recording.bytes)
        words = recording.expect["error"]["message"]
        assert " ".join(words.split())[:200] in str(got.error)
