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
from retinue.models.responses.decode import Decoder

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


def whole(body: bytes | dict[str, Any]) -> Decoded:
    """A whole answer."""
    decoder = Decoder(PEER, whole=True)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    deltas = list(decoder.feed(sse.Event(data)))
    return _finish(decoder, deltas)


def lines(*events: dict[str, Any] | str, named: bool = True) -> bytes:
    """A stream of these events."""
    body = b""
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        name = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
        body += f"{name}data: {data}\n\n".encode()
    return body


def streamed(*events: dict[str, Any] | str) -> Decoded:
    """A stream of these events, in one piece."""
    return stream([lines(*events)])


def response(*items: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    """A whole answer of these items."""
    output = [{"id": f"item_{n}", **item} for n, item in enumerate(items)]
    return {
        "id": "resp_1", "object": "response", "model": "some-model", "status": status,
        "output": output, **fields,
    }  # fmt: skip


CREATED = {"type": "response.created", "response": response(status="in_progress")}
USAGE = {"input_tokens": 9, "output_tokens": 3}


def delta(kind: str, text: str, place: int = 0) -> dict[str, Any]:
    """An event by which an item grows."""
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": text}


def done(item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    """An event by which an item is done."""
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def ended(*items: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    """The last event."""
    return {"type": f"response.{status}", "response": response(*items, status=status, **fields)}


def kept(got: Decoded) -> list[dict[str, Any]]:
    """What goes back as it came, with what is kept of the next item."""
    found = [part.opaque for part in got.message.parts if isinstance(part, Thinking)]
    return [json.loads(opaque) for opaque in found if opaque]


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
