"""`reasoning_details`, as OpenRouter and MiniMax send them: reasoning in typed pieces.

They must go back as they came, so they are kept beside the text, as the JSON text in
`Thinking.opaque`. In a stream the pieces of one detail come one by one, under one index.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from retinue.messages import Delta, ThinkingDelta
from retinue.models.loose import a_list, a_text, an_object

_GROWING: Final = ("text", "summary", "data")  # what grows from piece to piece; the rest replaces


class Details:
    """Collects the details of one answer."""

    __slots__ = ("pending",)

    def __init__(self) -> None:
        self.pending: list[Mapping[str, Any]] = []

    def add(self, details: Any) -> str:
        """Takes the details of a chunk; gives the text that a person may read in them."""
        pieces = [piece for piece in map(an_object, a_list(details)) if piece]
        self.pending += pieces
        return "".join(a_text(piece.get("text") or piece.get("summary")) for piece in pieces)

    def flush(self) -> list[Delta]:
        """What is to be kept of the pieces since the last flush, as a delta without text."""
        if not self.pending:
            return []
        opaque = msgspec.json.encode(joined(self.pending)).decode()
        self.pending = []
        return [ThinkingDelta(opaque=opaque)]


def joined(pieces: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of one index and type as one detail, in the order they began."""
    whole: list[dict[str, Any]] = []
    open_at: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        index = piece.get("index")
        key = (index, piece.get("type"))
        detail = None if index is None else open_at.get(key)
        if detail is None:
            detail = dict(piece)
            whole.append(detail)
            if index is not None:
                open_at[key] = detail
            continue
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str) and isinstance(detail.get(name), str):
                detail[name] += value
            elif value is not None:
                detail[name] = value
    return whole
