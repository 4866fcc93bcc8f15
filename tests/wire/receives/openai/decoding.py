"""Answers in this vendor's form, and its decoder run over them."""

import json
from typing import Any

from retinue.models.openai.decode import Decoder
from tests.wire.receives.decoding import Decoded, Decoding, arguments, pieces

__all__ = [
    "DECODING",
    "PEER",
    "Decoded",
    "arguments",
    "lines",
    "pieces",
    "said",
    "stream",
    "streamed",
    "whole",
]

DECODING = Decoding(Decoder, "openai", "OPENAI_API_KEY")
PEER, stream, whole = DECODING.peer, DECODING.stream, DECODING.whole


def lines(*data: str, done: bool = True) -> bytes:
    """A stream of these data lines."""
    return b"".join(f"data: {line}\n\n".encode() for line in (*data, *(["[DONE]"] if done else [])))


def said(finish: str | None = None, **delta: Any) -> str:
    """A chunk of a stream."""
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def streamed(*data: str) -> Decoded:
    """A stream of these chunks and the end marker."""
    return stream([lines(*data)])
