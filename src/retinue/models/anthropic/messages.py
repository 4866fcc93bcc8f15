"""Messages as content blocks of the Messages format, each block as JSON bytes.

A message is encoded once: its blocks are kept with it, and a changed copy starts without them. So
a long loop sends its history again without encoding it again. What depends on the messages round
it (turns, ids used twice, cache marks) is the business of `turns` and `encode`.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from retinue.errors import ConfigError
from retinue.messages import File, Image, Message, Text, Thinking, ToolCall, ToolResult
from retinue.models.anthropic.media import document_block, image_block
from retinue.models.outgoing import as_object, left_out, to_json

PROVIDER: Final = "anthropic"
"""Whose reasoning goes back; that of others is left out."""

_KEY: Final = "anthropic"
_ODD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 64
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


def encoded(message: Message) -> Encoded:
    """The message in blocks; encoded once, then taken from where it is kept.

    Raises:
        ConfigError: the message holds a part that the format does not take there.
    """
    kept: Encoded | None = vars(message).get(_KEY)
    if kept is None:
        kept = vars(message)[_KEY] = encode_message(message)
    return kept


def encode_message(
    message: Message, renamed: Mapping[str, str] = _SAME, *, paused: bool = False
) -> Encoded:
    """The message in blocks, encoded anew.

    Args:
        message: what to encode.
        renamed: other ids for calls, by the ids they would be sent under.
        paused: whether tools that the provider has not run to their end are to go on.
    """
    if message.role == "tool":
        return _results(message, renamed)
    if message.role == "assistant":
        return _assistant(message, renamed, paused=paused)
    if message.role == "system":
        text = _system(message)
        # Where a system message stands inside a conversation, only the user can say it.
        blocks = (_text(f"<system>\n{text}\n</system>"),) if text else ()
        return Encoded("user", blocks=blocks)
    return Encoded("user", blocks=tuple(_said(message)))


def system_text(message: Message) -> str:
    """The text of a system message.

    Raises:
        ConfigError: it holds something else than text.
    """
    return _system(message)


def sent_id(call_id: str) -> str:
    """The id as the vendor takes it: those of other providers may hold anything."""
    if call_id and not _ODD.search(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:32]


def sent_name(name: str) -> str:
    """A name that the model made up may hold anything; the vendor refuses the whole history."""
    return _ODD.sub("_", name)[:_LONGEST_NAME] or "unnamed"


# -- what the user says -------------------------------------------------------------------------


def _system(message: Message) -> str:
    for part in message.parts:
        if type(part) is not Text:
            raise _misplaced(part, message)
    return message.text.strip() and message.text


def _said(message: Message) -> list[bytes]:
    blocks: list[bytes] = []
    for part in message.parts:
        if type(part) is Text:
            if part.text.strip():  # the vendor refuses empty texts
                blocks.append(_text(part.text))
        elif isinstance(part, (Image, File)):
            blocks.append(to_json(_media(part)))
        else:
            raise _misplaced(part, message)
    return blocks


def _media(part: Image | File) -> dict[str, Any]:
    return image_block(part) if isinstance(part, Image) else document_block(part)


def _text(text: str) -> bytes:
    return to_json({"type": "text", "text": text})


def _misplaced(part: Any, message: Message) -> ConfigError:
    return ConfigError(
        f"A message of the role {message.role!r} cannot hold a part {type(part).__name__} for"
        f" {PROVIDER}."
    )


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
            raise _misplaced(part, message)
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
        return [msgspec.json.decode(thought.opaque)]
    if thought.signature is None:
        return []
    return [{"type": "thinking", "thinking": thought.text, "signature": thought.signature}]


def _call(call: ToolCall, call_id: str) -> dict[str, Any]:
    # Arguments that are no object were answered with an error that says so.
    arguments = as_object(call.arguments or "{}") or {}
    return {"type": "tool_use", "id": call_id, "name": sent_name(call.name), "input": arguments}


def _without_unfinished(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leaves out tools of the provider's that never came to a result, which it refuses."""
    finished = {block.get("tool_use_id") for block in blocks}
    return [
        block
        for block in blocks
        if block["type"] not in ("server_tool_use", "mcp_tool_use") or block["id"] in finished
    ]


# -- what the tools said ------------------------------------------------------------------------


def _results(message: Message, renamed: Mapping[str, str]) -> Encoded:
    found = message.tool_results
    if not found or len(found) != len(message.parts):
        raise ConfigError("A message of the role 'tool' holds tool results and nothing else.")
    attached: list[dict[str, Any]] = []
    results = tuple(to_json(_result(result, renamed, attached)) for result in found)
    return Encoded("user", results=results, blocks=tuple(map(to_json, attached)))


def _result(
    result: ToolResult, renamed: Mapping[str, str], attached: list[dict[str, Any]]
) -> dict[str, Any]:
    call_id = sent_id(result.call_id)
    block: dict[str, Any] = {
        "type": "tool_result", "tool_use_id": renamed.get(call_id, call_id),
    }  # fmt: skip
    content = _content(result)
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


def _content(result: ToolResult) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in result.parts:
        if isinstance(part, Text):
            if part.text.strip():
                content.append({"type": "text", "text": part.text})
            continue
        try:
            content.append(_media(part))
        except ConfigError as why:
            left_out(part, result.name, why)
            kind = type(part).__name__.lower()
            content.append({"type": "text", "text": f"[{kind}: this model cannot take it]"})
    return content
