"""JSON of a form that nobody promised, read as the kind that is wanted, or as an empty one."""

from typing import Any, cast


def an_object(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    """The value if it is a JSON list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def a_text(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
