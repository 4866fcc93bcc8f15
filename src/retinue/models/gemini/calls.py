"""Tool calls of the Gemini format, as deltas.

A call comes whole, or it begins and grows: then each piece names places in its arguments by JSON
paths and says what stands there, and a text may come in several pieces. Which place comes when is
the model's choice, so the arguments are handed on when the call has come to its end. Where a call
has no id, it gets one of ours: results go back by id.
"""

import re
from typing import Any, Final

from msgspec import Raw, Struct

from retinue.messages import Delta, ToolCallDelta, new_id
from retinue.models.loose import a_list, a_text, an_object
from retinue.models.outgoing import as_object, to_json

NOTHING: Final = Raw(b"null")

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]]+) | \[(?P<index>\d{1,9})\]
    | \['(?P<single>(?:[^'\\]|\\.)*)'\] | \["(?P<double>(?:[^"\\]|\\.)*)"\]""",
    re.X,
)
_DEEPEST: Final = 64  # steps of a path
_VALUES: Final = ("stringValue", "numberValue", "boolValue")

_Place = str | int


class FunctionCall(Struct, rename="camel"):
    """A call, or a piece of one."""

    name: Any = None
    id: Any = None
    args: Raw = NOTHING
    partial_args: Any = None
    will_continue: Any = None


class _Open:
    """A call that has not come to its end."""

    __slots__ = ("arguments", "growing", "index")

    def __init__(self, index: int, arguments: dict[_Place, Any]) -> None:
        self.index = index
        self.arguments = arguments
        self.growing: str | None = None  # the path of the text that has more to come


class Calls:
    """Numbers the calls of one answer.

    Attributes:
        count: how many have begun.
    """

    __slots__ = ("_ids", "_open", "count")

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._open: _Open | None = None
        self.count = 0

    def begins(self, call: FunctionCall) -> bool:
        """Whether this is a call of its own, not more of the one before."""
        return bool(call.name) or self._open is None

    def add(self, call: FunctionCall) -> list[Delta]:
        """Takes a call, or a piece of one."""
        if not self.begins(call):
            return self._grow(call)
        deltas = self.close()
        name = a_text(call.name)
        arguments = bytes(call.args).decode("utf-8", "replace")
        if not name and not call.id and arguments == "null":
            return deltas  # an end without a beginning
        index = self.count
        self.count += 1
        begun = ToolCallDelta(index, self._id(call.id), name)
        if call.will_continue or call.partial_args:
            known: dict[Any, Any] = as_object(arguments) or {}
            self._open = _Open(index, known)
            return [*deltas, begun, *self._grow(call)]
        if arguments in ("null", "{}"):
            return [*deltas, begun]
        return [*deltas, ToolCallDelta(index, begun.id, name, arguments)]

    def close(self) -> list[Delta]:
        """Ends the call that is open; its end may never have been sent."""
        opened, self._open = self._open, None
        if opened is None:
            return []
        arguments = _with_lists(opened.arguments)
        return [ToolCallDelta(opened.index, arguments=to_json(arguments).decode())]

    def _grow(self, call: FunctionCall) -> list[Delta]:
        opened = self._open
        if opened is not None:
            for piece in map(an_object, a_list(call.partial_args)):
                _put(opened, piece)
        return [] if call.will_continue else self.close()

    def _id(self, given: Any) -> str:
        call_id = a_text(given)
        if not call_id or call_id in self._ids:
            call_id = f"call_{new_id()}"
        self._ids.add(call_id)
        return call_id


def _put(opened: _Open, piece: dict[str, Any]) -> None:
    """Puts a value at its path, or appends to the text that is there."""
    path = a_text(piece.get("jsonPath"))
    steps = _steps(path)
    node: dict[_Place, Any] = opened.arguments
    for step in steps[:-1]:
        inner = node.get(step)
        if not isinstance(inner, dict):
            inner = node[step] = {}
        node = inner  # pyright: ignore[reportUnknownVariableType]
    last = steps[-1]
    value = next((piece[name] for name in _VALUES if piece.get(name) is not None), None)
    if opened.growing == path and isinstance(node.get(last), str):
        node[last] += a_text(value)
    elif value is not None or "nullValue" in piece:
        node[last] = value
    opened.growing = path if piece.get("willContinue") else None


def _steps(path: str) -> list[_Place]:
    """The path in steps; one that cannot be read is a name, which the tool's check will show."""
    steps: list[_Place] = []
    at = 1
    while at < len(path) and len(steps) < _DEEPEST:
        found = _STEP.match(path, at)
        if found is None:
            return [path]
        at = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            quoted = found["name"] or found["single"] or found["double"] or ""
            steps.append(quoted if found["name"] else re.sub(r"\\(.)", r"\1", quoted))
    return steps if steps and at == len(path) else [path]


def _with_lists(value: Any) -> Any:
    """The value with lists where places were numbers. In between there may be gaps: they close."""
    if not isinstance(value, dict):
        return value
    node: dict[_Place, Any] = value  # pyright: ignore[reportUnknownVariableType]
    if node and all(isinstance(place, int) for place in node):
        return [_with_lists(node[place]) for place in sorted(node, key=int)]
    return {str(place): _with_lists(inner) for place, inner in node.items()}
