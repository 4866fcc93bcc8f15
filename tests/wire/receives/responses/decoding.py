"""Answers in this vendor's form, and its decoder run over them."""

import json
from typing import Any

from retinue.messages import Thinking
from retinue.models.responses.decode import Decoder
from tests.wire.receives.decoding import Decoded, Decoding, arguments, pieces

__all__ = [
    "CREATED",
    "DECODING",
    "PEER",
    "USAGE",
    "Decoded",
    "arguments",
    "delta",
    "done",
    "ended",
    "kept",
    "lines",
    "pieces",
    "response",
    "stream",
    "streamed",
    "whole",
]

DECODING = Decoding(Decoder, "openai", "OPENAI_API_KEY")
PEER, stream, whole = DECODING.peer, DECODING.stream, DECODING.whole


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
