"""What the model wrote becomes what the function wants, or an error that the model can use."""

import contextlib
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from retinue.tools import Tool
from retinue.tools.schema import ArgumentsError

pytestmark = pytest.mark.rule("R-TOOL-2")


class Unit(enum.Enum):
    KM = "km"


@dataclass
class Place:
    x: int
    y: int = 0


class City(BaseModel):
    name: str
    people: int = 0

    @field_validator("name")
    @classmethod
    def capitalised(cls, value: str) -> str:
        if not value.istitle():
            raise ValueError("a city begins with a capital")
        return value


def plain(
    query: str,
    limit: int = 3,
    unit: Unit = Unit.KM,
    at: Place | None = None,
    tags: tuple[str, ...] = (),
) -> None:
    """Looks things up."""


def pydantic(city: City, limit: int = 3) -> None:
    """Looks a city up."""


def given_schema(**kwargs: Any) -> None:
    """Takes what the schema says."""


SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "pattern": "^[a-z]+$"},
        "limit": {"type": "integer", "maximum": 5},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def refusal(function: Callable[..., Any], arguments: Mapping[str, Any], **options: Any) -> str:
    with pytest.raises(ArgumentsError) as caught:
        Tool(function, **options).bind(arguments)
    return str(caught.value)


def test_values_become_the_types_that_the_function_names() -> None:
    arguments = {"query": "q", "unit": "km", "at": {"x": 1}, "tags": ["a", "b"]}
    assert Tool(plain).bind(arguments) == {
        "query": "q", "unit": Unit.KM, "at": Place(1), "tags": ("a", "b"),
    }  # fmt: skip
    assert Tool(pydantic).bind({"city": {"name": "Rome"}}) == {"city": City(name="Rome")}


def test_defaults_are_left_to_the_function() -> None:
    assert Tool(plain).bind({"query": "q"}) == {"query": "q"}
    assert Tool(pydantic).bind({"city": {"name": "Rome"}}).keys() == {"city"}


def test_any_mapping_will_do() -> None:
    assert Tool(plain).bind(MappingProxyType({"query": "q"})) == {"query": "q"}
    assert Tool(given_schema, parameters=SCHEMA).bind(MappingProxyType({"query": "q"}))


@pytest.mark.behaviour("B-LO-6")
@pytest.mark.parametrize(
    ("function", "options", "arguments"),
    [
        (plain, {}, {"limt": 3}),
        (given_schema, {"parameters": SCHEMA}, {"limt": 3}),
    ],
    ids=["plain", "schema as data"],
)
def test_missing_and_unknown_fields_are_all_named_with_the_valid_ones(
    function: Callable[..., Any], options: dict[str, Any], arguments: dict[str, Any]
) -> None:
    told = refusal(function, arguments, **options)
    assert told.startswith(f"The arguments of '{function.__name__}' do not fit: ")
    assert "'query' is missing" in told
    assert "'limt' is not one of its fields" in told
    assert "Its fields: query (string, required), limit (integer)" in told


@pytest.mark.behaviour("B-LO-6")
def test_every_wrong_value_is_named_with_what_was_expected_and_what_came() -> None:
    told = refusal(plain, {"query": 5, "limit": "many", "at": {"x": "a"}, "unit": "mile"})
    assert "'query': expected `str`, got `int`" in told
    assert "'limit': expected `int`, got `str`" in told
    assert "'at.x': expected `int`, got `str`" in told
    assert "'unit': invalid enum value 'mile'" in told
    assert 'unit (enum ["km"])' in told


@pytest.mark.behaviour("B-LO-6")
def test_pydantic_problems_are_named_too() -> None:
    told = refusal(pydantic, {"city": {"name": "rome", "people": "many"}, "lmit": 1})
    assert "'lmit' is not one of its fields" in told
    assert "'city.name': value error, a city begins with a capital" in told
    assert "'city.people': input should be a valid integer" in told
    assert "'city' is missing" in refusal(pydantic, {})
    only_unknown = refusal(pydantic, {"city": {"name": "Rome"}, "lmit": 1})
    assert "'lmit' is not one of its fields" in only_unknown


def test_a_schema_that_comes_as_data_is_enforced() -> None:
    told = refusal(given_schema, {"query": "ABC", "limit": 9, "mail": "no"}, parameters=SCHEMA)
    assert '\'query\': "ABC" does not match "^[a-z]+$"' in told
    assert "'limit': 9 is greater than the maximum of 5" in told
    assert '\'mail\': "no" is not a "email"' in told


def test_a_tool_without_parameters_says_so() -> None:
    def now() -> datetime:
        """The time."""
        return datetime(2026, 1, 31)

    assert Tool(now).bind({}) == {}
    assert refusal(now, {"zone": "UTC"}).endswith("It takes no arguments.")


def test_the_context_cannot_be_written_by_the_model() -> None:
    from retinue.tools import ToolContext

    def f(x: int, ctx: ToolContext) -> None:
        """Knows its turn."""

    assert "'ctx' is not one of its fields" in refusal(f, {"x": 1, "ctx": {"owner": "me"}})


def test_what_a_partial_filled_in_cannot_be_replaced_by_the_model() -> None:
    from functools import partial

    def f(x: int, token: str) -> None:
        """Uses a secret."""

    told = refusal(partial(f, token="s3cret"), {"x": 1, "token": "mine"})
    assert "'token' is not one of its fields" in told
    assert "s3cret" not in told


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def everything(
    a: int, b: str | None, c: list[Place], d: dict[str, float] | bool, e: Literal["x", 1]
) -> None:
    """Takes much."""


@given(
    st.sampled_from([(everything, None), (pydantic, None), (given_schema, SCHEMA)]),
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d", "e", "city", "limit", "query", "mail"]) | st.text(),
        JSON,
        max_size=6,
    ),
)
def test_no_json_object_does_anything_but_fit_or_be_refused(
    tried: tuple[Callable[..., Any], dict[str, Any] | None], arguments: dict[str, Any]
) -> None:
    tool = Tool(tried[0], parameters=tried[1])
    bound: dict[str, Any] | None = None
    with contextlib.suppress(ArgumentsError):
        bound = tool.bind(arguments)
    assert bound is None or bound.keys() == arguments.keys()
