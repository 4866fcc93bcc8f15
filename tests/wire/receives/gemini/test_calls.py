"""Tool calls, whole and by piece."""

import json
from typing import Any

import pytest

from retinue.messages import ToolCallDelta
from tests.wire.receives.gemini.decoding import Decoded, chunk, lines, pieces, stream, streamed


def call(more: bool = False, **fields: Any) -> dict[str, Any]:
    """A part with a call, or with a piece of one."""
    return {"functionCall": fields | ({"willContinue": True} if more else {})}


def grows(*values: dict[str, Any]) -> dict[str, Any]:
    return call(more=True, partialArgs=list(values))


def at(path: str, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value}


def said(path: str, text: str, more: bool = False) -> dict[str, Any]:
    return at(path, stringValue=text) | ({"willContinue": True} if more else {})


def calls(got: Decoded) -> list[tuple[str, Any]]:
    assert got.error is None
    return [(each.name, json.loads(each.arguments)) for each in got.message.tool_calls]


def by_piece(*values: dict[str, Any], end: bool = True) -> Any:
    """The arguments that these pieces make."""
    parts = [call(more=True, name="f"), *map(grows, values), *([call()] if end else [])]
    got = streamed(*map(chunk, parts), chunk(finish="STOP"))
    ((_, arguments),) = calls(got)
    return arguments


@pytest.mark.behaviour("B-ST-8")
def test_two_calls_of_one_name_at_once_are_told_apart() -> None:
    got = streamed(
        chunk(call(name="f", args={"x": 1}), call(name="f", args={"x": 2})),
        chunk(call(name="f", args={"x": 1}), finish="STOP"),
    )
    assert calls(got) == [("f", {"x": 1}), ("f", {"x": 2}), ("f", {"x": 1})]
    assert len({each.id for each in got.message.tool_calls}) == 3
    assert got.message.finish == "tool_calls"


def test_an_id_that_is_there_is_kept_and_one_used_twice_is_not() -> None:
    got = streamed(
        chunk(call(name="f", id="a"), call(name="g", id="b"), call(name="g", id="a"), finish="STOP")
    )
    first, second, third = (d.id for d in got.deltas if isinstance(d, ToolCallDelta))
    assert (first, second) == ("a", "b")
    assert third.startswith("call_")


@pytest.mark.behaviour("B-LO-6")
def test_a_call_without_arguments_or_with_none_has_an_empty_object() -> None:
    got = streamed(
        chunk(call(name="f"), call(name="f", args=None), call(name="f", args={}), finish="STOP")
    )
    assert [each.arguments for each in got.message.tool_calls] == ["{}", "{}", "{}"]


def test_numbers_are_handed_on_as_they_were_written() -> None:
    body = b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":'
    got = stream([body + b'{"n":12345678901234567890,"x":1.0}}}]},"finishReason":"STOP"}]}\n\n'])
    assert got.message.tool_calls[0].arguments == '{"n":12345678901234567890,"x":1.0}'


@pytest.mark.behaviour("B-ST-8")
def test_arguments_by_path_mean_the_same_at_every_split() -> None:
    body = lines(
        chunk({**call(more=True, name="f", id="a"), "thoughtSignature": "s1"}),
        chunk(grows(said("$.city", "Bü", more=True))),
        chunk(grows(said("$.city", "rglen", more=True))),
        chunk(grows(said("$.city", ""))),
        chunk(grows(at("$.days[0].n", numberValue=3), at("$.days[1].n", numberValue=0.5))),
        chunk(grows(at("$.sure", boolValue=False), at("$.none", nullValue="NULL_VALUE"))),
        chunk(call()),
        chunk(call(name="g", args={"y": 1}), finish="STOP"),
    )
    wanted = {"city": "Bürglen", "days": [{"n": 3}, {"n": 0.5}], "sure": False, "none": None}
    for cut in range(1, len(body), 5):
        got = stream(pieces(body, [cut]))
        assert calls(got) == [("f", wanted), ("g", {"y": 1})]
        assert got.kept == [{"call": "s1"}]


def test_the_name_of_a_call_by_piece_is_told_at_once_and_its_arguments_at_its_end() -> None:
    got = streamed(
        chunk(call(more=True, name="f", id="a")),
        chunk(grows(said("$.x", "1"))),
        chunk(call()),
        chunk(finish="STOP"),
    )
    deltas = [delta for delta in got.deltas if isinstance(delta, ToolCallDelta)]
    assert deltas == [ToolCallDelta(0, "a", "f"), ToolCallDelta(0, arguments='{"x":"1"}')]


@pytest.mark.parametrize("end", [True, False], ids=["ended", "never ended"])
def test_a_call_that_never_comes_to_its_end_ends_with_the_answer(end: bool) -> None:
    assert by_piece(said("$.x", "1"), end=end) == {"x": "1"}


@pytest.mark.parametrize("signed", [{"thoughtSignature": "s2"}, {}], ids=["signed", "unsigned"])
def test_a_call_that_begins_ends_the_one_before(signed: dict[str, str]) -> None:
    got = streamed(
        chunk(call(more=True, name="f")),
        chunk(grows(said("$.x", "1"))),
        chunk({**call(more=True, name="g"), **signed}),
        chunk(grows(said("$.y", "2"))),
        chunk(finish="STOP"),
    )
    assert calls(got) == [("f", {"x": "1"}), ("g", {"y": "2"})]
    assert got.shape == ["ToolCall", *["Thinking" for _ in signed], "ToolCall"]


def test_an_end_without_a_beginning_is_no_call() -> None:
    got = streamed(chunk({"text": "a"}, call()), chunk(call(), finish="STOP"))
    assert calls(got) == []
    assert got.message.finish == "stop"


@pytest.mark.parametrize(
    ("pieces_of_it", "arguments"),
    [
        ([said("$.a", "x", more=True), said("$.a", "y")], {"a": "xy"}),
        ([said("$.a", "x"), said("$.a", "y")], {"a": "y"}),
        ([said("$.a", "x", more=True), said("$.b", "y"), said("$.a", "z")], {"a": "z", "b": "y"}),
        ([said("$['a b'].c", "x")], {"a b": {"c": "x"}}),
        ([said('$["a.\'b"]', "x")], {"a.'b": "x"}),
        ([said(r"$['it\'s']", "x")], {"it's": "x"}),
        ([said("$.a[0][1]", "y"), said("$.a[0][0]", "x")], {"a": [["x", "y"]]}),
        ([said("$.a[999999999]", "x")], {"a": ["x"]}),
        ([said("$.a", "x"), said("$.a.b", "y")], {"a": {"b": "y"}}),
        ([said("$.a[x", "y")], {"$.a[x": "y"}),
        ([said("no path", "y")], {"no path": "y"}),
        ([said("$" + ".a" * 100, "y")], {"$" + ".a" * 100: "y"}),
        ([at("$.a", numberValue=1, willContinue=True), said("$.a", "y")], {"a": "y"}),
        ([at("$.a")], {}),
    ],
)
def test_paths_say_where_a_value_stands(pieces_of_it: list[Any], arguments: Any) -> None:
    assert by_piece(*pieces_of_it) == arguments
