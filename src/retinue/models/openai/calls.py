"""Tool calls from fragments, however a server numbers them.

A fragment belongs to the call of its `index`. Where there is no index, it belongs to the call of
its `id`, or to the last one. But a server may give every call the index 0, or every fragment a new
id, or repeat id and name on each; so a fragment begins a new call under an old index if it names a
tool, under an id of its own, and either the tool is another one or the call so far is complete.
"""

from typing import Any

import msgspec

from retinue.messages import ToolCallDelta, new_id
from retinue.models.loose import UNREADABLE


class _Call:
    """What has come of one call, and the number it has here."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int, call_id: str) -> None:
        self.index = index
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are a JSON object."""
        try:
            return isinstance(msgspec.json.decode("".join(self.arguments)), dict)
        except UNREADABLE:
            return False


class Calls:
    """Numbers the calls of one answer, and says the id and the name of each once."""

    __slots__ = ("_all", "_by_id", "_by_index")

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    @property
    def any(self) -> bool:
        """Whether a call has come."""
        return bool(self._all)

    def add(self, index: Any, call_id: Any, name: Any, arguments: Any) -> tuple[ToolCallDelta, ...]:
        """Takes a fragment as it was sent; gives the deltas it stands for."""
        index = index if isinstance(index, (int, str)) else None
        call_id = "" if call_id is None else str(call_id)
        name = name if isinstance(name, str) else ""
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):  # an object where its text should be
            arguments = msgspec.json.encode(arguments).decode()
        call = self._find(index, call_id, name)
        if call is not None and _begins_another(call, call_id, name, arguments):
            call = None
        if call is not None:
            if name and not call.name:
                call.name = name
            elif arguments:
                name = ""
            else:
                return ()
            call.arguments.append(arguments)
            return (ToolCallDelta(call.index, name=name, arguments=arguments),)
        if not (name or call_id or arguments):
            return ()
        call = self._open(index, call_id)
        call.name = name
        call.arguments.append(arguments)
        return (ToolCallDelta(call.index, call.id, name, arguments),)

    def _find(self, index: Any, call_id: str, name: str) -> _Call | None:
        if index is not None:
            return self._by_index.get(index)
        if call_id in self._by_id:
            return self._by_id[call_id]
        if call_id and name:
            return None
        return self._all[-1] if self._all else None

    def _open(self, index: Any, call_id: str) -> _Call:
        # An id of our own where there is none, or where two calls have one: results go back by id.
        if not call_id or call_id in self._by_id:
            call_id = f"call_{new_id()}"
        call = _Call(len(self._all), call_id)
        self._all.append(call)
        self._by_id[call_id] = call
        if index is not None:
            self._by_index[index] = call
        return call


def _begins_another(call: _Call, call_id: str, name: str, arguments: str) -> bool:
    if not name or not call.name:
        return False
    if call_id:
        if call_id == call.id:
            return False
    elif not arguments:
        return False
    return name != call.name or call.is_complete
