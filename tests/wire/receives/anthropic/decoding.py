"""Answers in this vendor's form, and its decoder run over them."""

import json
from typing import Any

from retinue.models.anthropic.decode import Decoder
from tests.wire.receives.decoding import Decoded, Decoding, arguments, pieces

__all__ = ["DECODING", "PEER", "Decoded", "arguments", "events", "pieces", "stream", "whole"]

DECODING = Decoding(Decoder, "anthropic", "ANTHROPIC_API_KEY")
PEER, stream, whole = DECODING.peer, DECODING.stream, DECODING.whole


def events(*data: dict[str, Any]) -> bytes:
    """A stream of these events, as the vendor frames them."""
    return b"".join(
        f"event: {one['type']}\ndata: {json.dumps(one, ensure_ascii=False)}\n\n".encode()
        for one in data
    )
