"""Every recorded answer of the Responses format means here what it means to a decoder that is not
ours: in one piece, and cut anywhere."""

import random
from typing import Any

import msgspec
import pytest

from retinue.models import failures
from tests.wire.receives.responses.decoding import PEER, Decoded, arguments, pieces, stream, whole
from tests.wire.recordings import Recording, recordings

CUTS = 4  # random ways to cut each stream
SHORT = 8000  # bytes; streams up to this length are cut at every tenth place

DISAGREEMENTS = {
    "78f4e74857c1": {"text": "its deltas were shortened; what was shown cannot be taken back"},
}
"""What is read otherwise here, by recording and field, and why."""


def expected_usage(raw: dict[str, Any] | None) -> dict[str, int | None]:
    raw = raw or {}
    before = raw.get("input_tokens_details") or {}
    after = raw.get("output_tokens_details") or {}
    return {
        "input": raw.get("input_tokens"),
        "output": raw.get("output_tokens"),
        "cache_read": before.get("cached_tokens"),
        "cache_write": before.get("cache_write_tokens"),
        "reasoning": after.get("reasoning_tokens"),
    }


def expected_finish(expect: dict[str, Any]) -> str:
    """The status in our words: an answer that asks for tools ends for them."""
    if expect["finish"] in ("completed", "complete"):
        return "tool_calls" if expect["tool_calls"] else "stop"
    cut_off = expect.get("incomplete") == {"reason": "max_output_tokens"}
    return "length" if cut_off else expect["finish"]


def differences(recording: Recording, got: Decoded) -> dict[str, tuple[Any, Any]]:
    """What differs from `expect`, by field: what is expected, what came."""
    expect, message = recording.expect, got.message
    usage = message.usage
    calls = [
        {"id": call.id, "name": call.name, "arguments": arguments(call.arguments)}
        for call in message.tool_calls
    ]
    wanted_usage = expected_usage(expect["usage"])
    pairs = {
        "text": (expect["text"], message.text),
        "thinking": (expect["thinking"] or "", message.thinking),
        "tool_calls": (expect["tool_calls"], calls),
        "finish": (expected_finish(expect), message.finish),
        "error": (bool(expect["error"]), got.error is not None),
        "refusal": (expect.get("refusal"), got.meta.get("refusal")),
        "tools of the provider": (
            [tool["name"] for tool in expect.get("server_tools", ())],
            [item.get("name") or item["type"] for item in got.meta.get("executed_tools", ())],
        ),
        "usage": (wanted_usage, {name: getattr(usage, name, None) for name in wanted_usage}),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def check(recording: Recording, got: Decoded) -> None:
    """Fails for a difference that is not on the list, and for one on the list that is none."""
    found = differences(recording, got)
    excused = DISAGREEMENTS.get(recording.id, {})
    assert found.keys() == excused.keys(), (recording.id, recording.source, found)


def answers(*, streamed: bool) -> list[Recording]:
    found = [r for r in recordings("responses") if r.status == 200 and r.stream is streamed]
    assert len(found) > 80
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
def test_short_recorded_streams_mean_the_same_byte_by_byte() -> None:
    short = [r for r in answers(streamed=True) if len(r.bytes) <= SHORT]
    assert len(short) >= 10
    for recording in short:
        body = recording.bytes
        check(recording, stream([body[n : n + 1] for n in range(len(body))]))
        for cut in range(1, len(body), 10):
            check(recording, stream(pieces(body, [cut])))


@pytest.mark.rule("R-STREAM-7")
def test_a_stream_keeps_the_same_items_as_the_whole_answer_at_its_end() -> None:
    """What must go back is the same, whether it came in pieces or at once.

    Not to the letter: the vendor encrypts the same reasoning twice.
    """
    compared = 0
    for recording in answers(streamed=True):
        data = [line for line in recording.body.split("\n") if line.startswith("data: {")]
        last = msgspec.json.decode(data[-1][6:])
        if last["type"] == "response.completed" and recording.id not in DISAGREEMENTS:
            at_once = whole(last["response"])
            assert outline(stream([recording.bytes])) == outline(at_once), recording.id
            compared += 1
    assert compared > 80


def outline(got: Decoded) -> list[Any]:
    """The types of what is kept, whether it is encrypted, and the phases of what comes after."""
    found: list[Any] = []
    for opaque in (getattr(part, "opaque", None) for part in got.message.parts):
        kept = {} if opaque is None else msgspec.json.decode(opaque)
        items = [(i["type"], bool(i.get("encrypted_content"))) for i in kept.get("output", ())]
        late = [(i["type"], bool(i.get("encrypted_content"))) for i in kept.get("late", ())]
        found = [*late, *found, *items]
        if phase := kept.get("following", {}).get("phase"):
            found.append(phase)
    return found


@pytest.mark.rule("R-FAIL-3")
def test_every_recorded_refusal_keeps_the_words_of_the_provider() -> None:
    refused = [r for r in recordings("responses") if r.status != 200]
    assert len(refused) == 10
    for recording in refused:
        error = failures.of_status(PEER, recording.status, {}, recording.bytes)
        value = recording.expect["error"]
        words = value if isinstance(value, str) else value["message"]
        assert " ".join(words.split())[:200] in str(error), recording.source
        assert error.status == recording.status
        assert not error.retryable
