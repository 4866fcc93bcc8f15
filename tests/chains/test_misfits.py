"""What a model is told of an answer that does not fit: path, expected, got."""

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from retinue import ConfigError
from retinue.chains import Output
from retinue.errors import OutputError


class Kind(enum.Enum):
    TOWN = "town"
    CITY = "city"


class Place(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    kind: Kind
    size: Annotated[int, msgspec.Meta(ge=0)] = 0


class Street(msgspec.Struct, rename="camel"):
    house_number: int


@dataclass
class Trip:
    stops: list[Place]
    by: Literal["train", "boat"]
    days: dict[str, int] = field(default_factory=dict)
    guide: Place | None = None


class Note(TypedDict):
    text: str
    stars: NotRequired[int]


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    age: Annotated[int, Field(ge=0)]
    pet: "int | list[str]" = 0
    friends: "list[Person]" = []

    @model_validator(mode="after")
    def is_not_alone(self) -> "Person":
        if self.name == "Robinson":
            raise ValueError("Robinson has a friend")
        return self


GIVEN = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "mail": {"type": "string", "format": "email"},
        "who": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Person"}]},
        "kind": {"enum": ["a", "b"]},
        "one": {"const": 1},
    },
    "required": ["code"],
    "additionalProperties": False,
    "$defs": {
        "Person": {
            "type": "object",
            "properties": {"age": {"type": "integer", "minimum": 0}},
            "required": ["age"],
        }
    },
}


def problems(form: Any, answer: str) -> list[str]:
    with pytest.raises(OutputError) as caught:
        Output.of(form).read(answer)
    assert caught.value.is_json
    return list(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("form", "answer", "told"),
    [
        (Place, "{}", ["name: is required, got nothing", "kind: is required, got nothing"]),
        (
            Place,
            '{"name": 1, "kind": "village", "size": -1}',
            [
                "name: should be str, got 1",
                'kind: should be one of "town", "city", got "village"',
                "size: should be int >= 0, got -1",
            ],
        ),
        (
            Trip,
            '{"stops": [{"name": "A", "kind": "town"}, {"kind": 1}], "by": "bus",'
            ' "days": {"x": []}}',
            [
                "stops[1].name: is required, got nothing",
                'stops[1].kind: should be one of "town", "city", got 1',
                'by: should be one of "train", "boat", got "bus"',
                "days.x: should be int, got []",
            ],
        ),
        (
            Trip,
            '{"stops": [], "by": "boat", "guide": {"name": "A"}}',
            ["guide.kind: is required, got nothing"],
        ),
        (Street, '{"houseNumber": "1"}', ['houseNumber: should be int, got "1"']),
        (
            Note,
            '{"stars": "*"}',
            ["text: is required, got nothing", 'stars: should be int, got "*"'],
        ),
        (list[int], "[1, null]", ["[1]: should be int, got null"]),
        (tuple[int, ...], '["x"]', ['[0]: should be int, got "x"']),
        (Place, "[1]", ["the answer: should be object, got [1]"]),
        (Place, "null", ["the answer: should be object, got null"]),
        (int | str, "[]", ["the answer: should be int | str, got []"]),
    ],
)
@pytest.mark.behaviour("B-VA-5")
def test_all_that_is_wrong_with_a_plain_type_is_named(
    form: Any, answer: str, told: list[str]
) -> None:
    assert problems(form, answer) == told


def test_a_field_that_a_closed_type_does_not_have_is_named() -> None:
    told = problems(Place, '{"name": "A", "kind": "town", "mayor": "B"}')
    assert told == ['mayor: is no field of the form, got "B"']


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            '{"age": -1, "height": 2}',
            [
                "name: is required, got nothing",
                "age: should be greater than or equal to 0, got -1",
                "height: is no field of the form, got 2",
            ],
        ),
        (
            '{"name": "A", "age": 1, "pet": {}, "friends": [{"name": "B"}]}',
            [
                "pet: should be a valid integer or should be a valid array, got {}",
                "friends[0].age: is required, got nothing",
            ],
        ),
        (
            '{"name": "Robinson", "age": 1}',
            ['the answer: Robinson has a friend, got {"name":"Robinson","age":1}'],
        ),
        ("[]", ["the answer: should be an object, got []"]),
    ],
)
@pytest.mark.behaviour("B-VA-5")
def test_all_that_is_wrong_with_a_pydantic_type_is_named(answer: str, told: list[str]) -> None:
    assert problems(Person, answer) == told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("{}", ["code: is required, got nothing"]),
        ('{"code": "oslo"}', ['code: should match the pattern ^[A-Z]{3}$, got "oslo"']),
        ('{"code": "OSL", "x": 1}', ["x: is no field of the form, got 1"]),
        ('{"code": "OSL", "mail": "a"}', ['mail: should be of the format email, got "a"']),
        ('{"code": "OSL", "kind": "c"}', ['kind: should be one of "a", "b", got "c"']),
        ('{"code": "OSL", "one": 2}', ["one: should be 1, got 2"]),
        ("[]", ["the answer: should be of type object, got []"]),
    ],
)
@pytest.mark.behaviour("B-VA-5")
def test_all_that_is_wrong_by_a_schema_given_as_data_is_named(answer: str, told: list[str]) -> None:
    assert problems(GIVEN, answer) == told


@pytest.mark.behaviour("B-VA-5")
def test_of_several_schemas_each_says_why_it_is_not_that() -> None:
    [told] = problems(GIVEN, '{"code": "OSL", "who": {"age": -1}}')
    assert told.startswith("who: ")
    assert "should be of type string" in told
    assert "who.age: -1 is less than the minimum of 0" in told


def test_a_long_value_is_cut_where_it_is_quoted() -> None:
    [told] = problems(list[int], f'["{"x" * 500}"]')
    assert told.endswith("…")
    assert len(told) < 150


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "thing"}, "no valid JSON Schema"),
        ({"$ref": "https://example.com/schema.json"}, "another document"),
        ({"const": object()}, "no JSON"),
    ],
)
def test_a_schema_that_is_none_is_refused_at_once(schema: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Output.of(schema)


def test_a_schema_given_as_data_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jsonschema_rs", None)
    with pytest.raises(ConfigError, match=r"needs jsonschema-rs: pip install 'retinue\[schema\]'"):
        Output.of({"type": "object", "title": "not seen before"})


def test_a_word_is_a_string_where_a_string_is_asked_for() -> None:
    yes_or_no = Output.of(Literal["yes", "no"])
    assert (
        yes_or_no.read("yes") == yes_or_no.read('"yes"') == yes_or_no.read("```\nyes\n```") == "yes"
    )
    assert Output.of(str).read("<think>hm</think>It is [Oslo].") == "It is [Oslo]."
    assert Output.of(Kind).read("town") is Kind.TOWN
    assert problems(Literal["yes", "no"], "Yes!") == [
        'the answer: should be one of "yes", "no", got "Yes!"'
    ]
    with pytest.raises(OutputError) as caught:
        Output.of(str | int).read("a word")
    assert not caught.value.is_json


@pytest.mark.parametrize("answer", ["[" * 100_000, "\ud800", "x" * 100_000, '{"a": "\ud800"}'])
def test_an_answer_of_any_shape_is_read_or_refused(answer: str) -> None:
    for form in (list[int], Person, {"type": "object"}):
        with pytest.raises(OutputError):
            Output.of(form).read(answer)
