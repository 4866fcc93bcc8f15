"""Holds one vendor's decoder against the recorded answers of its format."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from retinue.messages import Message
from tests.wire.receives.decoding import Decoded, Decoding, arguments
from tests.wire.recordings import Recording, recordings

Pairs = dict[str, tuple[Any, Any]]
"""By field: what is expected, what came."""
Counts = Mapping[str, int | None]


class Replay(Struct, frozen=True):
    """What every recording of one format must mean.

    Attributes:
        form: the folder of the recordings.
        decoding: the decoder.
        usage: the counts in the normal form, of what a recording expects.
        further: the pairs beside text, thoughts, tokens and errors.
        excused: what is read otherwise here, by recording and field, and why.
        answers: at least so many whole answers there are, and so many streams.
        refused: at least so many refusals there are.
        short: bytes; streams up to this length are cut at every place, or at every `step`th.
        in_pieces: whether a recorded stream is one here.
    """

    form: str
    decoding: Decoding
    usage: Callable[[dict[str, Any]], Counts]
    further: Callable[[dict[str, Any], Decoded], Pairs]
    excused: Mapping[str, Mapping[str, str]]
    answers: int
    refused: int
    short: int = 3000
    step: int = 1
    in_pieces: Callable[[Recording], bool] = lambda recording: recording.stream

    def decoded(self, recording: Recording) -> Decoded:
        """What comes of the answer in one piece."""
        if self.in_pieces(recording):
            return self.decoding.stream([recording.bytes])
        return self.decoding.whole(recording.bytes)

    def check(self, recording: Recording, got: Decoded) -> None:
        """Fails for a difference that nothing excuses, and for an excuse that is of no use."""
        expect, usage = recording.expect, got.message.usage
        counts = self.usage(expect)
        pairs: Pairs = {
            "text": (expect["text"], got.message.text),
            "thinking": (expect["thinking"] or "", got.message.thinking),
            "error": (bool(expect["error"]), got.error is not None),
            "usage": (dict(counts), {name: getattr(usage, name, None) for name in counts}),
            **self.further(expect, got),
        }
        found = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        excused = self.excused.get(recording.id, {})
        assert found.keys() == excused.keys(), (recording.id, recording.source, found)

    def whole(self) -> list[Recording]:
        """The answers that came whole."""
        return [r for r in recordings(self.form) if r.status == 200 and not self.in_pieces(r)]

    def streams(self) -> list[Recording]:
        """The answers that came in pieces."""
        return [r for r in recordings(self.form) if r.status == 200 and self.in_pieces(r)]

    def refusals(self) -> list[Recording]:
        """What the vendor refused."""
        return [r for r in recordings(self.form) if r.status != 200]


def calls_of(message: Message) -> list[dict[str, Any]]:
    """The calls as a recording has them."""
    return [
        {"id": call.id, "name": call.name, "arguments": arguments(call.arguments)}
        for call in message.tool_calls
    ]


def finish_of(expect: dict[str, Any], words: Mapping[str, str]) -> str | None:
    """Why the answer ended: for tools or a refusal, where the vendor only says that it did."""
    word = expect["finish"]
    finish = words.get(str(word), word)
    if finish != "stop":
        return finish
    return (
        "tool_calls"
        if expect["tool_calls"]
        else "content_filter"
        if expect.get("refusal")
        else finish
    )
