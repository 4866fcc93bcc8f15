"""Contracts over JSON Schema that comes as data. jsonschema_rs is imported at the first check."""

from collections.abc import Mapping
from typing import Any, cast

from retinue.errors import ConfigError
from retinue.tools.schema import ArgumentsError, Schema, misnamed
from retinue.tools.signature import Signature
from retinue.tools.validators import validator_of


class GivenContract:
    """A contract over a schema; the values go to the function as they are.

    Raises:
        ConfigError: the schema is no object schema, or the function cannot take its properties.
    """

    __slots__ = ("_validator", "parameters", "tool")

    def __init__(self, tool: str, signature: Signature, given: Mapping[str, Any]) -> None:
        self.tool = tool
        self.parameters: Schema = dict(given)
        self._validator: Any = None
        properties: Any = self.parameters.setdefault("properties", {})
        if self.parameters.setdefault("type", "object") != "object" or not isinstance(
            properties, Mapping
        ):
            raise ConfigError(
                f"The tool {tool!r} has parameters= that describe no object; give"
                ' {"type": "object", "properties": {...}}.'
            )
        taken = {p.name for p in signature.parameters}
        lost = [name for name in cast("Mapping[str, Any]", properties) if name not in taken]
        if lost and not signature.open:
            raise ConfigError(
                f"The tool {tool!r} has parameters= with {lost[0]!r}, which its function does not"
                " take; take **kwargs."
            )

    def prepare(self) -> None:
        """Builds the validator. Formats count; references to other documents are refused."""
        self._validator = validator_of(
            self.parameters, f"The tool {self.tool!r}", "parameters= that are"
        )

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, checked."""
        if self._validator is None:
            self.prepare()
        values = dict(arguments)
        validator: Any = self._validator
        problems = [_problem(error) for error in validator.iter_errors(values)]
        if problems:
            named = misnamed(values, self.parameters) if self._is_closed() else []
            raise ArgumentsError(self.tool, list(dict.fromkeys(named + problems)), self.parameters)
        return values

    def _is_closed(self) -> bool:
        return self.parameters.get("additionalProperties") is False


def _problem(error: Any) -> str:
    where = ".".join(str(step) for step in error.instance_path)
    return f"{where!r}: {error.message}" if where else str(error.message)
