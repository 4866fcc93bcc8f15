"""The form of an answer as it is asked for."""

import json
from typing import Any

import msgspec
import pytest

from retinue.chains.output import Output
from tests.wire.sends.openai.encoding import (
    encoded,
)


class City(msgspec.Struct):
    name: str
    people: int


CITY = Output.of(City)
CLOSED = {
    "type": "object",
    "title": "City",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
    "additionalProperties": False,
}


def test_a_schema_that_fits_strict_mode_is_sent_as_strict() -> None:
    body = encoded("Hi", output=CITY)
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "City", "schema": CLOSED, "strict": True},
    }
    assert len(body["messages"]) == 1


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "string", "default": "x"},
        {"type": "string", "minLength": 3},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": []},
        {"type": "array"},
        {"oneOf": [{"type": "string"}]},
        {"type": "string", "format": "uri"},
        {"$ref": "#/$defs/x", "description": "with a neighbour"},
        {},
    ],
    ids=str,
)
def test_a_schema_that_strict_mode_refuses_is_sent_as_it_is(inner: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    wanted = encoded("Hi", output=Output(schema))["response_format"]["json_schema"]
    assert wanted == {"name": "answer", "schema": schema, "strict": False}


def test_nested_schemas_are_closed_all_the_way_down() -> None:
    leaf = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": leaf},
            "either": {"anyOf": [leaf, {"type": "null"}]},
            "ref": {"$ref": "#/$defs/leaf"},
        },
        "required": ["ref", "either", "list"],
        "$defs": {"leaf": leaf},
    }
    wanted = encoded("Hi", output=Output(schema))["response_format"]["json_schema"]
    assert wanted["strict"] is True
    closed = {**leaf, "additionalProperties": False}
    properties = wanted["schema"]["properties"]
    assert properties["list"]["items"] == closed
    assert properties["either"]["anyOf"][0] == closed
    assert wanted["schema"]["$defs"]["leaf"] == closed
    assert "additionalProperties" not in schema  # the user's own is as it was


@pytest.mark.parametrize(
    ("gateway", "output", "form"),
    [
        ("deepseek", CITY, {"type": "json_object"}),
        ("minimax", CITY, None),
        ("openai", Output({"type": "array", "items": {"type": "string"}}), None),
    ],
)
def test_a_form_that_the_gateway_cannot_be_asked_for_is_asked_for_in_words(
    gateway: str, output: Output, form: dict[str, Any] | None
) -> None:
    body = encoded("Hi", gateway=gateway, output=output, instructions=("Be brief.",))
    assert body.get("response_format") == form
    words = body["messages"][0]["content"]
    assert words.startswith("Be brief.\n\nAnswer with JSON")
    assert json.dumps(output.schema, separators=(",", ":")) in words
