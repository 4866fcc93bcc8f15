"""Validators of JSON Schema that comes as data. jsonschema_rs is imported when one is made."""

from collections.abc import Mapping
from typing import Any

from retinue.errors import ConfigError, MissingExtraError


def validator_of(schema: Mapping[str, Any], owner: str, named: str) -> Any:
    """The validator of a schema. Formats count; references to other documents are refused.

    Args:
        schema: the schema.
        owner: whose it is, as an error begins.
        named: what it is to its owner, as an error goes on: "parameters= that are".

    Returns:
        an object with `is_valid(value)` and `iter_errors(value)`.

    Raises:
        MissingExtraError: jsonschema-rs is not installed.
        ConfigError: it is no schema.
    """
    try:
        import jsonschema_rs
    except ImportError as error:
        raise MissingExtraError(
            f"{owner} has its schema as data, which needs jsonschema-rs:"
            " pip install 'retinue[schema]'."
        ) from error
    try:
        return jsonschema_rs.validator_for(
            dict(schema), validate_formats=True, retriever=_no_retrieval
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        told = getattr(error, "message", error)
        raise ConfigError(f"{owner} has {named} no valid JSON Schema: {told}.") from error


def _no_retrieval(uri: str) -> Any:
    raise ValueError(f"{uri} is another document; put what it defines under $defs")
