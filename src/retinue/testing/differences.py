"""What differs between two runs of one turn: in each request, in the calls, and in the end.

Everything is put into lines of text and compared line by line, so that a difference can be read.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import msgspec
from msgspec import Struct

from retinue.chains import ChatRequest, Settings
from retinue.messages import Message, Text, Thinking, ToolCall, ToolResult
from retinue.testing.replay import Replay
from retinue.tools import Tool

GONE: Final = "- "
NEW: Final = "+ "


class Change(Struct, frozen=True):
    """One thing that differs.

    Attributes:
        where: "model call 1", "tool calls" or "end".
        what: what of it: instructions, messages, tools, settings, output, model …
        lines: its lines in the first run and not in the second begin with `GONE`, those in the
            second alone with `NEW`; lines that both have are left out.
    """

    where: str
    what: str
    lines: tuple[str, ...]


def differences(first: Replay, second: Replay) -> tuple[Change, ...]:
    """What differs between two replays of one recording, in the order in which it happened."""
    changes: list[Change] = []
    for number in range(max(len(first.requests), len(second.requests))):
        where = f"model call {number + 1}"
        changes += _compared(where, _request(first, number), _request(second, number))
    changes += _compared("tool calls", _calls(first), _calls(second))
    changes += _compared("end", _end(first), _end(second))
    return tuple(changes)


def request_lines(request: ChatRequest) -> Mapping[str, list[str]]:
    """What a model is sent, as lines under the names of its parts."""
    return {
        "model": [str(request.model)] if request.model is not None else [],
        "instructions": [line for text in request.instructions for line in text.splitlines()],
        "messages": [line for one in request.messages for line in message_lines(one)],
        "tools": [_tool_line(tool) for tool in request.tools],
        "settings": _setting_lines(request.settings),
        "output": [] if request.output is None else [_json(request.output.schema)],
    }


def message_lines(message: Message) -> list[str]:
    """A message as lines: its role, and what it says, calls, or gives as a result."""
    lines = [line for part in message.parts for line in _part_lines(part)] or [""]
    return [f"{message.role}: {lines[0]}", *(f"    {line}" for line in lines[1:])]


def _request(replay: Replay, number: int) -> Mapping[str, list[str]]:
    return request_lines(replay.requests[number]) if number < len(replay.requests) else {}


def _part_lines(part: object) -> list[str]:
    if isinstance(part, Text):
        return part.text.splitlines()
    if isinstance(part, Thinking):
        return [f"(thinks) {part.text}"] if part.text else []
    if isinstance(part, ToolCall):
        return [f"calls {part.name} with {part.arguments}"]
    if isinstance(part, ToolResult):
        return f"{part.name} {'says' if part.ok else 'failed'}: {part.text}".splitlines()
    return [f"[{type(part).__name__.lower()}]"]


def _tool_line(tool: Tool) -> str:
    spec = tool.spec
    return f"{spec.name}: {' '.join(spec.description.split())} {_json(spec.parameters)}"


def _setting_lines(settings: Settings) -> list[str]:
    # One setting alone is shown as the whole would be: the values of headers stay hidden.
    return [
        f"{name}: {repr(Settings(**{name: value})).partition('=')[2].removesuffix(')')}"
        for name in settings.__struct_fields__
        if (value := getattr(settings, name)) != getattr(Settings(), name)
    ]


def _calls(replay: Replay) -> Mapping[str, list[str]]:
    return {"arguments": [f"{name} {_json(arguments)}" for name, arguments in replay.calls]}


def _end(replay: Replay) -> Mapping[str, list[str]]:
    return {
        "status": [replay.status],
        "answer": replay.text.splitlines(),
        "reason": [] if replay.reason is None else [replay.reason],
    }


def _compared(
    where: str, first: Mapping[str, list[str]], second: Mapping[str, list[str]]
) -> Iterator[Change]:
    for what in first or second:
        lines = tuple(_changed(first.get(what, []), second.get(what, [])))
        if lines:
            yield Change(where, what, lines)


def _changed(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            yield from (GONE + line for line in first[a:b])
            yield from (NEW + line for line in second[c:d])


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic", enc_hook=repr).decode()
