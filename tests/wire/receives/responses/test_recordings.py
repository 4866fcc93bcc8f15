"""What only the recordings of the Responses format have."""

from typing import Any

import msgspec
import pytest

from tests.wire.receives.responses.decoding import Decoded, whole
from tests.wire.receives.responses.recorded import RESPONSES


@pytest.mark.rule("R-STREAM-7")
def test_a_stream_keeps_the_same_items_as_the_whole_answer_at_its_end() -> None:
    """What must go back is the same, whether it came in pieces or at once.

    Not to the letter: the vendor encrypts the same reasoning twice.
    """
    compared = 0
    for recording in RESPONSES.streams():
        data = [line for line in recording.body.split("\n") if line.startswith("data: {")]
        last = msgspec.json.decode(data[-1][6:])
        if last["type"] == "response.completed" and recording.id not in RESPONSES.excused:
            at_once = whole(last["response"])
            assert outline(RESPONSES.decoded(recording)) == outline(at_once), recording.id
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
