"""The OpenAPI document, made of the same rows and types that requests are checked by."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from retinue.chains.events import AnyEvent
from retinue.serve.faults import Code
from retinue.serve.http.bodies import ErrorBody
from retinue.serve.http.operations import STATUS, Operation
from retinue.serve.wire import Resync
from retinue.version import __version__

_PLACE: Final = "#/components/schemas/{name}"
_EVENT: Final = AnyEvent | Resync

_OF_SCOPES: Final[frozenset[Code]] = frozenset(
    {"unauthenticated", "forbidden", "too_many", "unavailable", "internal"}
)
_OF_BODIES: Final[frozenset[Code]] = frozenset({"invalid", "too_large", "too_slow"})


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document of these operations, as JSON values."""
    kinds: list[Any] = [ErrorBody, _EVENT]
    for one in operations:
        kinds += [kind for kind in (one.body, one.gives) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_PLACE)
    refs = dict(zip(map(_key, kinds), schemas, strict=True))
    components["Event"] = refs[_key(_EVENT)]
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "retinue", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation, refs: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": [*_path_parameters(one), *_query_parameters(one)],
        "responses": {str(one.status): _success(one, refs)},
    }
    if one.streams and one.method == "GET":
        made["responses"]["204"] = {"description": "There is nothing more to read."}
    if one.body is not None:
        content = {"application/json": {"schema": refs[_key(one.body)]}}
        made["requestBody"] = {"required": True, "content": content}
    if one.scope is not None:
        made["security"] = [{"bearer": []}, {}]
    for status, response in _failures(one, refs).items():
        made["responses"].setdefault(status, response)
    return made


def _success(one: Operation, refs: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if one.gives is not None:
        content[one.media_type] = {"schema": refs[_key(one.gives)]}
    elif one.media_type != "application/json":
        content[one.media_type] = {"schema": {"type": "string"}}
    if one.streams:
        content["text/event-stream"] = {"schema": _FOREIGN_FRAME if one.foreign else _FRAME}
    made: dict[str, Any] = {"description": one.summary}
    return {**made, "content": content} if content else made


_FOREIGN_FRAME: Final = {
    "description": "One frame of the stream; what its data is, another format says.",
    "type": "object",
    "properties": {"data": {"type": "string"}},
    "required": ["data"],
}
_FRAME: Final = {
    "description": "One frame of the stream. The data of the last one is a `turn_ended`.",
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "What the header Last-Event-ID gives back."},
        "event": {"type": "string", "description": "The `type` of the event."},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": _PLACE.format(name="Event")},
        },
    },
    "required": ["id", "event", "data"],
}
"""As OpenAPI before 3.2 has it: the schema of a stream of events is that of each of them."""


def _failures(one: Operation, refs: dict[str, Any]) -> dict[str, Any]:
    codes: set[Code] = {*one.refuses}
    if one.scope is not None:
        codes |= _OF_SCOPES
    if one.body is not None:
        codes |= _OF_BODIES
    if one.query is not None:
        codes.add("invalid")
    failures: dict[str, Any] = {}
    for code in sorted(codes, key=lambda code: STATUS[code]):
        schema: Any = refs[_key(ErrorBody)]
        if one.errors is not None:
            schema = {"type": "object"}
        elif one.scope is None and one.gives is not None:
            schema = refs[_key(one.gives)]
        failures[str(STATUS[code])] = {
            "description": f"Refused: {code}.",
            "content": {"application/json": {"schema": schema}},
        }
    return failures


def _path_parameters(one: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", one.path)
    ]


def _query_parameters(one: Operation) -> list[dict[str, Any]]:
    if one.query is None:
        return []
    schemas, components = msgspec.json.schema_components([one.query], ref_template="{name}")
    schema: dict[str, Any] = components[schemas[0]["$ref"]]
    return [
        {"name": name, "in": "query", "required": False, "schema": _without_null(about)}
        for name, about in schema["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query has no null: what is left out is not there."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    default = {} if schema.get("default") is None else {"default": schema["default"]}
    return {**rest, **(kinds[0] if kinds else {}), **default}


def _key(kind: Any) -> str:
    return str(kind)
