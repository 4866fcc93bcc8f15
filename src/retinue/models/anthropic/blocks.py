"""Content blocks of one answer, as deltas.

Text, thinking and calls become what they are here. Every other block (redacted thinking, tools that
the provider runs and their results, compaction, and what is still to be invented) is kept as it is,
as the JSON text in `Thinking.opaque`, because it must go back as it came.

Blocks may come interleaved. What follows a block of thinking, or one that is kept, waits for its
end: the order must stay, and a signature stays with what it signs.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from retinue.messages import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from retinue.models.loose import a_list, a_text
from retinue.models.outgoing import as_object, to_json


class BlockDelta(Struct):
    """More of a block, or of the message: the fields of all types of delta."""

    type: str = ""
    text: Any = None
    thinking: Any = None
    signature: Any = None
    partial_json: Any = None
    citation: Any = None
    content: Any = None
    encrypted_content: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None
    stop_details: Any = None
    container: Any = None


class _Open:
    """A block that has begun."""

    __slots__ = ("block", "call", "pieces", "type")

    def __init__(self, block: dict[str, Any], call: int | None) -> None:
        self.type = a_text(block.get("type"))
        self.block = block
        self.call = call  # the number of the call, if it is one
        self.pieces: list[str] = []  # of the signature, or of the input


class Blocks:
    """Takes the blocks of one answer as they begin, grow and end.

    Attributes:
        awaited: the index of the open block whose end the others wait for, or None. While there is
            none, text needs no block and may pass by.
        citations: what the text cites, in order.
    """

    __slots__ = ("_calls", "_held", "_open", "awaited", "citations")

    def __init__(self) -> None:
        self._calls = 0
        self._held: list[tuple[Callable[..., list[Delta]], tuple[Any, ...]]] = []
        self._open: dict[Any, _Open] = {}
        self.awaited: Any = None
        self.citations: list[Any] = []

    def start(self, index: Any, block: dict[str, Any]) -> list[Delta]:
        """A block begins, with what it holds already."""
        if self._waits(index):
            return self._hold(self.start, index, block)
        is_call = block.get("type") == "tool_use"
        opened = self._open[index] = _Open(block, self._calls if is_call else None)
        if is_call:
            call = ToolCallDelta(self._calls, a_text(block.get("id")), a_text(block.get("name")))
            self._calls += 1
            return [call]
        if opened.type == "text":
            self.citations += a_list(block.get("citations"))
            text = a_text(block.get("text"))
            return [TextDelta(text)] if text else []
        self.awaited = index
        if opened.type == "thinking":
            opened.pieces.append(a_text(block.get("signature")))
            text = a_text(block.get("thinking"))
            return [ThinkingDelta(text)] if text else []
        return []

    def grow(self, index: Any, delta: BlockDelta) -> list[Delta]:
        """More of a block."""
        if self._waits(index):
            return self._hold(self.grow, index, delta)
        if delta.type == "text_delta":
            return [TextDelta(delta.text)] if delta.text else []
        if delta.type == "thinking_delta":
            return [ThinkingDelta(delta.thinking)] if delta.thinking else []
        if delta.type == "citations_delta":
            self.citations.append(delta.citation)
            return []
        opened = self._open.get(index)
        if opened is None:
            return []
        if delta.type == "input_json_delta":
            piece = a_text(delta.partial_json)
            opened.pieces.append(piece)
            if piece and opened.call is not None:
                return [ToolCallDelta(opened.call, arguments=piece)]
        elif delta.type == "signature_delta":
            opened.pieces.append(a_text(delta.signature))
        elif delta.type == "compaction_delta":
            opened.block = _compacted(opened.block, delta)
        return []

    def stop(self, index: Any) -> list[Delta]:
        """A block ends. Blocks that waited for it follow."""
        if self._waits(index):
            return self._hold(self.stop, index)
        opened = self._open.pop(index, None)
        deltas = [] if opened is None else _last(opened)
        if index == self.awaited:
            self.awaited = None
            held, self._held = self._held, []
            for take, arguments in held:
                deltas += take(*arguments)
        return deltas

    def finish(self) -> list[Delta]:
        """Ends the blocks that have no end of their own."""
        deltas: list[Delta] = []
        while self._open:
            deltas += self.stop(next(iter(self._open)) if self.awaited is None else self.awaited)
        return deltas

    def _waits(self, index: Any) -> bool:
        return self.awaited is not None and index != self.awaited

    def _hold(self, take: Callable[..., list[Delta]], *arguments: Any) -> list[Delta]:
        self._held.append((take, arguments))
        return []


def _last(opened: _Open) -> list[Delta]:
    """What a block gives at its end."""
    whole = "".join(opened.pieces)
    if opened.call is not None:
        given = opened.block.get("input")
        if whole or not given:
            return []
        return [ToolCallDelta(opened.call, arguments=to_json(given).decode())]
    if opened.type == "text":
        return []
    if opened.type == "thinking":
        return [ThinkingDelta(signature=whole)] if whole else []
    block = opened.block
    if whole:
        block = {**block, "input": as_object(whole) or {}}
    return [ThinkingDelta(opaque=to_json(block).decode())]


def _compacted(block: dict[str, Any], delta: BlockDelta) -> dict[str, Any]:
    content = (a_text(block.get("content")) + a_text(delta.content)) or None
    kept = {**block, "content": content}
    if delta.encrypted_content is not None:
        kept["encrypted_content"] = delta.encrypted_content
    return kept
