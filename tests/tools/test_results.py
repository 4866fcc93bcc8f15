"""What a tool gave, as the model reads it."""

import enum
import json
from collections import ChainMap
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from retinue.messages import File, Image, Text, ToolCall
from retinue.tools import ToolReturn, as_result
from retinue.tools.results import TEXT_LIMIT

pytestmark = [pytest.mark.rule("R-TOOL-6"), pytest.mark.behaviour("B-LO-18")]

CALL = ToolCall("c1", "give")


def text(value: Any) -> str:
    return as_result(CALL, value).text


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    YES = "yes"


@dataclass
class Place:
    x: int
    at: datetime


class City(BaseModel):
    name: str
    founded: date


class Row(msgspec.Struct):
    n: int


class Rude:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Array:
    def tolist(self) -> list[list[int]]:
        return [[1, 2], [3, 4]]


MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (2**80, str(2**80)),
        (1.5, "1.5"),
        (float("nan"), "null"),
        (Colour.RED, '"red"'),
        (Word.YES, "yes"),
        (MOMENT, '"2026-01-31T12:00:00Z"'),
        (Decimal("1.10"), '"1.10"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (b"\x00\xff", '"AP8="'),
        ({"b", "a"}, '["a","b"]'),
        (frozenset({2, 1}), "[1,2]"),
        ({"tags": {"y", "x"}, "n": [({3, 2},)]}, '{"tags":["x","y"],"n":[[[2,3]]]}'),
        (Place(1, MOMENT), '{"x":1,"at":"2026-01-31T12:00:00Z"}'),
        ([City(name="Rome", founded=date(1, 2, 3))], '[{"name":"Rome","founded":"0001-02-03"}]'),
        ({"row": Row(1), "city": None}, '{"row":{"n":1},"city":null}'),
        (ChainMap({"a": 1}), '{"a":1}'),
        ((n for n in range(3)), "[0,1,2]"),
        ({"all": iter("ab")}, '{"all":["a","b"]}'),
        ({1: "a", None: "b", (1, 2): "c"}, '{"1":"a","null":"b","[1,2]":"c"}'),
        ({"all": iter("ab"), (1, 2): 3}, '{"all":["a","b"],"[1,2]":3}'),
        (Array(), "[[1,2],[3,4]]"),
        (Path("a/b"), "a/b"),
        ([Path("a/b")], '["a/b"]'),
        (Rude(), "<Rude that cannot be shown>"),
        ([], "[]"),
        (["a", "b"], '["a","b"]'),
        (ToolReturn({"a": 1}, {"slot": 2}), '{"a":1}'),
    ],
    ids=range(31),
)
def test_a_value_becomes_text_or_json(value: Any, told: str) -> None:
    assert text(value) == told


def test_sets_that_cannot_be_sorted_still_have_one_order() -> None:
    assert text({1, "a", None}) == text({None, "a", 1}) == '["a",1,null]'


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        (["a\udfff"], '["a\ufffd"]'),
        ({"k\ud800": {"in": {"x\ud800"}}}, '{"k\ufffd":{"in":["x\ufffd"]}}'),
        (Text("\ud800"), "\ufffd"),
    ],
    ids=["half", "both halves", "in a list", "in a key", "in a part"],
)
def test_invalid_surrogates_are_replaced(value: Any, told: str) -> None:
    assert text(value) == told
    assert text(value).encode()


def test_a_value_that_holds_itself_does_not_raise() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert text(endless) == "[[...]]"


def test_parts_and_lists_of_them_stay_parts() -> None:
    image, file = Image(b"\x89PNG"), File(b"%PDF", media_type="application/pdf")
    assert as_result(CALL, image).parts == (image,)
    assert as_result(CALL, ["see:", image, file]).parts == (Text("see:"), image, file)
    assert as_result(CALL, (Text("a"), Text("b"))).text == "ab"


def test_long_text_is_cut_and_says_how_much_is_missing() -> None:
    long = "x" * (TEXT_LIMIT + 234_567)
    assert text(long) == "x" * TEXT_LIMIT + "\n[cut: 234,567 of 1,234,567 characters left out]"
    assert text("x" * TEXT_LIMIT) == "x" * TEXT_LIMIT
    assert text([long]).endswith("characters left out]")
    assert as_result(CALL, [Text(long), Image(b"")]).text.endswith("characters left out]")


def test_the_result_answers_its_call() -> None:
    result = as_result(CALL, "no", ok=False, note={"by": "gate"})
    assert (result.call_id, result.name, result.ok, result.note) == (
        "c1", "give", False, {"by": "gate"},
    )  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON.filter(lambda value: not isinstance(value, str)))
def test_json_values_come_back_as_they_were(value: Any) -> None:
    assert json.loads(text(value)) == value


ANY = st.recursive(
    st.none()
    | st.binary()
    | st.floats()
    | st.dates()
    | st.complex_numbers()
    | st.text(st.characters())
    | st.sampled_from([Rude(), Colour.RED, object, len, Row(1), "\ud800", ...]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.integers() | st.text() | st.none() | st.dates(), inner, max_size=3)
        | st.builds(iter, st.lists(inner, max_size=2))
    ),
    max_leaves=8,
)


@given(ANY)
def test_nothing_makes_a_result_raise_or_leave_unicode(value: Any) -> None:
    as_result(CALL, value).text.encode()
