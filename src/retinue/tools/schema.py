"""The contract between a tool and the model: JSON Schema out, checked Python values in (R-TOOL-1).

Here is what all contracts share, and the one over plain types. `contract` chooses among the kinds.
"""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from retinue.errors import RetinueError
from retinue.tools.shapes import is_dict, is_list, is_mapping
from retinue.tools.signature import REQUIRED, Parameter

Schema = dict[str, Any]


class ArgumentsError(RetinueError):
    """The model's arguments do not fit the tool; the message tells it what does (B-LO-6)."""

    def __init__(self, tool: str, problems: Sequence[str], schema: Mapping[str, Any]) -> None:
        super().__init__(
            f"The arguments of {tool!r} do not fit: {'; '.join(problems)}. {_fields(schema)}"
        )


class Contract(Protocol):
    """What a tool expects.

    Attributes:
        parameters: JSON Schema of the arguments: an object, complete in itself.
    """

    @property
    def parameters(self) -> Schema: ...

    def prepare(self) -> None:
        """Builds what checks arguments. ConfigError: it cannot be built."""
        ...

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the types the function wants; defaults are left to the function.

        Raises:
            ArgumentsError: they do not fit.
        """
        ...


_PLAIN: Final[dict[Any, Schema]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    object: {},
    datetime: {"type": "string", "format": "date-time"},
}


class PlainContract:
    """A contract over types that msgspec reads."""

    __slots__ = ("_fields", "_struct", "parameters", "tool")

    def __init__(self, tool: str, parameters: Sequence[Parameter]) -> None:
        self.tool = tool
        self._fields = {p.name: Any if p.annotation is object else p.annotation for p in parameters}
        self._struct: type[Any] | None = None
        self.parameters = object_schema(parameters, *_components(list(self._fields.values())))

    def prepare(self) -> None:
        """Builds the struct that arguments are read as."""
        required = set(self.parameters.get("required", ()))
        self._struct = msgspec.defstruct(
            "Arguments",
            [
                (name, annotation) if name in required else (name, annotation, None)
                for name, annotation in self._fields.items()
            ],
            forbid_unknown_fields=True,
            kw_only=True,
        )

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the types the function wants."""
        if self._struct is None:
            self.prepare()
        try:
            fields = msgspec.convert(arguments, self._struct)
        except msgspec.ValidationError as error:
            problems = self._problems(arguments) or [str(error)]
            raise ArgumentsError(self.tool, problems, self.parameters) from None
        return {name: getattr(fields, name) for name in arguments}

    def _problems(self, arguments: Mapping[str, Any]) -> list[str]:
        problems = misnamed(arguments, self.parameters)
        for name, annotation in self._fields.items():
            if name in arguments:
                try:
                    msgspec.convert(arguments[name], annotation)
                except msgspec.ValidationError as error:
                    what, _, where = str(error).partition(" - at `$")
                    problems.append(f"{name + where.rstrip('`')!r}: {what[:1].lower()}{what[1:]}")
        return problems


def _components(annotations: list[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    found = [_PLAIN.get(a) if isinstance(a, type) else None for a in annotations]
    if None not in found:
        return [one for one in found if one is not None], {}
    schemas, definitions = msgspec.json.schema_components(
        annotations, ref_template="#/$defs/{name}"
    )
    return [a if b is None else b for a, b in zip(schemas, found, strict=True)], definitions


def object_schema(
    parameters: Sequence[Parameter], schemas: Sequence[Schema], definitions: Mapping[str, Schema]
) -> Schema:
    """One object schema from those of its properties."""
    tidy = Tidy(definitions)
    properties = {
        p.name: _described(p, tidy.schema(schema))
        for p, schema in zip(parameters, schemas, strict=True)
    }
    result: Schema = {"type": "object", "properties": properties}
    required = [p.name for p in parameters if p.default is REQUIRED]
    if required:
        result["required"] = required
    result["additionalProperties"] = False
    if tidy.recursive:
        kept = {name: tidy.definition(name) for name in sorted(tidy.recursive)}
        result["$defs"] = kept
    return result


def _described(parameter: Parameter, schema: Schema) -> Schema:
    extra: Schema = {}
    said = _annotated(parameter.annotation) or parameter.description
    if said:
        extra["description"] = said
    if parameter.default is not REQUIRED:
        # A default that is not JSON stays the function's own.
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            extra["default"] = msgspec.to_builtins(parameter.default, str_keys=True)
    return beside(schema, extra) if extra else schema


def _annotated(annotation: Any) -> str:
    """What `Annotated` says of a parameter: a text, or a marker that carries one."""
    for one in getattr(annotation, "__metadata__", ()):
        for text in (one, getattr(one, "description", None), getattr(one, "documentation", None)):
            if isinstance(text, str):
                return text
    return ""


def beside(schema: Schema, extra: Schema) -> Schema:
    """A schema with more keywords. Strict providers allow none beside a `$ref`."""
    if "$ref" in schema and extra:
        return {"anyOf": [schema], **extra}
    return {**schema, **extra}


_NOISE: Final = ("title", "discriminator")
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_VALUES: Final = ("default", "const", "enum", "examples", "required")


class Tidy:
    """Makes generated schemas small and complete in themselves.

    Titles go, and definitions are put where they are used, which every provider takes. Only those
    that hold themselves stay definitions.
    """

    __slots__ = ("definitions", "recursive")

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self.definitions = definitions
        self.recursive = {name for name in definitions if name in self._reached(name)}

    def definition(self, name: str) -> Schema:
        """A definition that stays one."""
        return self.schema(self.definitions[name])

    def schema(self, node: Schema) -> Schema:
        """A schema without noise and without needless references."""
        name = _target(node)
        if name is not None:
            rest = self.schema({key: value for key, value in node.items() if key != "$ref"})
            if name in self.recursive:
                return beside({"$ref": node["$ref"]}, rest)
            return {**self.schema(self.definitions[name]), **rest}
        return {key: self._value(key, value) for key, value in node.items() if key not in _NOISE}

    def _value(self, key: str, value: Any) -> Any:
        if key in _VALUES:
            return value
        if key in _NAMED:
            return {name: self.schema(one) for name, one in value.items()}
        if is_dict(value):
            return self.schema(value)
        if is_list(value):
            return [self.schema(one) if is_dict(one) else one for one in value]
        return value

    def _reached(self, name: str) -> set[str]:
        reached: set[str] = set()
        waiting: list[Any] = [self.definitions[name]]
        while waiting:
            node = waiting.pop()
            if is_list(node):
                waiting.extend(node)
            elif is_dict(node):
                target = _target(node)
                if target is not None and target not in reached:
                    reached.add(target)
                    waiting.append(self.definitions[target])
                waiting.extend(node.values())
        return reached


def _target(node: Mapping[str, Any]) -> str | None:
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        return reference.removeprefix("#/$defs/")
    return None


def misnamed(arguments: Mapping[str, Any], schema: Schema) -> list[str]:
    """The fields that are missing, and those that the tool does not have."""
    properties = schema.get("properties", {})
    missing = [f"{n!r} is missing" for n in schema.get("required", ()) if n not in arguments]
    return missing + [f"{n!r} is not one of its fields" for n in arguments if n not in properties]


def _fields(schema: Mapping[str, Any]) -> str:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not properties:
        return "It takes no arguments."
    required = schema.get("required", ())
    said = [
        f"{name} ({_kind(one)}{', required' if name in required else ''})"
        for name, one in properties.items()
    ]
    return f"Its fields: {', '.join(said)}."


def _kind(schema: Any) -> str:
    if not is_mapping(schema):
        return "any"
    for key in ("enum", "const"):
        if key in schema:
            return f"{key} {msgspec.json.encode(schema[key]).decode()}"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_kind(one) for one in schema[key]))
    kind: Any = schema.get("type", "object" if "$ref" in schema else "any")
    return " or ".join(kind) if is_list(kind) else str(kind)
