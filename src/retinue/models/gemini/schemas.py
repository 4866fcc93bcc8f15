"""JSON Schema as Gemini takes it, for the arguments of tools and for the form of an answer.

The vendor knows a part of JSON Schema. Limits that it does not know are told in the description
instead. A form of an answer that needs more than that is asked for in words, and not lost in
silence; the arguments of tools are checked here anyway, so that for them the words are enough.
"""

from collections.abc import Mapping
from typing import Any, Final

from retinue.models.loose import a_list, a_text, an_object
from retinue.models.outgoing import to_json

_TAKEN: Final = {
    "$anchor", "$defs", "$id", "$ref", "additionalProperties", "anyOf", "description", "enum",
    "format", "items", "maxItems", "maximum", "minItems", "minimum", "oneOf", "prefixItems",
    "properties", "propertyOrdering", "required", "title", "type",
}  # fmt: skip
_TOLD: Final = {
    "const", "default", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format",
    "maxLength", "minLength", "multipleOf", "pattern", "uniqueItems",
}  # fmt: skip
_SILENT: Final = {"$comment", "$schema", "discriminator"}  # what says nothing to a model
_FORMATS: Final = {"date", "date-time", "double", "float", "int32", "int64", "time"}
_OLD_ROOM: Final = "#/definitions/"


class _Unsayable(Exception):
    """The vendor's part of JSON Schema cannot say it."""


def native_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of an answer as the vendor takes it, or None if it cannot say that."""
    try:
        return _fitted(schema, strict=True)
    except _Unsayable:
        return None


def parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments as the vendor takes it; what it cannot say is told."""
    return _fitted({"type": "object", "properties": {}, **schema}, strict=False)


def _fitted(value: Any, *, strict: bool) -> dict[str, Any]:
    if value is False and strict:  # nothing fits: only words can say it
        raise _Unsayable
    node = _respelt(an_object(value))
    form: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name, held in node.items():
        if name in _TAKEN and _is_taken(name, held):
            form[name] = _inner(name, held, strict=strict)
        elif name not in _SILENT:
            if strict and name not in _TOLD:
                raise _Unsayable
            told[name] = held
    if told:
        words = f"{{{', '.join(f'{name}: {to_json(told[name]).decode()}' for name in told)}}}"
        form["description"] = "\n\n".join(filter(None, [a_text(form.get("description")), words]))
    if "$ref" in form and len(form) > 1:  # the vendor wants a reference to stand alone
        form = {"anyOf": [{"$ref": form.pop("$ref")}], **form}
    return form


def _respelt(node: dict[str, Any]) -> dict[str, Any]:
    """The same in the words that the vendor knows."""
    node = dict(node)
    if "const" in node and _is_taken("enum", [node["const"]]):
        node["enum"] = [node.pop("const")]
    if "definitions" in node:
        node["$defs"] = {**an_object(node.pop("definitions")), **an_object(node.get("$defs"))}
    reference = a_text(node.get("$ref"))
    if reference.startswith(_OLD_ROOM):
        node["$ref"] = "#/$defs/" + reference.removeprefix(_OLD_ROOM)
    parts = a_list(node.get("allOf"))
    if len(parts) == 1 and not set(an_object(parts[0])) & set(node):
        del node["allOf"]
        node |= an_object(parts[0])
        return _respelt(node)
    return node


def _is_taken(name: str, held: Any) -> bool:
    if name == "format":
        return held in _FORMATS
    if name == "enum":
        return all(type(value) in (str, int, float) for value in a_list(held))
    return True


def _inner(name: str, held: Any, *, strict: bool) -> Any:
    """The value of a keyword, with the schemas in it fitted."""
    if name in ("properties", "$defs"):
        return {key: _fitted(inner, strict=strict) for key, inner in an_object(held).items()}
    if name in ("anyOf", "oneOf", "prefixItems"):
        return [_fitted(inner, strict=strict) for inner in a_list(held)]
    if name == "items" or (name == "additionalProperties" and isinstance(held, Mapping)):
        return _fitted(held, strict=strict)
    return held
