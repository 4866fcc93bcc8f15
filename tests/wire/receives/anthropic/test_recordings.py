"""What only the recordings of the Messages format have."""

import pytest

from retinue.messages import Thinking
from tests.wire.receives.anthropic.recorded import ANTHROPIC
from tests.wire.receives.decoding import arguments
from tests.wire.recordings import Recording, recordings


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-2")
def test_every_signature_and_every_hidden_thought_is_kept() -> None:
    signed = hidden = 0
    for recording in recordings("anthropic"):
        if recording.status != 200:
            continue
        got = ANTHROPIC.decoded(recording)
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
