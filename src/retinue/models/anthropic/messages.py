"""Messages as content blocks of the Messages format, each block as JSON bytes.

A message is encoded once: its blocks are kept with it, and a changed copy starts without them. So
a long loop sends its history again without encoding it again. What depends on the messages round
it (turns, ids used twice, cache marks) is the business of `turns` and `encode`.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from retinue.errors import ConfigError
from retinue.messages import File, Image, Message, Text, Thinking, ToolCall, ToolResult
from retinue.models.anthropic.media import document_block, image_block
from retinue.models.capabilities import Limits
from retinue.models.loose import a_value, an_object
from retinue.models.outgoing import (
    as_object,
    hashed_id,
    left_out,
    misplaced,
    results_of,
    system_text,
    to_json,
    tool_name,
)

PROVIDER: Final = "anthropic"
"""Whose reasoning goes back; that of others is left out."""

PAUSED: Final = "pause_turn"
"""The stop reason of an answer that the vendor wants back, to go on with it."""

_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_SAME: Final[Mapping[str, str]] = MappingProxyType({})


class Encoded(Struct, frozen=True):
    """One message in blocks.

    Attributes:
        role: whose turn it belongs to.
        results: blocks of tool results, which stand first in their turn.
        blocks: the other blocks, in order.
        calls: the ids of calls in it, as they are sent.
        tools: the names of tools that it calls, as they are sent.
    """

    role: Literal["user", "assistant"]
    results: tuple[bytes, ...] = ()
    blocks: tuple[bytes, ...] = ()
    calls: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class MessageEncoder:
    """Encodes messages for one kind of model.

    Args:
        limits: refuses what it does not take.
    """

    __slots__ = ("_key", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._key = f"anthropic:{limits.media}"  # all that the blocks depend on beside the message

    def encoded(self, message: Message) -> Encoded:
        """The message in blocks; encoded once, then taken from where it is kept.

        Raises:
            ConfigError: the message holds a part that the model does not take there.
        """
        kept: Encoded | None = vars(message).get(self._key)
        if kept is None:
            kept = vars(message)[self._key] = self.encode(message)
        return kept

    def encode(
        self, message: Message, renamed: Mapping[str, str] = _SAME, *, paused: bool = False
    ) -> Encoded:
        """The message in blocks, encoded anew.

        Args:
            message: what to encode.
            renamed: other ids for calls, by the ids they would be sent under.
            paused: whether tools that the provider has not run to their end are to go on.
        """
        if message.role == "tool":
            return self._results(message, renamed)
        if message.role == "assistant":
            return _assistant(message, renamed, paused=paused)
        if message.role == "system":
            text = system_text(message, PROVIDER)
            # Where a system message stands inside a conversation, only the user can say it.
            blocks = (_text(f"<system>\n{text}\n</system>"),) if text else ()
            return Encoded("user", blocks=blocks)
        return Encoded("user", blocks=tuple(self._said(message)))

    def _said(self, message: Message) -> list[bytes]:
        blocks: list[bytes] = []
        for part in message.parts:
            if type(part) is Text:
                if part.text.strip():  # the vendor refuses empty texts
                    blocks.append(_text(part.text))
            elif isinstance(part, (Image, File)):
                blocks.append(to_json(self._media(part)))
            else:
                raise misplaced(part, message.role, PROVIDER)
        return blocks

    def _media(self, part: Image | File) -> dict[str, Any]:
        self._limits.check_part(part)
        return image_block(part) if isinstance(part, Image) else document_block(part)

    # -- what the tools gave --------------------------------------------------------------------

    def _results(self, message: Message, renamed: Mapping[str, str]) -> Encoded:
        attached: list[dict[str, Any]] = []
        results = tuple(
            to_json(self._result(result, renamed, attached)) for result in results_of(message)
        )
        return Encoded("user", results=results, blocks=tuple(map(to_json, attached)))

    def _result(
        self, result: ToolResult, renamed: Mapping[str, str], attached: list[dict[str, Any]]
    ) -> dict[str, Any]:
        call_id = sent_id(result.call_id)
        block: dict[str, Any] = {
            "type": "tool_result", "tool_use_id": renamed.get(call_id, call_id),
        }  # fmt: skip
        content = self._content(result)
        plain = all(isinstance(part, Text) for part in result.parts)
        words = result.text if plain else "".join(p["text"] for p in content if p["type"] == "text")
        if not result.ok:
            # The vendor takes text alone in a result that failed: the rest follows it.
            others = [part for part in content if part["type"] != "text"]
            if others:
                label = f"From the result of {result.name} ({block['tool_use_id']}), which failed:"
                attached += [{"type": "text", "text": label}, *others]
            block["is_error"] = True
            block["content"] = words if words.strip() else "It failed without a word."
        elif not plain:
            block["content"] = content
        elif words.strip():
            block["content"] = words
        return block

    def _content(self, result: ToolResult) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = []
        for part in result.parts:
            if isinstance(part, Text):
                if part.text.strip():
                    content.append({"type": "text", "text": part.text})
                continue
            try:
                content.append(self._media(part))
            except ConfigError as why:
                left_out(part, result.name, why)
                kind = type(part).__name__.lower()
                content.append({"type": "text", "text": f"[{kind}: this model cannot take it]"})
        return content


def sent_id(call_id: str) -> str:
    """The id as the vendor takes it: those of other providers may hold anything."""
    return call_id if call_id and not _ODD.search(call_id) else hashed_id(call_id, 32)


def _text(text: str) -> bytes:
    return to_json({"type": "text", "text": text})


# -- what the model said ------------------------------------------------------------------------


def _assistant(message: Message, renamed: Mapping[str, str], *, paused: bool) -> Encoded:
    blocks: list[dict[str, Any]] = []
    calls: list[str] = []
    for part in message.parts:
        if type(part) is Text:
            if part.text.strip():
                blocks.append({"type": "text", "text": part.text})
        elif type(part) is Thinking:
            blocks += _thought(part)
        elif type(part) is ToolCall:
            call_id = sent_id(part.id)
            calls.append(renamed.get(call_id, call_id))
            blocks.append(_call(part, calls[-1]))
        else:
            raise misplaced(part, message.role, PROVIDER)
    if not paused:
        blocks = _without_unfinished(blocks)
    while blocks and blocks[-1]["type"] in _THOUGHTS:
        del blocks[-1]  # the vendor refuses a message that ends in a thought
    return Encoded(
        "assistant",
        blocks=tuple(map(to_json, blocks)),
        calls=tuple(calls),
        tools=tuple(block["name"] for block in blocks if block["type"] == "tool_use"),
    )


def _thought(thought: Thinking) -> list[dict[str, Any]]:
    """The blocks that a thought goes back as: only what the vendor has signed or sealed."""
    if thought.provider != PROVIDER:
        return []
    if thought.opaque is not None:
        block = an_object(a_value(thought.opaque.encode("utf-8", "replace")))
        return [block] if "type" in block else []  # others may have kept it under this name
    if thought.signature is None:
        return []
    return [{"type": "thinking", "thinking": thought.text, "signature": thought.signature}]


def _call(call: ToolCall, call_id: str) -> dict[str, Any]:
    # Arguments that are no object were answered with an error that says so.
    arguments = as_object(call.arguments or "{}") or {}
    return {"type": "tool_use", "id": call_id, "name": tool_name(call.name), "input": arguments}


def _without_unfinished(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leaves out tools of the provider's that never came to a result, which it refuses."""
    finished = {block.get("tool_use_id") for block in blocks}
    return [
        block
        for block in blocks
        if block["type"] not in ("server_tool_use", "mcp_tool_use") or block.get("id") in finished
    ]
