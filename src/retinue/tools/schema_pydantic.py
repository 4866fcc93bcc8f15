"""Contracts over pydantic types, and over types that only pydantic reads. Imported on demand."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo

from retinue.errors import ConfigError
from retinue.tools.schema import ArgumentsError, Schema, misnamed, object_schema
from retinue.tools.signature import REQUIRED, Parameter


class PydanticContract:
    """A contract over types that pydantic reads, by pydantic's own (lax) rules.

    Raises:
        ConfigError: pydantic does not know a type either; the message names the parameter.
    """

    __slots__ = ("_model", "_names", "parameters", "tool")

    def __init__(self, tool: str, parameters: Sequence[Parameter]) -> None:
        self.tool = tool
        # Fields of a model may not be called `_private`, `copy` or `model_config`; aliases may.
        self._names = {p.name: f"p{n}" for n, p in enumerate(parameters)}
        fields: dict[str, Any] = {
            self._names[p.name]: (p.annotation, _field(tool, p)) for p in parameters
        }
        try:
            self._model: type[BaseModel] = create_model(
                "Arguments", __config__=ConfigDict(extra="forbid"), **fields
            )
            schema = self._model.model_json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError, NameError) as error:
            culprit = next((p for p in parameters if _refused(p)), parameters[0])
            raise ConfigError(
                f"The tool {tool!r} annotates {culprit.name!r} with a type that has no JSON form:"
                f" {culprit.annotation!r}.{_advice(error)}"
            ) from error
        definitions: Mapping[str, Schema] = schema.get("$defs", {})
        properties: Mapping[str, Schema] = schema.get("properties", {})
        self.parameters = object_schema(
            parameters, [properties[p.name] for p in parameters], definitions
        )

    def prepare(self) -> None:
        """Nothing: the model is there already."""

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the types the function wants."""
        try:
            fields = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            problems = misnamed(arguments, self.parameters)
            problems += [
                f"{'.'.join(map(str, one['loc']))!r}: {one['msg'][:1].lower()}{one['msg'][1:]}"
                for one in error.errors(include_url=False, include_context=False)
                if len(one["loc"]) > 1 or one["type"] not in ("missing", "extra_forbidden")
            ]
            raise ArgumentsError(self.tool, problems, self.parameters) from None
        return {name: getattr(fields, self._names[name]) for name in arguments}


def _field(tool: str, parameter: Parameter) -> Any:
    if isinstance(parameter.default, FieldInfo):
        raise ConfigError(
            f"The tool {tool!r} has Field(...) as the default of {parameter.name!r}; write"
            f" {parameter.name}: Annotated[<type>, Field(...)] = <default>."
        )
    if parameter.default is REQUIRED:
        return Field(alias=parameter.name)
    return Field(alias=parameter.name, default_factory=_absent)


def _advice(error: Exception) -> str:
    """What pydantic says of a type that it reads in another form only."""
    return f" {error.message}" if type(error) is PydanticUserError else ""


def _absent() -> None:
    """Stands for a default, which is the function's own."""


def _refused(parameter: Parameter) -> bool:
    try:
        create_model("Argument", value=(parameter.annotation, ...)).model_json_schema()
    except Exception:
        return True
    return False
