"""What pydantic-ai wants back with a thought or a call: the JSON text of `Thinking.opaque`.

A vendor may sign a thought or a call, or number it, and want that back. A thought carries its own;
calls have no place for one, so an empty thought after them carries those of all, by their ids.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from retinue.models.outgoing import to_json

if TYPE_CHECKING:
    from pydantic_ai.messages import ThinkingPart, ToolCallPart

_FIELDS: Final = ("id", "provider_name", "provider_details")


class Kept(Struct, frozen=True, omit_defaults=True):
    """The fields of a thought, or those of calls by the calls' ids."""

    thought: dict[str, Any] = field(default_factory=dict[str, Any])
    calls: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


_decoder: Final = msgspec.json.Decoder(Kept)


def keep_thought(part: "ThinkingPart") -> str | None:
    """What goes back with a thought beside its text and signature, or None if nothing does."""
    said = _said(part)
    # Its provider alone is worth nothing, but decides whether a signature is believed.
    return (
        to_json(Kept(thought=said)).decode() if said and (len(said) > 1 or part.signature) else None
    )


def keep_calls(calls: "Iterable[ToolCallPart]") -> str | None:
    """What goes back with calls, or None if nothing does."""
    said = {call.tool_call_id: _said(call) for call in calls if call.id or call.provider_details}
    return to_json(Kept(calls=said)).decode() if said else None


def thought_kept(opaque: str | None) -> Mapping[str, Any]:
    """The fields of a thought."""
    return _known(_read(opaque).thought)


def calls_kept(opaque: Iterable[str | None]) -> Mapping[str, Mapping[str, Any]]:
    """The fields of calls, by the calls' ids."""
    return {call_id: _known(said) for one in opaque for call_id, said in _read(one).calls.items()}


def _said(part: "ThinkingPart | ToolCallPart") -> dict[str, Any]:
    return {name: value for name in _FIELDS if (value := getattr(part, name))}


def _known(said: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: said[name] for name in _FIELDS if name in said}


def _read(opaque: str | None) -> Kept:
    try:
        return Kept() if opaque is None else _decoder.decode(opaque)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return Kept()
