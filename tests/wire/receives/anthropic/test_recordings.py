"""Every recorded answer of the Messages format means here what it means to a decoder that is not
ours: in one piece, and cut anywhere."""

import random
from typing import Any

import pytest

from retinue.messages import Thinking
from retinue.models import failures
from retinue.models.anthropic.decode import FINISH
from tests.wire.receives.anthropic.decoding import PEER, Decoded, arguments, pieces, stream, whole
from tests.wire.recordings import Recording, recordings

CUTS = 4  # random ways to cut each stream
SHORT = 3000  # bytes; streams up to this length are cut at every place

UNCOUNTED = "a prompt of no tokens is one that nobody counted"
DISAGREEMENTS = {"1f29b9a07dc4": {"usage": UNCOUNTED}, "296d69c86f1b": {"usage": UNCOUNTED}}
"""What is read otherwise here, by recording and field, and why."""


def expected_usage(expect: dict[str, Any]) -> dict[str, int | None]:
    """The counts, from what the vendor counts apart."""
    raw = expect.get("usage_merged") or expect["usage"] or {}
    fresh = raw.get("input_tokens")
    read = raw.get("cache_read_input_tokens")
    written = raw.get("cache_creation_input_tokens")
    return {
        "input": None if fresh is None else fresh + (read or 0) + (written or 0),
        "output": raw.get("output_tokens"),
        "cache_read": read,
        "cache_write": written,
        "reasoning": (raw.get("output_tokens_details") or {}).get("thinking_tokens"),
    }


def server_tools(got: Decoded) -> list[dict[str, Any]]:
    """The calls that the provider ran itself."""
    return [
        {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        for block in got.kept
        if block["type"] in ("server_tool_use", "mcp_tool_use")
    ]


def differences(recording: Recording, got: Decoded) -> dict[str, tuple[Any, Any]]:
    """What differs from `expect`, by field: what is expected, what came."""
    expect, message = recording.expect, got.message
    finish = expect["finish"]
    pairs = {
        "text": (expect["text"], message.text),
        "thinking": (expect["thinking"] or "", message.thinking),
        "tool_calls": (
            expect["tool_calls"],
            [
                {"id": call.id, "name": call.name, "arguments": arguments(call.arguments)}
                for call in message.tool_calls
            ],
        ),
        "finish": (FINISH.get(finish, finish), message.finish),
        "error": (bool(expect["error"]), got.error is not None),
        "server_tools": (expect.get("server_tools", []), server_tools(got)),
        "usage": (
            expected_usage(expect),
            {
                name: getattr(message.usage, name, None)
                for name in ("input", "output", "cache_read", "cache_write", "reasoning")
            },
        ),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def check(recording: Recording, got: Decoded) -> None:
    """Fails for a difference that is not on the list, and for one on the list that is none."""
    found = differences(recording, got)
    excused = DISAGREEMENTS.get(recording.id, {})
    assert found.keys() == excused.keys(), (recording.id, recording.source, found)


def answers(*, streamed: bool) -> list[Recording]:
    found = [r for r in recordings("anthropic") if r.status == 200 and r.stream is streamed]
    assert len(found) > 100
    return found


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


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-2")
def test_every_signature_and_every_hidden_thought_is_kept() -> None:
    signed = hidden = 0
    for recording in recordings("anthropic"):
        if recording.status != 200:
            continue
        body = recording.bytes
        got = stream([body]) if recording.stream else whole(body)
        wanted = _signatures(recording)
        thoughts = [part for part in got.message.parts if isinstance(part, Thinking)]
        found = [thought.signature for thought in thoughts if thought.signature]
        assert found == wanted, recording.source
        signed += len(found)
        hidden += sum(block["type"] == "redacted_thinking" for block in got.kept)
    assert signed > 30
    assert hidden >= 2


def _signatures(recording: Recording) -> list[str]:
    """The signatures that stand in the body, one for each block of thinking."""
    if not recording.stream:
        return [b["signature"] for b in recording.body["content"] if b.get("signature")]
    found: list[str] = []
    for line in recording.body.split("\n"):
        data = arguments(line.removeprefix("data:").strip())
        if isinstance(data, dict) and (data.get("delta") or {}).get("type") == "signature_delta":
            found.append(data["delta"]["signature"])
    return found


@pytest.mark.rule("R-FAIL-3")
def test_every_recorded_refusal_keeps_the_words_of_the_provider() -> None:
    refused = [r for r in recordings("anthropic") if r.status != 200]
    assert len(refused) >= 10
    for recording in refused:
        error = failures.of_status(PEER, recording.status, {}, recording.bytes)
        assert recording.expect["error"]["message"] in str(error), recording.source
        assert error.status == recording.status
        assert error.retryable is False
