"""Answers in this vendor's form, and its decoder run over them."""

import json
from typing import Any

from retinue.models.gemini.decode import Decoder
from tests.wire.receives.decoding import Decoded, Decoding, arguments, pieces

__all__ = [
    "PEER",
    "Decoded",
    "arguments",
    "chunk",
    "lines",
    "pieces",
    "stream",
    "streamed",
    "whole",
]

DECODING = Decoding(Decoder, "gemini", "GEMINI_API_KEY")
PEER, stream, whole = DECODING.peer, DECODING.stream, DECODING.whole


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
