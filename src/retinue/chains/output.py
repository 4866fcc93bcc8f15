"""The form that a final answer must have, and how it is read."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from retinue.errors import ConfigError, OutputError
from retinue.tools.contract import is_foreign


class Output(Struct, frozen=True):
    """The form that the final answer must have. `Output.of` makes one.

    Attributes:
        schema: JSON Schema of it.
        name: what the provider is told it is called.
        type: the Python type that the answer is read as, or None for plain JSON values.
    """

    schema: Mapping[str, Any]
    name: str = "answer"
    type: Any = None

    @classmethod
    def of(cls, form: Any) -> "Output":
        """The form for a type (pydantic, dataclass, TypedDict, msgspec, plain) or a JSON Schema.

        Raises:
            ConfigError: no schema can be made of it.
        """
        if isinstance(form, Output):
            return form
        if isinstance(form, Mapping):
            schema: dict[str, Any] = dict(form)  # pyright: ignore[reportUnknownArgumentType]
            return cls(schema, _word(str(schema.get("title") or "answer")))
        name = _word(getattr(form, "__name__", "answer"))
        try:
            return cls(_schema(form), name, form)
        except Exception as error:
            raise ConfigError(f"No JSON Schema can be made of the output type {form!r}.") from error

    def read(self, text: str) -> Any:
        """The answer as a value of the type; without a type, as plain JSON values.

        Where the form is a JSON Schema given as data, the provider is held to it, and here only
        that the answer is JSON is checked.

        Raises:
            OutputError: the text does not fit; the message says where and why.
        """
        try:
            if self.type is None:
                return msgspec.json.decode(text)
            if _takes_pydantic(self.type):
                return _adapter(self.type).validate_json(text)
            return msgspec.json.decode(text, type=self.type)
        except ValueError as error:
            raise OutputError(
                f"The answer is not of the form asked for ({self.name}): {_told(error)}."
                f" It began {text[:80]!r}."
            ) from error


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


def _told(error: ValueError) -> str:
    found: Any = getattr(error, "errors", None)
    if not callable(found):
        return str(error)
    details: Any = found()
    places = ((".".join(map(str, one["loc"])), one["msg"]) for one in details)
    return "; ".join(f"{place}: {what}" if place else what for place, what in places)


def _word(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:64] or "answer"
