"""What only the recordings of the Gemini format have."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from retinue.models import failures
from retinue.models.capabilities import Limits
from retinue.models.gemini.abilities import UNKNOWN_OLD
from retinue.models.gemini.messages import MessageEncoder
from tests.wire.receives.gemini.recorded import GEMINI, is_row
from tests.wire.recordings import Recording, recordings


def test_streams_that_come_as_one_list_are_among_the_whole_answers() -> None:
    assert sum(map(is_row, GEMINI.whole())) >= 4


@pytest.mark.behaviour("B-US-1")
def test_the_counts_of_every_recording_add_up_to_its_total() -> None:
    counted = 0
    for recording in recordings("gemini"):
        total = (recording.expect["usage"] or {}).get("totalTokenCount")
        if total is not None:
            usage = GEMINI.decoded(recording).message.usage
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
        message = GEMINI.decoded(recording).message
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
    if GEMINI.in_pieces(recording):
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


def test_a_key_that_is_none_is_told_as_one_though_the_status_says_otherwise() -> None:
    (recording,) = [r for r in recordings("gemini") if r.id == "6a4bf1dfc2b9"]
    error = failures.of_status(GEMINI.decoding.peer, recording.status, {}, recording.bytes)
    assert "refused the key (HTTP 400): API key not valid" in str(error)
    assert str(error).endswith("Check GEMINI_API_KEY.")
    assert error.failure == "environment"
