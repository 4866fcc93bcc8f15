"""What a tool gave, as what a model is told (R-TOOL-6). Nothing here ever raises."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from retinue.errors import ToolError
from retinue.messages import Content, File, Image, Text, ToolCall, ToolResult
from retinue.tools.base import ToolReturn
from retinue.tools.shapes import is_array, is_dict, is_iterator, is_mapping, is_set

TEXT_LIMIT: Final = 1_000_000
"""Characters of one text; the rest is cut, with a marker that says so."""

ITEM_LIMIT: Final = 1_000_000
"""Items that are taken from an iterator."""


def as_result(
    call: ToolCall, value: Any, *, ok: bool = True, note: dict[str, Any] | None = None
) -> ToolResult:
    """The result of a call.

    Args:
        call: the call that it answers.
        value: text and parts (or lists of them) go as they are, all else as JSON.
        ok: false for errors, refusals and calls that never ran.
        note: what layers keep with it; no model sees it.
    """
    return ToolResult(call.id, call.name, as_content(value), ok, {} if note is None else note)


def as_content(value: Any) -> tuple[Content, ...]:
    """A value as the parts of a result."""
    if type(value) is str:
        return (Text(clean(value)),)
    if isinstance(value, ToolReturn):
        return as_content(value.value)
    if isinstance(value, (Text, Image, File)):
        return (_part(value),)
    if is_array(value) and _holds_parts(value):
        return tuple(_part(item) for item in value)
    if isinstance(value, str):  # an enum that is text, or another kind of str
        return (Text(clean(str.__str__(value))),)
    return (Text(clean(_json(value))),)


def said(error: BaseException) -> str:
    """The text of an exception; "" where its `__str__` is broken."""
    try:
        return str(error)
    except Exception:  # it must not hide the failure
        return ""


def clean(text: str) -> str:
    """Text that every provider takes: valid Unicode, no longer than `TEXT_LIMIT`."""
    if len(text) > TEXT_LIMIT:
        left = len(text) - TEXT_LIMIT
        text = f"{text[:TEXT_LIMIT]}\n[cut: {left:,} of {len(text):,} characters left out]"
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Halves of a pair find each other; a half alone becomes U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def drained(iterator: Iterator[Any]) -> list[Any]:
    """All that an iterator gives.

    Raises:
        ToolError: it gives more than `ITEM_LIMIT` items, or has no end.
    """
    items = list(itertools.islice(iterator, ITEM_LIMIT))
    if len(items) == ITEM_LIMIT and next(iterator, _END) is not _END:
        raise ToolError(f"The result has more than {ITEM_LIMIT:,} items; return fewer.")
    return items


_END: Final = object()


def _holds_parts(value: Iterable[Any]) -> bool:
    has_part = False
    for item in value:
        if isinstance(item, (Text, Image, File)):
            has_part = True
        elif not isinstance(item, str):
            return False
    return has_part


def _part(item: Content | str) -> Content:
    if isinstance(item, str):
        return Text(clean(item))
    return Text(clean(item.text)) if type(item) is Text else item


class _IsText(Exception):
    """The value as a whole is best shown as text, with no quotes round it."""


def _json(value: Any) -> str:
    seen: dict[int, Any] = {}  # an iterator gives its items once, and may be asked for twice

    def kin(inner: Any) -> Any:
        if id(inner) not in seen:
            seen[id(inner)] = _plain(inner)
        found = seen[id(inner)]
        if inner is value and isinstance(found, str):
            raise _IsText(found)
        return found

    try:
        if isinstance(value, _CONTAINERS) and _holds_set(value):
            value = _ordered(value)
        return _encode(value, kin)
    except _IsText as text:
        return str(text)
    except Exception:  # foreign objects may raise anything when they are looked at
        return _shown(value)


def _encode(value: Any, kin: Callable[[Any], Any]) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=kin).decode()
    except (TypeError, UnicodeEncodeError):
        # Keys that are not text, or half a surrogate pair inside: seldom, so only now.
        return msgspec.json.encode(_repaired(value, kin)).decode()


def _plain(value: Any) -> Any:
    """JSON's next of kin to an object that msgspec does not know."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if is_mapping(value):
        return dict(value)
    if is_iterator(value):
        return drained(value)
    if value is None or is_array(value):  # as a key of a dict; elsewhere msgspec knows it
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    to_list = getattr(value, "tolist", None)  # arrays and their scalars
    return to_list() if callable(to_list) else _shown(value)


_SETS: Final = frozenset({set, frozenset})
_CONTAINERS: Final = (dict, list, tuple, set, frozenset)
_KINDS: Final = frozenset(_CONTAINERS)


def _holds_set(value: Any) -> bool:
    if type(value) in _SETS:
        return True
    items: Any = value.values() if is_dict(value) else value
    kinds = set(map(type, items))
    if kinds.isdisjoint(_KINDS):
        return False
    return not kinds.isdisjoint(_SETS) or any(_holds_set(i) for i in items if type(i) in _KINDS)


def _ordered(value: Any) -> Any:
    """The same with its sets as lists in a fixed order, so that equal results are equal text."""
    if is_dict(value):
        return {key: _ordered(item) for key, item in value.items()}
    if is_set(value):
        return [_ordered(item) for item in _sorted(value)]
    if is_array(value):
        return [_ordered(item) for item in value]
    return value


def _sorted(items: Iterable[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)


def _repaired(value: Any, kin: Callable[[Any], Any]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if is_dict(value):
        return {_key(key, kin): _repaired(item, kin) for key, item in value.items()}
    if is_array(value) or is_set(value):
        return [_repaired(item, kin) for item in value]
    if value is None or isinstance(value, (int, float)):
        return value
    return _repaired(msgspec.to_builtins(value, enc_hook=kin), kin)


def _key(key: Any, kin: Callable[[Any], Any]) -> str:
    plain = _repaired(key, kin)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()


def _shown(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"
