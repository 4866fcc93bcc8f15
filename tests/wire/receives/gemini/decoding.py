"""Runs an answer through the decoders, cut into chunks, and folds what comes out."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from retinue.errors import ModelError
from retinue.messages import Accumulator, Delta, Message, Thinking
from retinue.models import sse
from retinue.models.failures import Peer
from retinue.models.gemini.decode import Decoder

PEER = Peer("gemini", "api.example", "some-model", "GEMINI_API_KEY", ["AIza-secret-secret"])


class Decoded(Struct, frozen=True):
    """What came out."""

    message: Message
    deltas: list[Delta]
    meta: dict[str, Any]
    error: ModelError | None

    @property
    def kept(self) -> list[dict[str, Any]]:
        """What is kept beside texts, thoughts and calls."""
        thoughts = [part for part in self.message.parts if type(part) is Thinking]
        return [json.loads(thought.opaque) for thought in thoughts if thought.opaque]

    @property
    def shape(self) -> list[str]:
        """The types of the parts."""
        return [type(part).__name__ for part in self.message.parts]


def stream(chunks: Iterable[bytes]) -> Decoded:
    """A stream, chunk by chunk."""
    events = sse.Decoder()
    decoder = Decoder(PEER)
    deltas: list[Delta] = []
    for chunk in chunks:
        for event in events.feed(chunk):
            deltas += decoder.feed(event)
    for event in events.flush():
        deltas += decoder.feed(event)
    return _finish(decoder, deltas)


def whole(body: bytes | dict[str, Any] | list[Any]) -> Decoded:
    """A whole answer."""
    decoder = Decoder(PEER, whole=True)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    deltas = list(decoder.feed(sse.Event(data)))
    return _finish(decoder, deltas)


def chunk(*parts: dict[str, Any], finish: Any = None, **fields: Any) -> dict[str, Any]:
    """One answer of a stream, or a whole one."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "some-model", **fields}


def lines(*chunks: dict[str, Any]) -> bytes:
    """A stream of these, as the vendor frames them."""
    return b"".join(
        f"data: {json.dumps(one, ensure_ascii=False)}\r\n\r\n".encode() for one in chunks
    )


def streamed(*chunks: dict[str, Any]) -> Decoded:
    """A stream of these, in one piece."""
    return stream([lines(*chunks)])


def pieces(body: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The body cut at these places."""
    at = [0, *sorted(cuts), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(at)]


def _finish(decoder: Decoder, deltas: list[Delta]) -> Decoded:
    error = None
    try:
        deltas += decoder.end()
    except ModelError as raised:
        error = raised
    folded = Accumulator()
    for delta in deltas:
        folded.add(delta)
    return Decoded(folded.message(provider="gemini"), deltas, decoder.meta, error)
