"""Where texts stand in messages and in JSON, and how they are changed there.

A message in which nothing changes stays the same object, so that it is encoded once. Pictures,
files, and what is kept beside the words (`meta`, `note`) are left alone.
"""

import re
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import structs

from retinue.messages import Message, Part, Text, Thinking, ToolCall, ToolResult
from retinue.tools.shapes import is_array, is_mapping

Change = Callable[[str], str]
"""Gives a whole text changed."""

_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)
_DEEP: Final = (msgspec.DecodeError, RecursionError)


class Stream(Protocol):
    """Changes a text that comes in pieces."""

    def feed(self, text: str, /) -> str:
        """More of the text; gives what is decided."""
        ...

    def flush(self) -> str:
        """No more comes: gives the rest."""
        ...


def in_words(message: Message, stream: Stream, *, cut: bool = False) -> Message:
    """The message with its text changed, also where a value lies across two of its parts.

    Args:
        message: the message.
        stream: what changes a text.
        cut: whether what is undecided at the end is left out, as it may be half of a value.
    """
    parts: list[Part] = list(message.parts)
    last: int | None = None
    for at, part in enumerate([*message.parts, None]):
        if isinstance(part, Text):
            parts[at] = Text(stream.feed(part.text))
            last = at
        elif last is not None and not isinstance(part, ToolCall):
            rest = stream.flush()
            if rest and not (cut and part is None):
                parts[last] = Text(cast("Text", parts[last]).text + rest)
            last = None
    said = tuple(
        part
        for part, was in zip(parts, message.parts, strict=True)
        if not isinstance(part, Text) or part.text or part == was
    )
    return _replaced(message, said)


def in_calls(message: Message, change: Change) -> Message:
    """The message with the texts in the arguments of its calls and in its results changed."""
    return _replaced(message, tuple(_in_call(part, change) for part in message.parts))


def in_thoughts(message: Message, change: Change) -> Message:
    """The message with its reasoning changed. What is changed loses the provider's proof of it."""
    return _replaced(
        message,
        tuple(
            Thinking(changed)
            if isinstance(part, Thinking) and (changed := change(part.text)) != part.text
            else part
            for part in message.parts
        ),
    )


def in_result(result: ToolResult, change: Change) -> ToolResult:
    """The result with its texts changed; of a text that is JSON, its strings."""
    parts = tuple(
        Text(in_json(part.text, change)) if isinstance(part, Text) else part
        for part in result.parts
    )
    return result if parts == result.parts else structs.replace(result, parts=parts)


def in_json(text: str, change: Change) -> str:
    """The text with the strings in it changed, if it is a JSON object or array; else as a text.

    Keys, numbers and all that stands between stay as they are.
    """
    if not text.lstrip().startswith(("{", "[")):
        return change(text)
    try:
        msgspec.json.decode(text)
    except _DEEP:
        return change(text)

    def string(found: re.Match[str]) -> str:
        if found[2]:  # a key
            return found[0]
        value: str = msgspec.json.decode(f'"{found[1]}"')
        changed = change(value)
        return found[0] if changed == value else msgspec.json.encode(changed).decode()

    return _STRING.sub(string, text)


def in_values(value: Any, change: Change) -> Any:
    """JSON values with the strings in them changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if is_mapping(value):
        return {key: in_values(one, change) for key, one in value.items()}
    if is_array(value):
        return [in_values(one, change) for one in value]
    return value


def _in_call(part: Part, change: Change) -> Part:
    if isinstance(part, ToolResult):
        return in_result(part, change)
    if isinstance(part, ToolCall):
        arguments = in_json(part.arguments, change)
        if arguments != part.arguments:
            return structs.replace(part, arguments=arguments)
    return part


def _replaced(message: Message, parts: tuple[Part, ...]) -> Message:
    return message if parts == message.parts else message.with_(parts=parts)
