"""The form of an answer, as the Messages format asks for it.

The vendor makes the model keep to a part of JSON Schema: every object closed, no limits on numbers,
texts or lists. Limits are told in the description instead. What cannot be said so at all (an object
with free names, a schema within itself) is asked for in words, and not lost in silence.
"""

from collections.abc import Mapping
from typing import Any, Final

from retinue.models.loose import a_list, a_text, an_object
from retinue.models.outgoing import to_json

_TAKEN: Final = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
    "allOf", "$ref", "$defs", "definitions", "description", "title",
}  # fmt: skip
_TOLD: Final = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "default", "examples",
}  # fmt: skip
_FORMATS: Final = {
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
}  # fmt: skip


class _Unsayable(Exception):
    """The vendor's part of JSON Schema cannot say it."""


def native_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as the vendor takes it, or None if it cannot say that."""
    if schema.get("type") != "object":
        return None
    try:
        form = _fitted(schema)
    except _Unsayable:
        return None
    return None if _is_recursive(form) else form


def _fitted(value: Any) -> dict[str, Any]:
    node = an_object(value)
    told = {name: node[name] for name in node if name in _TOLD and not _is_taken(name, node[name])}
    rest = {name: held for name, held in node.items() if name not in told}
    if not rest or not set(rest) <= _TAKEN | _TOLD:
        raise _Unsayable
    if "object" in _types(rest):
        if rest.get("additionalProperties", False) is not False:
            raise _Unsayable
        rest["additionalProperties"] = False
    for name in ("properties", "$defs", "definitions"):
        if name in rest:
            rest[name] = {key: _fitted(inner) for key, inner in an_object(rest[name]).items()}
    if "items" in rest:
        rest["items"] = _fitted(rest["items"])
    for name in ("anyOf", "allOf"):
        if name in rest:
            rest[name] = [_fitted(inner) for inner in a_list(rest[name])]
    if told and "$ref" not in rest:
        words = f"{{{', '.join(f'{key}: {to_json(told[key]).decode()}' for key in told)}}}"
        rest["description"] = "\n\n".join(filter(None, [a_text(rest.get("description")), words]))
    return rest


def _is_taken(name: str, value: Any) -> bool:
    if name == "format":
        return value in _FORMATS
    return name == "minItems" and value in (0, 1)


def _types(node: Mapping[str, Any]) -> list[Any]:
    kinds = node.get("type")
    return [kinds] if isinstance(kinds, str) else a_list(kinds)


def _is_recursive(form: Mapping[str, Any]) -> bool:
    """Whether a definition leads back to itself."""
    parts = {
        f"#/{room}/{name}": part
        for room in ("$defs", "definitions")
        for name, part in an_object(form.get(room)).items()
    }
    leads = {name: _references(part) for name, part in parts.items()}

    def returns(name: str, way: frozenset[str]) -> bool:
        if name in way or name == "#":
            return True
        return any(returns(after, way | {name}) for after in leads.get(name, ()))

    body = {name: held for name, held in form.items() if name not in ("$defs", "definitions")}
    return any(returns(name, frozenset()) for name in _references(body) | set(leads))


def _references(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        node = an_object(value)
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set[str]()
        return own.union(*(_references(inner) for inner in node.values()))
    return set[str]().union(*(_references(inner) for inner in a_list(value)))
