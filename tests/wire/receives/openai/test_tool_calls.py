"""Tool calls in all the ways that servers number their fragments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.messages import ToolCallDelta
from tests.wire.receives.openai.decoding import (
    Decoded,
    said,
    streamed,
)


def fragment(arguments: Any = "", **rest: Any) -> str:
    """A chunk that holds a fragment of one call."""
    name = rest.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return said(tool_calls=[rest | {"function": function}])


def calls(got: Decoded) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in got.message.tool_calls]


PARIS, OSLO = '{"city":"Paris"}', '{"city":"Oslo"}'

STYLES = {
    "id in the first fragment, interleaved": [
        fragment(index=0, id="a", name="look"),
        fragment(index=1, id="b", name="look"),
        fragment(PARIS[:5], index=0),
        fragment(OSLO[:7], index=1),
        fragment(PARIS[5:], index=0),
        fragment(OSLO[7:], index=1),
    ],
    "id and name on each fragment": [
        fragment(PARIS[:5], index=0, id="a", name="look"),
        fragment(PARIS[5:], index=0, id="a", name="look"),
        fragment(OSLO[:5], index=1, id="b", name="look"),
        fragment(OSLO[5:], index=1, id="b", name="look"),
    ],
    "a new id on each fragment": [
        fragment(index=0, id="a", name="look"),
        fragment(PARIS[:5], index=0, id="a1"),
        fragment(PARIS[5:], index=0, id="a2"),
        fragment(index=1, id="b", name="look"),
        fragment(OSLO, index=1, id="b1"),
    ],
    "a new id and the name on each fragment": [
        fragment(PARIS[:5], index=0, id="a", name="look"),
        fragment(PARIS[5:], index=0, id="a1", name="look"),
        fragment(OSLO, index=1, id="b", name="look"),
    ],
    "every call whole, at index 0": [
        fragment(PARIS, index=0, id="a", name="look"),
        fragment(OSLO, index=0, id="b", name="look"),
    ],
    "every call at index 0, in fragments": [
        fragment(PARIS[:5], index=0, id="a", name="look"),
        fragment(PARIS[5:], index=0),
        fragment(OSLO[:5], index=0, id="b", name="look"),
        fragment(OSLO[5:], index=0),
    ],
    "no index": [fragment(PARIS, id="a", name="look"), fragment(OSLO, id="b", name="look")],
    "no index, in fragments": [
        fragment(id="a", name="look"),
        fragment(PARIS[:5]),
        fragment(PARIS[5:]),
        fragment(OSLO[:5], id="b", name="look"),
        fragment(OSLO[5:]),
    ],
    "no index, interleaved by id": [
        fragment(PARIS[:5], id="a", name="look"),
        fragment(OSLO[:5], id="b", name="look"),
        fragment(PARIS[5:], id="a"),
        fragment(OSLO[5:], id="b"),
    ],
    "the first index is 7": [
        fragment(PARIS, index=7, id="a", name="look"),
        fragment(OSLO, index=9, id="b", name="look"),
    ],
    "both in one chunk": [
        said(
            tool_calls=[
                {"index": 0, "id": "a", "function": {"name": "look", "arguments": PARIS}},
                {"index": 1, "id": "b", "function": {"name": "look", "arguments": OSLO}},
            ]
        )
    ],
    "arguments as an object": [
        fragment(json.loads(PARIS), index=0, id="a", name="look"),
        fragment(json.loads(OSLO), index=1, id="b", name="look"),
    ],
    "the name after the id": [
        fragment(index=0, id="a"),
        fragment(PARIS, index=0, name="look"),
        fragment(OSLO, index=1, id="b", name="look"),
    ],
}


@pytest.mark.behaviour("B-ST-8")
@pytest.mark.parametrize("style", STYLES)
def test_two_calls_are_two_calls_however_they_are_numbered(style: str) -> None:
    got = streamed(*STYLES[style], said("tool_calls"))
    assert calls(got) == [("a", "look", PARIS), ("b", "look", OSLO)]


@pytest.mark.behaviour("B-ST-8")
def test_each_call_says_its_id_and_its_name_once() -> None:
    got = streamed(*STYLES["id and name on each fragment"], said("tool_calls"))
    fragments = [delta for delta in got.deltas if isinstance(delta, ToolCallDelta)]
    assert [d.id for d in fragments] == ["a", "", "b", ""]
    assert [d.name for d in fragments] == ["look", "", "look", ""]
    assert [d.index for d in fragments] == [0, 0, 1, 1]


@pytest.mark.behaviour("B-ST-8")
@pytest.mark.parametrize("nothing", [None, ""])
def test_a_call_without_arguments_has_an_empty_object(nothing: str | None) -> None:
    got = streamed(fragment(nothing, index=0, id="a", name="now"), said("tool_calls"))
    assert calls(got) == [("a", "now", "{}")]


def test_calls_that_share_an_id_or_have_none_get_ids_of_their_own() -> None:
    got = streamed(
        fragment(PARIS, index=0, id="same", name="look"),
        fragment(OSLO, index=1, id="same", name="look"),
        fragment(OSLO, index=2, name="look"),
        said("tool_calls"),
    )
    ids = [call.id for call in got.message.tool_calls]
    assert ids[0] == "same"
    assert len(set(ids)) == 3
    assert all(ids)


@pytest.mark.behaviour("B-ST-8")
@given(st.lists(st.text('{}":,ab \\', max_size=6), min_size=1, max_size=6))
def test_fragments_of_arguments_are_joined_as_they_are(fragments: list[str]) -> None:
    got = streamed(
        fragment(fragments[0], index=0, id="a", name="look"),
        *(fragment(text, index=0) for text in fragments[1:]),
        said("tool_calls"),
    )
    assert calls(got) == [("a", "look", "".join(fragments) or "{}")]
