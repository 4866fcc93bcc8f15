"""JSON of a form that nobody promised, read as the kind that is wanted, or as an empty one."""

import json
from typing import Any, Final, cast

import msgspec

UNREADABLE: Final = (msgspec.DecodeError, RecursionError)
"""What reading raises, where it is no JSON, or is nested too deep."""


def an_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    """The value if it is a JSON list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def a_text(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def a_count(value: Any) -> int | None:
    """The value if it is a number of tokens, else None."""
    return value if type(value) is int and value >= 0 else None


def a_value(data: bytes) -> Any:
    """The JSON value, or the text that it is instead."""
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        return data.decode("utf-8", "replace")


def mended(data: bytes) -> bytes:
    """The same JSON without what makes it none: half characters, numbers that are not.

    Raises:
        ValueError: it is no JSON all the same, or is nested too deep.
    """
    try:
        value = json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _name: None)
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
