"""What a model is told of a tool: name, description, JSON Schema."""

import enum
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict as ExtendedTypedDict

from retinue.errors import ConfigError, MissingExtraError
from retinue.tools import ProcessPool, Tool, tool
from retinue.tools.schema import ArgumentsError

pytestmark = pytest.mark.rule("R-TOOL-1")


def properties(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    return Tool(function, **options).spec.parameters["properties"]


class Unit(enum.Enum):
    KM = "km"
    MILE = "mile"


@dataclass
class Place:
    """A place on the map."""

    x: int
    title: str = "here"


@dataclass
class Spot:
    name: str


@dataclass
class Node:
    value: int
    children: list["Node"] = field(default_factory=list)


class Options(TypedDict):
    depth: int
    fast: NotRequired[bool]


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0, description="how many live there")


def test_plain_types_have_their_json_names() -> None:
    def search(query: str, limit: int, score: float, exact: bool, anything: Any, untyped) -> None:  # type: ignore[no-untyped-def]
        """Looks things up."""

    assert Tool(search).spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer"},
            "score": {"type": "number"},
            "exact": {"type": "boolean"},
            "anything": {},
            "untyped": {},
        },
        "required": ["query", "limit", "score", "exact", "anything", "untyped"],
        "additionalProperties": False,
    }


@pytest.mark.behaviour("B-LO-19")
def test_unions_literals_enums_and_containers() -> None:
    def f(
        a: int | None,
        b: Literal["x", "y"],
        c: Unit,
        d: list[int] | dict[str, float],
        e: tuple[int, str],
        g: set[str],
        h: datetime,
        i: bytes,
    ) -> None:
        """Takes much."""

    assert properties(f) == {
        "a": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "b": {"enum": ["x", "y"]},
        "c": {"enum": ["km", "mile"]},
        "d": {
            "anyOf": [
                {"type": "array", "items": {"type": "integer"}},
                {"type": "object", "additionalProperties": {"type": "number"}},
            ]
        },
        "e": {
            "type": "array", "minItems": 2, "maxItems": 2, "items": False,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
        },
        "g": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "h": {"type": "string", "format": "date-time"},
        "i": {"type": "string", "contentEncoding": "base64"},
    }  # fmt: skip


def test_nested_types_stand_where_they_are_used_and_without_titles() -> None:
    def f(at: Place, options: Options) -> None:
        """Goes somewhere."""

    assert properties(f) == {
        "at": {
            "type": "object",
            "description": "A place on the map.",
            "properties": {
                "x": {"type": "integer"},
                "title": {"type": "string", "default": "here"},
            },
            "required": ["x"],
        },
        "options": {
            "type": "object",
            "properties": {"depth": {"type": "integer"}, "fast": {"type": "boolean"}},
            "required": ["depth"],
        },
    }


def test_a_type_that_holds_itself_stays_a_definition() -> None:
    def f(tree: Annotated[Node, "where to start"]) -> None:
        """Walks."""

    schema = Tool(f).spec.parameters
    assert schema["properties"]["tree"] == {
        "anyOf": [{"$ref": "#/$defs/Node"}],
        "description": "where to start",
    }
    children = schema["$defs"]["Node"]["properties"]["children"]
    assert children["items"] == {"$ref": "#/$defs/Node"}


def test_pydantic_types_are_read_by_pydantic() -> None:
    def f(city: City, size: Annotated[int, Field(ge=1, description="of the map")] = 3) -> None:
        """Draws."""

    schema = Tool(f).spec.parameters
    assert schema == {
        "type": "object",
        "properties": {
            "city": {
                "type": "object",
                "description": "A city.",
                "properties": {
                    "name": {"type": "string"},
                    "people": {
                        "type": "integer", "minimum": 0, "description": "how many live there",
                    },
                },
                "required": ["name", "people"],
            },
            "size": {"type": "integer", "minimum": 1, "description": "of the map", "default": 3},
        },
        "required": ["city"],
        "additionalProperties": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "annotation",
    [list[City], dict[str, City | None], Annotated[list[City], "all"], tuple[int, list[City]]],
)
def test_a_pydantic_type_is_found_however_deep_it_stands(annotation: Any) -> None:
    def f(x: Any) -> None:
        """Takes it."""

    f.__annotations__["x"] = annotation
    assert "how many live there" in str(Tool(f).spec.parameters)


Positive = Annotated[int, Field(gt=0)]
Held = TypeVar("Held")


@dataclass
class Box:
    count: Positive
    inner: "Box | None" = None


@dataclass
class Crate(Generic[Held]):
    held: Held
    count: Positive


class Lot(NamedTuple):
    amount: Positive


class Order(ExtendedTypedDict):
    count: NotRequired[Positive]


@pytest.mark.parametrize(
    ("annotation", "wrong"),
    [
        (Box, {"count": 0}),
        (list[Box], [{"count": 0}]),
        (Crate[str], {"held": "x", "count": 0}),
        (Lot, [0]),
        (Order, {"count": 0}),
    ],
)
def test_constraints_of_pydantic_hold_inside_other_classes(annotation: Any, wrong: Any) -> None:
    def f(x: Any) -> None:
        """Takes it."""

    f.__annotations__["x"] = annotation
    assert "exclusiveMinimum" in str(Tool(f).spec.parameters)
    with pytest.raises(ArgumentsError, match="greater than 0"):
        Tool(f).bind({"x": wrong})


def test_a_typed_dict_that_pydantic_cannot_read_is_refused_with_its_advice() -> None:
    class Plain(TypedDict):
        count: Positive

    def f(x: Plain) -> None:
        """Takes it."""

    if sys.version_info >= (3, 12):
        assert "exclusiveMinimum" in str(Tool(f).spec.parameters)
        return
    with pytest.raises(ConfigError, match=r"annotates 'x'.*use `typing_extensions.TypedDict`"):
        Tool(f).check()


def test_types_that_only_pydantic_knows_work_too() -> None:
    def f(file: Path, either: Place | Unit | Spot) -> None:
        """Opens."""

    found = properties(f)
    assert found["file"] == {"type": "string", "format": "path"}
    assert [one["type"] for one in found["either"]["anyOf"]] == ["object", "string", "object"]
    bound = Tool(f).bind({"file": "a/b", "either": {"name": "x"}})
    assert bound == {"file": Path("a/b"), "either": Spot("x")}


def test_a_type_that_has_no_json_form_is_refused_by_name() -> None:
    def f(x: int, odd: threading.Event) -> None:
        """Takes what no model can write."""

    with pytest.raises(ConfigError, match="'f' annotates 'odd' with a type that has no JSON"):
        Tool(f).check()


def test_defaults_are_told_where_they_are_json() -> None:
    marker = object()

    def f(a: int = 3, b: Unit = Unit.KM, c: Any = marker, d: str | None = None) -> object:
        """Gives its default."""
        return c

    found = properties(f)
    assert found["a"]["default"] == 3
    assert found["b"]["default"] == "km"
    assert "default" not in found["c"]
    assert found["d"]["default"] is None
    assert "required" not in Tool(f).spec.parameters
    assert Tool(f)(**Tool(f).bind({"a": 1})) is marker


@pytest.mark.behaviour("B-LO-19")
def test_parameters_may_have_any_name() -> None:
    @tool
    def odd(self: str, ctx: int, request: str, _private: int, copy: City, model_config: int) -> str:
        """Takes names that libraries like to use themselves."""
        return f"{self}{ctx}{request}{_private}{copy.name}{model_config}"

    @tool
    def plain(self: str, _private: int, cls: str, arguments: int) -> str:
        """The same without pydantic."""
        return f"{self}{_private}{cls}{arguments}"

    given = {"self": "a", "ctx": 1, "request": "b", "_private": 2, "model_config": 3}
    city = {"name": "Rome", "people": 1}
    assert list(odd.spec.parameters["properties"]) == [
        "self", "ctx", "request", "_private", "copy", "model_config",
    ]  # fmt: skip
    assert odd(**odd.bind({**given, "copy": city})) == "a1b2Rome3"
    assert plain(**plain.bind({"self": "a", "_private": 1, "cls": "b", "arguments": 2})) == "a1b2"


SCHEMA = {
    "type": "object",
    "properties": {"day": {"$ref": "#/$defs/day"}, "n": {"oneOf": [{"const": 1}, {"const": 2}]}},
    "required": ["day"],
    "additionalProperties": False,
    "$defs": {"day": {"type": "string", "format": "date"}},
}


def test_a_schema_that_comes_as_data_is_told_as_it_is() -> None:
    def f(**kwargs: Any) -> Any:
        """Takes what the schema says."""
        return kwargs

    made = Tool(f, parameters=SCHEMA)
    made.check()
    assert made.spec.parameters == SCHEMA
    assert made.bind({"day": "2026-01-31"}) == {"day": "2026-01-31"}


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "array"}, "describe no object"),
        ({"type": "object", "properties": {"x": {"type": "nonsense"}}}, "no valid JSON Schema"),
        ({"$ref": "https://example.org/schema.json"}, "put what it defines under"),
        ({"properties": {"y": {}}}, "'y', which its function does not take"),
    ],
)
def test_a_wrong_schema_is_refused(schema: dict[str, Any], told: str) -> None:
    def f(x: int) -> None:
        """Takes x."""

    with pytest.raises(ConfigError, match=f"'f'.*{told}"):
        Tool(f, parameters=schema).check()


def test_a_date_comes_as_a_date() -> None:
    def f(day: date) -> None:
        """Takes a day."""

    assert Tool(f).bind({"day": "2026-01-31"}) == {"day": date(2026, 1, 31)}


def test_what_an_optional_package_would_do_is_told_when_it_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def f(file: Path, **kwargs: Any) -> None:
        """Opens."""

    def g(n: int, file: Path) -> None:
        """Opens."""

    monkeypatch.delitem(sys.modules, "retinue.tools.schema_pydantic", raising=False)
    for package in ("pydantic", "jsonschema_rs", "pebble"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=r"'g' annotates 'file'.*install pydantic"):
        Tool(g).check()
    with pytest.raises(MissingExtraError, match=r"'f' has its schema as data.*retinue\[schema\]"):
        Tool(f, parameters=SCHEMA).check()
    with pytest.raises(MissingExtraError, match=r"'g' runs functions in processes.*\[process\]"):
        Tool(g, isolation="process").check()
    with pytest.raises(MissingExtraError, match="ProcessPool runs functions in processes"):
        ProcessPool(1)
