"""Calls as the model writes them where found tools are shown in search results.

The model then has one tool, `call_tool(name, arguments)`, for all that it finds, so that the
definitions it is sent never change. Everybody else sees the real call: the gate, the tool layers,
the events and the log. What is sent back to the model is written as it wrote it.
"""

from collections.abc import Callable, Container, Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from retinue.messages import Message, ToolCall


class _Wrapped(Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_decoder = msgspec.json.Decoder(_Wrapped)


def unwrapped(call: ToolCall, wrapper: str, known: Container[str]) -> ToolCall:
    """The real call inside a call of the wrapper; a call of another tool as it is.

    What cannot be read, or names no tool, stays a call of the wrapper, which tells the model what
    is wrong with it.

    Args:
        call: a call as the model wrote it.
        wrapper: the wrapper's name.
        known: names of the tools that may be called through it.
    """
    if call.name != wrapper:
        return call
    try:
        asked = _decoder.decode(call.arguments)
        arguments = bytes(asked.arguments).decode()
        if arguments.startswith('"'):  # an object that was written as a text
            arguments = msgspec.json.decode(arguments, type=str)
        if not isinstance(msgspec.json.decode(arguments), dict):
            return call
        beside = cast("dict[str, Any]", msgspec.json.decode(call.arguments))
    except (msgspec.MsgspecError, UnicodeError):
        return call
    if asked.name not in known:
        return call
    if "arguments" not in beside and len(beside) > 1:  # they stand beside the name
        del beside["name"]
        arguments = msgspec.json.encode(beside).decode()
    return structs.replace(call, name=asked.name, arguments=arguments)


def wrapped(call: ToolCall, wrapper: str) -> ToolCall:
    """The call as one of the wrapper: always the same bytes for the same call."""
    try:
        msgspec.json.decode(call.arguments)
        arguments = call.arguments
    except (msgspec.DecodeError, UnicodeError):  # no JSON: as a text it still is what was written
        arguments = _text(call.arguments)
    written = f'{{"name":{_text(call.name)},"arguments":{arguments or "{}"}}}'
    return structs.replace(call, name=wrapper, arguments=written)


def with_calls(message: Message, change: Callable[[ToolCall], ToolCall]) -> Message:
    """The message with its calls changed; the same one if none is."""
    parts = tuple(change(part) if type(part) is ToolCall else part for part in message.parts)
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else message.with_(parts=parts)


def definitions_in(text: str) -> Mapping[str, bool]:
    """The names that a search result lists, in order, and of each whether its parameters stand
    there; none if the text is no such result."""
    try:
        return {one.name: bool(bytes(one.parameters)) for one in _results.decode(text).tools}
    except (msgspec.MsgspecError, UnicodeError):
        return {}


class _Listed(Struct):
    name: str
    parameters: msgspec.Raw = msgspec.Raw()


class _Results(Struct):
    tools: list[_Listed]


_results = msgspec.json.Decoder(_Results)


def _text(text: str) -> str:
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
