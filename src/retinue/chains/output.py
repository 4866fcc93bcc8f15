"""The form that a final answer must have, and how it is read.

`cleaning` finds the JSON in an answer, `misfits` says what is wrong with it.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from retinue.chains.cleaning import bare, json_of
from retinue.chains.misfits import plain_problems, pydantic_problems, schema_problems, shown
from retinue.errors import ConfigError, OutputError, Problem
from retinue.tools.contract import is_foreign
from retinue.tools.validators import validator_of

_TOLD: Final = 10  # problems that an error names
_UNFIT: Final = (ValueError, RecursionError)  # what the readers raise; the latter for deep nesting
_TEXT: Final = frozenset({"string"})
_KEPT: Final = 256  # readers and validators that are kept


class Output(Struct, frozen=True):
    """The form that the final answer must have. `Output.of` makes one.

    Attributes:
        schema: JSON Schema of it.
        name: what the provider is told it is called.
        type: the Python type that the answer is read as, or None for plain JSON values, which are
            held to the schema.
    """

    schema: Mapping[str, Any]
    name: str = "answer"
    type: Any = None

    @classmethod
    def of(cls, form: Any) -> "Output":
        """The form for a type (pydantic, dataclass, TypedDict, msgspec, plain) or a JSON Schema.

        Raises:
            ConfigError: no schema can be made of it, or what was given is none.
            MissingExtraError: it is a JSON Schema, and jsonschema-rs is not installed.
        """
        if isinstance(form, Output):
            return form
        if isinstance(form, Mapping):
            schema: dict[str, Any] = dict(form)  # pyright: ignore[reportUnknownArgumentType]
            output = cls(schema, _word(str(schema.get("title") or "answer")))
            output._validator()  # or a schema that is none would be noticed at the first answer
            return output
        name = _word(getattr(form, "__name__", "answer"))
        try:
            return cls(_schema(form), name, form)
        except Exception as error:
            raise ConfigError(f"No JSON Schema can be made of the output type {form!r}.") from error

    def read(self, text: str) -> Any:
        """The answer as a value of the type; without a type, as plain JSON values.

        A text that is of the form as it stands is read so. Of any other, reasoning in tags, code
        fences and prose are taken off, and the last JSON value of the wanted kind is read. Where
        the form is a string, an answer that is no JSON is that string.

        Raises:
            OutputError: it does not fit; `problems` says where, what holds there and what was got.
        """
        try:
            return self._decode(text)
        except _UNFIT as first:
            error: Exception = first
        kinds = _kinds(self.schema, self.schema)
        body = json_of(text, kinds)
        if kinds == _TEXT and not (body and body.startswith('"')):
            body = msgspec.json.encode(bare(text)).decode()
        if body is not None and body != text:
            try:
                return self._decode(body)
            except _UNFIT as second:
                error = second
        raise self._unfit(text, text if body is None else body, error) from error

    def _decode(self, text: str) -> Any:
        if self.type is None:
            value = msgspec.json.decode(text)
            if not self._validator().is_valid(value):
                raise ValueError("The value does not fit the schema.")
            return value
        return _reader(self.type)(text)

    def _unfit(self, text: str, body: str, error: Exception) -> OutputError:
        try:
            value = msgspec.json.decode(body)
        except _UNFIT as wrong:
            why = str(wrong).removeprefix("JSON is ")
            problems = [Problem("", f"should be JSON ({why})", shown(text))]
            is_json = False
        else:
            whole = Problem("", str(error) or "is nested too deeply", shown(value))
            problems = self._problems(value, error) or [whole]
            is_json = True
        told = "; ".join(map(str, problems[:_TOLD]))
        more = f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
        return OutputError(
            f"The answer is not of the form asked for ({self.name}): {told}{more}."
            f" It began {text[:80]!r}.",
            problems,
            is_json=is_json,
        )

    def _problems(self, value: Any, error: Exception) -> Sequence[Problem]:
        if self.type is None:
            return schema_problems(self._validator().iter_errors(value))
        details: Any = getattr(error, "errors", None)
        if callable(details):  # of pydantic
            listed = cast("Iterable[Mapping[str, Any]]", details())
            return pydantic_problems(listed, value)
        try:
            return plain_problems(value, self.type)
        except RecursionError:  # it looks into each part, and may not get as deep as the decoder
            return ()

    def _validator(self) -> Any:
        try:
            schema = msgspec.json.encode(self.schema)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"The output {self.name!r} has a schema that is no JSON: {error}."
            ) from error
        return _validator(schema, self.name)


def _schema(form: Any) -> Mapping[str, Any]:
    if _takes_pydantic(form):
        return _adapter(form).json_schema()
    (schema,), parts = msgspec.json.schema_components((form,), ref_template="#/$defs/{name}")
    if set(schema) == {"$ref"}:
        name = schema["$ref"].rpartition("/")[2]
        schema = parts.pop(name) if _once(name, parts) else schema
    if dataclasses.is_dataclass(form) or (isinstance(form, type) and issubclass(form, Struct)):
        schema = {"additionalProperties": False, **schema}
    return {**schema, "$defs": parts} if parts else schema


def _once(name: str, parts: Mapping[str, Any]) -> bool:
    return f'"#/$defs/{name}"' not in msgspec.json.encode(parts).decode()


def _takes_pydantic(form: Any) -> bool:
    """Whether a pydantic type is in it, or one that msgspec does not know."""
    if is_foreign(form):
        return True
    try:
        msgspec.json.schema_components((form,))
    except TypeError:
        return True
    return False


def _adapter(form: Any) -> Any:
    import pydantic

    return pydantic.TypeAdapter(form)


def _reader(form: Any) -> Callable[[str], Any]:
    """What reads JSON text as a value of a type; made once for each."""
    try:
        return _kept_reader(form)
    except TypeError:  # it has no hash
        return _new_reader(form)


def _new_reader(form: Any) -> Callable[[str], Any]:
    if _takes_pydantic(form):
        return _adapter(form).validate_json
    return msgspec.json.Decoder(form).decode


_kept_reader = functools.lru_cache(_KEPT)(_new_reader)


@functools.lru_cache(_KEPT)
def _validator(schema: bytes, name: str) -> Any:
    return validator_of(msgspec.json.decode(schema), f"The output {name!r}", "a form that is")


def _kinds(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """The kinds of value that a schema takes, as it names them; none, if it does not say."""
    if not isinstance(schema, Mapping) or depth > 8:  # references may go in a circle
        return frozenset()
    node = cast("Mapping[str, Any]", schema)
    named = node.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(cast("list[str]", named))
    target = str(node.get("$ref", "")).removeprefix("#/$defs/")
    if target:
        return _kinds(root.get("$defs", {}).get(target), root, depth + 1)
    choices: list[Any] = node.get("anyOf") or node.get("oneOf") or []
    if not choices and all(isinstance(one, str) for one in node.get("enum", (0,))):
        return frozenset({"string"})
    kinds = [_kinds(one, root, depth + 1) for one in choices]
    return frozenset[str]().union(*kinds) if all(kinds) else frozenset()


def _word(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:64] or "answer"
