"""Runs an answer through the decoders, cut into chunks, and folds what comes out."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from retinue.errors import ModelError
from retinue.messages import Accumulator, Delta, Message
from retinue.models import sse
from retinue.models.failures import Peer
from retinue.models.openai.decode import Decoder

PEER = Peer("openai", "api.example", "some-model", "OPENAI_API_KEY", ["sk-secret-secret"])


class Decoded(Struct, frozen=True):
    """What came out."""

    message: Message
    deltas: list[Delta]
    meta: dict[str, Any]
    error: ModelError | None


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


def whole(body: bytes) -> Decoded:
    """A whole answer."""
    decoder = Decoder(PEER, whole=True)
    deltas = list(decoder.feed(sse.Event(body)))
    return _finish(decoder, deltas)


def lines(*data: str, done: bool = True) -> bytes:
    """A stream of these data lines."""
    return b"".join(f"data: {line}\n\n".encode() for line in (*data, *(["[DONE]"] if done else [])))


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
    return Decoded(folded.message(provider="openai"), deltas, decoder.meta, error)


def said(finish: str | None = None, **delta: Any) -> str:
    """A chunk of a stream."""
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def streamed(*data: str) -> Decoded:
    """A stream of these chunks and the end marker."""
    return stream([lines(*data)])
