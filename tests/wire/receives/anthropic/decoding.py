"""Runs an answer through the decoders, cut into chunks, and folds what comes out."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from retinue.errors import ModelError
from retinue.messages import Accumulator, Delta, Message, Thinking
from retinue.models import sse
from retinue.models.anthropic.decode import Decoder
from retinue.models.failures import Peer

PEER = Peer("anthropic", "api.example", "some-model", "ANTHROPIC_API_KEY", ["sk-secret-secret"])


class Decoded(Struct, frozen=True):
    """What came out."""

    message: Message
    deltas: list[Delta]
    meta: dict[str, Any]
    error: ModelError | None

    @property
    def kept(self) -> list[dict[str, Any]]:
        """The blocks that are kept as they came."""
        thoughts = [part for part in self.message.parts if type(part) is Thinking]
        return [json.loads(thought.opaque) for thought in thoughts if thought.opaque]


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


def events(*data: dict[str, Any]) -> bytes:
    """A stream of these events, as the vendor frames them."""
    return b"".join(
        f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n".encode()
        for one in data
    )


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
    return Decoded(folded.message(provider="anthropic"), deltas, decoder.meta, error)
