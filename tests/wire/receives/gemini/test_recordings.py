"""Every recorded answer of the Gemini format means here what it means to a decoder that is not
ours: in one piece, and cut anywhere."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from retinue.models import failures
from retinue.models.capabilities import Limits
from retinue.models.gemini.abilities import UNKNOWN_OLD
from retinue.models.gemini.decode import FINISH
from retinue.models.gemini.messages import MessageEncoder
from tests.wire.receives.gemini.decoding import PEER, Decoded, pieces, stream, whole
from tests.wire.recordings import Recording, recordings

CUTS = 6  # random ways to cut each stream
SHORT = 3000  # bytes; streams up to this length are cut at every place

DISAGREEMENTS: dict[str, dict[str, str]] = {}
"""What is read otherwise here, by recording and field, and why: nothing."""


def is_row(recording: Recording) -> bool:
    """Whether the stream came as a JSON list: it is read as a whole answer."""
    return "json_array_stream" in recording.features


def decoded(recording: Recording) -> Decoded:
    if recording.stream and not is_row(recording):
        return stream([recording.bytes])
    return whole(recording.bytes)


def expected_usage(raw: dict[str, Any] | None) -> dict[str, int | None]:
    """The counts, from the four that the vendor counts apart."""
    raw = raw or {}

    def both(one: str, other: str) -> int | None:
        found = [raw[name] for name in (one, other) if name in raw]
        return sum(found) if found else None

    return {
        "input": both("promptTokenCount", "toolUsePromptTokenCount"),
        "output": both("candidatesTokenCount", "thoughtsTokenCount"),
        "cache_read": raw.get("cachedContentTokenCount"),
        "cache_write": None,
        "reasoning": raw.get("thoughtsTokenCount"),
    }


def expected_finish(expect: dict[str, Any]) -> str:
    """The finish reason in our words: an answer that asks for tools ends for them."""
    word = str(expect["finish"])
    finish = FINISH.get(word, word)
    return "tool_calls" if finish == "stop" and expect["tool_calls"] else finish


def server_tools(got: Decoded) -> list[dict[str, Any]]:
    """The calls that the vendor ran itself."""
    found: list[dict[str, Any]] = []
    for tool in got.meta.get("executed_tools", ()):
        if code := tool.get("executableCode"):
            found.append({"id": code.get("id"), "name": "code_execution", "arguments": code})
        else:
            call = tool["toolCall"]
            found.append(
                {"id": call["id"], "name": call["toolType"], "arguments": call.get("args")}
            )
    return found


def differences(recording: Recording, got: Decoded) -> dict[str, tuple[Any, Any]]:
    """What differs from `expect`, by field: what is expected, what came."""
    expect, message = recording.expect, got.message
    wanted_usage = expected_usage(expect["usage"])
    pairs = {
        "text": (expect["text"], message.text),
        "thinking": (expect["thinking"] or "", message.thinking),
        "tool_calls": (
            [(call["name"], call["arguments"] or {}) for call in expect["tool_calls"]],
            [(call.name, msgspec.json.decode(call.arguments)) for call in message.tool_calls],
        ),
        "ids": (
            [call["id"] for call in expect["tool_calls"]],
            ids(expect["tool_calls"], [call.id for call in message.tool_calls]),
        ),
        "finish": (expected_finish(expect), message.finish),
        "error": (bool(expect["error"]), got.error is not None),
        "server_tools": (expect.get("server_tools", []), server_tools(got)),
        "images": (expect.get("images", 0), images(got)),
        "usage": (
            wanted_usage,
            {name: getattr(message.usage, name, None) for name in wanted_usage},
        ),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def ids(wanted: list[dict[str, Any]], got: list[str]) -> list[str | None]:
    """The ids that came; None for one of ours in the place of none."""
    assert len(set(got)) == len(got)
    ours = [call["id"] is None and call_id.startswith("call_")
            for call, call_id in zip(wanted, got, strict=True)]  # fmt: skip
    return [None if mine else call_id for mine, call_id in zip(ours, got, strict=True)]


def images(got: Decoded) -> int:
    kinds = [data["mimeType"] for data in got.meta.get("inline_data", ())]
    return sum(kind.startswith("image/") for kind in kinds)


def check(recording: Recording, got: Decoded) -> None:
    """Fails for a difference that is not on the list, and for one on the list that is none."""
    found = differences(recording, got)
    excused = DISAGREEMENTS.get(recording.id, {})
    assert found.keys() == excused.keys(), (recording.id, recording.source, found)


def answers(*, streamed: bool) -> list[Recording]:
    found = [r for r in recordings("gemini") if r.status == 200 and r.stream is streamed]
    assert len(found) > 40
    return found


def streams() -> list[Recording]:
    return [recording for recording in answers(streamed=True) if not is_row(recording)]


def test_every_recorded_whole_answer_means_what_it_should() -> None:
    for recording in answers(streamed=False):
        check(recording, decoded(recording))


@pytest.mark.behaviour("B-US-1", "B-TH-1")
def test_every_recorded_stream_means_what_it_should() -> None:
    rows = 0
    for recording in answers(streamed=True):
        check(recording, decoded(recording))
        rows += is_row(recording)
    assert rows >= 4


@pytest.mark.behaviour("B-ST-11")
def test_recorded_streams_mean_the_same_however_they_are_cut() -> None:
    chance = random.Random(20)
    for recording in streams():
        body = recording.bytes
        for _ in range(CUTS):
            cuts = [chance.randrange(len(body)) for _ in range(chance.randrange(1, 60))]
            check(recording, stream(pieces(body, cuts)))


@pytest.mark.behaviour("B-ST-11")
def test_short_recorded_streams_mean_the_same_cut_at_every_byte() -> None:
    short = [r for r in streams() if len(r.bytes) <= SHORT]
    assert len(short) >= 10
    for recording in short:
        body = recording.bytes
        check(recording, stream([body[n : n + 1] for n in range(len(body))]))
        for cut in range(1, len(body), 3):
            check(recording, stream(pieces(body, [cut])))


@pytest.mark.behaviour("B-US-1")
def test_the_counts_of_every_recording_add_up_to_its_total() -> None:
    counted = 0
    for recording in recordings("gemini"):
        total = (recording.expect["usage"] or {}).get("totalTokenCount")
        if total is not None:
            usage = decoded(recording).message.usage
            assert usage is not None
            assert usage.total == total, recording.source
            counted += 1
    assert counted > 100


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-2")
def test_every_recorded_part_goes_back_as_it_came() -> None:
    """Texts that follow each other are one, and empty ones without a signature are gone."""
    encoder = MessageEncoder(UNKNOWN_OLD, Limits("some-model", UNKNOWN_OLD))
    signed = kept = 0
    for recording in recordings("gemini"):
        if recording.status != 200 or "partial_args" in recording.features:
            continue
        wanted = joined(parts_of(recording))
        message = decoded(recording).message
        got = [msgspec.json.decode(part) for part in encoder.encode(message).parts]
        for part in [*got, *wanted]:
            without_id(part)
        assert got == wanted, recording.source
        signed += sum("thoughtSignature" in part for part in got)
        kept += sum(not part.keys() & {"text", "functionCall"} for part in got)
    assert signed > 60
    assert kept > 15


def without_id(part: dict[str, Any]) -> None:
    """Ids are compared elsewhere; the vendor leaves out arguments that are none."""
    if call := part.get("functionCall"):
        call.pop("id", None)
        call.setdefault("args", {})


def parts_of(recording: Recording) -> Iterator[dict[str, Any]]:
    body = recording.body
    if recording.stream and not is_row(recording):
        data = [line[5:] for line in body.split("\n") if line.startswith("data:")]
        answers = [msgspec.json.decode(one) for one in data]
    else:
        body = msgspec.json.decode(recording.bytes)
        answers = body if isinstance(body, list) else [body]
    for one in answers:
        for candidate in one.get("candidates", ()):
            yield from (candidate.get("content") or {}).get("parts", ())


def joined(parts: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for part in parts:
        if part == {"text": ""}:
            continue
        before = found[-1] if found else {}
        alike = before.keys() == part.keys() and part.keys() <= {"text", "thought"}
        if alike and "text" in part:
            found[-1] = {**part, "text": before["text"] + part["text"]}
        else:
            found.append(part)
    return found


@pytest.mark.rule("R-FAIL-3")
def test_every_recorded_refusal_keeps_the_words_of_the_provider() -> None:
    refused = [r for r in recordings("gemini") if r.status != 200]
    assert len(refused) == 8
    for recording in refused:
        error = failures.of_status(PEER, recording.status, {}, recording.bytes)
        assert recording.expect["error"]["message"] in str(error), recording.source
        assert error.status == recording.status
        assert error.retryable is (recording.status == 429)


def test_a_key_that_is_none_is_told_as_one_though_the_status_says_otherwise() -> None:
    (recording,) = [r for r in recordings("gemini") if r.id == "6a4bf1dfc2b9"]
    error = failures.of_status(PEER, recording.status, {}, recording.bytes)
    assert "refused the key (HTTP 400): API key not valid" in str(error)
    assert str(error).endswith("Check GEMINI_API_KEY.")
    assert error.failure == "environment"
