"""Forms of final answers: the schema that is sent, and how an answer is read."""

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field, field_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass

from retinue import Agent, ConfigError
from retinue.chains import Output
from retinue.errors import OutputError
from retinue.models.scripted import Scripted


class Kind(enum.Enum):
    TOWN = "town"
    CITY = "city"


@dataclass
class Plain:
    name: str
    size: int = 0


class Typed(TypedDict):
    name: str


class Packed(msgspec.Struct):
    name: str
    kind: Kind = Kind.TOWN


class Pedantic(BaseModel):
    name: str
    size: Annotated[int, Field(ge=0)] = 0

    @field_validator("name")
    @classmethod
    def has_no_digit(cls, name: str) -> str:
        if any(letter.isdigit() for letter in name):
            raise ValueError("a name has no digits")
        return name


@pydantic_dataclass
class Both:
    name: str


@dataclass
class Holding:
    inner: Pedantic


class Chain(msgspec.Struct):
    next: "Chain | None" = None


class Tree(msgspec.Struct):
    children: "list[Tree]" = []


OSLO = '{"name": "Oslo"}'


@pytest.mark.parametrize(
    ("form", "text", "value"),
    [
        (Plain, OSLO, Plain("Oslo")),
        (Typed, OSLO, {"name": "Oslo"}),
        (Packed, '{"name": "Oslo", "kind": "city"}', Packed("Oslo", Kind.CITY)),
        (Pedantic, OSLO, Pedantic(name="Oslo")),
        (Both, OSLO, Both("Oslo")),
        (Holding, f'{{"inner": {OSLO}}}', Holding(Pedantic(name="Oslo"))),
        (list[Pedantic], f"[{OSLO}]", [Pedantic(name="Oslo")]),
        (Pedantic | None, "null", None),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, float], '{"a": 1.5}', {"a": 1.5}),
        (Literal["yes", "no"], '"yes"', "yes"),
        (Annotated[int, Field(gt=3)], "4", 4),
        (Kind, '"town"', Kind.TOWN),
        (bool, "true", True),
        (Tree, '{"children": [{}]}', Tree([Tree()])),
    ],
)
def test_an_answer_is_read_as_a_value_of_the_type(form: Any, text: str, value: Any) -> None:
    read = Output.of(form).read(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("form", "text", "told"),
    [
        (Plain, "Oslo", "malformed"),
        (Plain, '{"size": 1}', "name"),
        (Plain, '{"name": "Oslo", "size": "big"}', 'size: should be int, got "big"'),
        (Plain, '{"name": "Oslo"', "truncated"),
        (Plain, "", "truncated"),
        (Typed, "[]", "object"),
        (Packed, '{"name": "Oslo", "kind": "village"}', "village"),
        (Pedantic, "{}", "name: is required, got nothing"),
        (Pedantic, '{"name": "Oslo", "size": -1}', "size: .*greater than or equal to 0"),
        (Pedantic, '{"name": "R2D2"}', "name: .*a name has no digits"),
        (list[Pedantic], f"[{OSLO}, {{}}]", r"\[1\]\.name: is required"),
        (list[int], "[1, null]", r"\[1\]: should be int, got null"),
        ({"type": "object"}, "no JSON", "malformed"),
    ],
)
def test_an_answer_that_does_not_fit_says_where_and_shows_how_it_began(
    form: Any, text: str, told: str
) -> None:
    with pytest.raises(OutputError, match=told) as caught:
        Output.of(form).read(text)
    assert str(caught.value).endswith(f"It began {text[:80]!r}.")
    assert "\n" not in str(caught.value)


def test_the_schema_names_the_fields_and_the_required_ones() -> None:
    for form in (Plain, Packed, Pedantic, Both, Typed):
        schema = Output.of(form).schema
        assert schema["type"] == "object"
        assert schema["properties"]["name"]["type"] == "string"
        assert schema["required"] == ["name"]
        assert Output.of(form).name == form.__name__


def test_a_recursive_type_keeps_its_references_whole() -> None:
    schema = Output.of(Tree).schema
    assert "Tree" in schema["$defs"]
    assert msgspec.json.encode(schema).count(b'"#/$defs/Tree"') == 2


def test_a_json_schema_is_a_form_and_gives_plain_values() -> None:
    form = {"type": "object", "title": "a city!", "properties": {"name": {"type": "string"}}}
    output = Output.of(form)
    assert (output.schema, output.name, output.type) == (form, "a_city_", None)
    assert output.read(OSLO) == {"name": "Oslo"}
    assert Output.of(output) is output


@pytest.mark.parametrize("form", [object(), 42, "Plain", len])
def test_what_has_no_schema_is_refused_when_the_agent_is_built(form: Any) -> None:
    with pytest.raises(ConfigError, match="No JSON Schema can be made of the output type"):
        Agent(Scripted(), output=form)


async def test_the_result_of_a_turn_reads_the_answer() -> None:
    model = Scripted(OSLO, OSLO)
    agent = Agent(model, output=Plain)
    assert (await agent.run("where?")).output == Plain("Oslo")
    assert [request.output for request in model.requests] == [Output.of(Plain)]
    assert (await agent.run("where?", output=Pedantic)).output == Pedantic(name="Oslo")


async def test_without_a_form_there_is_no_output() -> None:
    assert (await Agent(Scripted(OSLO)).run("where?")).output is None


@pytest.mark.parametrize("depth", [50, 600, 5_000])
def test_however_deep_an_answer_is_nested_what_is_wrong_with_it_is_told(depth: int) -> None:
    answer = '{"next":' * depth + "7" + "}" * depth
    with pytest.raises(OutputError) as caught:
        Output.of(Chain).read(answer)
    assert len(caught.value.problems) == 1
