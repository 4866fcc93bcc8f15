"""The form of an answer, as the Chat Completions format asks for it.

Strict mode makes the provider keep to the schema, but takes a part of JSON Schema only: every
object closed, every property required. A schema that fits is closed and sent as strict; any other
is sent as it is, as a wish.
"""

from collections.abc import Mapping
from typing import Any, Final

from retinue.chains.output import Output
from retinue.models.capabilities import Capabilities
from retinue.models.loose import a_list, an_object
from retinue.models.outgoing import form_in_words

_STRICT_KEYS: Final = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
    "$ref", "$defs", "definitions", "description", "title", "pattern", "format", "multipleOf",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}  # fmt: skip
_STRICT_FORMATS: Final = {
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
}  # fmt: skip


class _Loose(Exception):
    """The schema cannot be strict."""


def response_format(output: Output, takes: Capabilities) -> dict[str, Any] | None:
    """The field `response_format`, or None where the form can only be asked for in words."""
    if not is_object(output.schema):
        return None
    if takes.schema is not False:
        return {"type": "json_schema", "json_schema": named_schema(output)}
    return {"type": "json_object"} if takes.json_mode else None


def named_schema(output: Output) -> dict[str, Any]:
    """The schema with its name, and whether the provider is to make the model keep to it."""
    strict = strict_form(output.schema)
    schema = output.schema if strict is None else strict
    return {"name": output.name, "schema": schema, "strict": strict is not None}


def in_words(output: Output, takes: Capabilities) -> list[str]:
    """The form as an instruction, where the model takes no such schema; else nothing."""
    if takes.schema is not False and is_object(output.schema):
        return []
    return [form_in_words(output)]


def is_object(schema: Mapping[str, Any]) -> bool:
    """Whether the answer is an object, which is all that the format can ask for."""
    return schema.get("type") == "object"


def strict_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema with its objects closed, or None if strict mode does not take it."""
    try:
        return _closed(dict(schema))
    except _Loose:
        return None


def _closed(value: Any) -> dict[str, Any]:
    node = an_object(value)
    if not node or not set(node) <= _STRICT_KEYS:
        raise _Loose
    if "$ref" in node and len(node) > 1:
        raise _Loose
    if node.get("format", "date") not in _STRICT_FORMATS:
        raise _Loose
    closed: dict[str, Any] = dict(node)
    kinds = node.get("type", ())
    if kinds == "object" or "object" in kinds:
        properties = an_object(node.get("properties"))
        if node.get("additionalProperties", False) is not False:
            raise _Loose
        if set(a_list(node.get("required"))) != set(properties):
            raise _Loose
        closed["properties"] = {name: _closed(inner) for name, inner in properties.items()}
        closed["required"] = list(properties)
        closed["additionalProperties"] = False
    elif kinds == "array" and "items" not in node:
        raise _Loose
    for name in ("$defs", "definitions"):
        if name in node:
            closed[name] = {key: _closed(inner) for key, inner in an_object(node[name]).items()}
    if "items" in node:
        closed["items"] = _closed(node["items"])
    if "anyOf" in node:
        closed["anyOf"] = [_closed(inner) for inner in a_list(node["anyOf"])]
    return closed
