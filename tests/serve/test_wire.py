"""One mapping of events to JSON: what is written is read again, and nothing breaks a stream."""

from datetime import date
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from retinue import Usage
from retinue.chains import events
from retinue.messages import Message, Text, Thinking, ToolCall, assistant
from retinue.messages.codec import FormatError
from retinue.serve.wire import Place, Resync, ShownCall, decode, encode, numbered, plain
from retinue.tools import PendingCall

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
broken = st.text(max_size=20) | st.sampled_from(["\ud800", "a\udfffb"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
messages = st.builds(
    Message,
    role=st.just("assistant"),
    parts=st.tuples(
        st.builds(Thinking, text=texts, signature=texts),
        st.builds(Text, text=texts),
        st.builds(ToolCall, id=texts, name=texts, arguments=texts),
    ),
    id=texts,
)
head: dict[str, Any] = {
    "seq": st.integers(1, 10**9),
    "round": st.integers(0, 50),
    "attempt": st.integers(0, 50),
    "path": st.lists(texts, max_size=2).map(tuple),
}
usages = st.builds(Usage, input=st.none() | st.integers(0, 10**6))
calls = st.builds(
    PendingCall,
    id=texts,
    tool=texts,
    kind=st.sampled_from(["approval", "question"]),
    why=texts,
    arguments=st.none() | st.dictionaries(texts, json_values, max_size=3),
)
any_event = st.one_of(
    st.builds(events.TurnStarted, **head, turn=texts, conversation=st.none() | texts),
    st.builds(events.RoundStarted, **head),
    st.builds(events.AttemptStarted, **head),
    st.builds(events.AttemptDiscarded, **head, reason=texts),
    st.builds(events.TextChunk, **head, text=texts),
    st.builds(events.ThinkingChunk, **head, text=texts),
    st.builds(
        events.ToolArguments, **head, index=st.integers(0, 9), call_id=texts, name=texts,
        fragment=texts,
    ),
    st.builds(
        events.ToolStarted, **head, call_id=texts, name=texts,
        arguments=st.none() | st.dictionaries(texts, json_values, max_size=3),
    ),
    st.builds(
        events.ToolFinished, **head, call_id=texts, name=texts, ok=st.booleans(), text=texts,
        seconds=st.floats(0, 100), blocked_by=st.none() | texts,
    ),
    st.builds(
        events.ToolRetried, **head, call_id=texts, name=texts, error=texts,
        wait=st.floats(0, 100),
    ),
    st.builds(events.ModelRetried, **head, error=texts, wait=st.floats(0, 100)),
    st.builds(
        events.UsageReported, **head, usage=usages, total=usages, cost=st.none() | st.floats(0, 9)
    ),
    st.builds(
        events.LayersTimed, **head, layers=st.lists(
            st.builds(
                events.LayerTime, name=texts, hook=texts, calls=st.integers(0, 9),
                seconds=st.floats(0, 9),
            ),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(events.Paused, **head, reason=texts, pending=st.lists(calls, max_size=2).map(tuple)),
    st.builds(
        events.TurnEnded, **head, turn=texts, status=st.sampled_from(["completed", "failed"]),
        text=texts, message=st.none() | messages, usage=usages,
    ),
    st.builds(
        Resync, seq=st.integers(0, 99), turn=texts, messages=st.lists(messages, max_size=2).map(
            tuple
        ),
        calls=st.lists(st.builds(ShownCall, call_id=texts, name=texts), max_size=2).map(tuple),
    ),
)  # fmt: skip


@pytest.mark.rule("R-STREAM-1")
@given(any_event)
def test_every_event_is_read_as_it_was_written(event: Any) -> None:
    assert decode(encode(event)) == event
    assert msgspec.json.decode(encode(event)) == msgspec.json.decode(
        msgspec.json.encode(plain(event))
    )


def test_no_kind_of_event_is_left_out_above() -> None:
    met: set[type[Any]] = set()

    @settings(max_examples=1_000, phases=[Phase.generate])
    @given(any_event)
    def meet(event: Any) -> None:
        met.add(type(event))

    meet()
    assert met == {*get_args(events.AnyEvent), Resync}


@given(any_event)
def test_an_event_is_one_line(event: Any) -> None:
    assert b"\n" not in encode(event)
    assert b"\r" not in encode(event)


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Undumped:
    def model_dump(self, mode: str) -> Any:
        raise RuntimeError("no")

    def __str__(self) -> str:
        return "undumped"


LOOP: dict[str, Any] = {}
LOOP |= {"self": LOOP, "again": [LOOP, LOOP]}
HUGE = 10**5_000


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ({"day": date(2026, 1, 2)}, {"day": "2026-01-02"}),
        ({"odd": {1, 2}}, {"odd": [1, 2]}),
        ({"half": "a\ud800"}, {"half": "a\ufffd"}),
        ({"what": Broken()}, {"what": "<Broken>"}),
        ({"big": 2**80}, {"big": 2**80}),
        ({"huge": HUGE}, {"huge": hex(HUGE)}),
        ({"keys": {(1, 2): "x"}}, {"keys": {"(1, 2)": "x"}}),
        ({"model": Undumped()}, {"model": "undumped"}),
        ({"model": Undumped(), "half": "\ud800"}, {"model": "undumped", "half": "\ufffd"}),
    ],
    ids=["date", "set", "surrogate", "unshowable", "big", "huge", "keys", "model", "two"],
)
def test_what_json_cannot_hold_is_written_as_text(
    arguments: dict[str, Any], written: dict[str, Any]
) -> None:
    event = events.ToolStarted(1, 1, 1, (), "c", "t", arguments)
    assert msgspec.json.decode(encode(event))["arguments"] == written


def test_a_value_that_holds_itself_does_not_break_the_stream() -> None:
    event = events.ToolStarted(1, 1, 1, (), "c", "t", LOOP)
    assert b"tool_started" in encode(event)


@given(broken, st.dictionaries(broken, broken | st.integers() | st.binary(max_size=4), max_size=3))
def test_an_event_with_halves_of_characters_is_read_all_the_same(
    text: str, arguments: dict[str, Any]
) -> None:
    assert isinstance(decode(encode(events.TextChunk(1, 1, 1, (), text))), events.TextChunk)
    started = events.ToolStarted(1, 1, 1, (), "c", text, arguments)
    assert isinstance(decode(encode(started)), events.ToolStarted)
    ended = events.TurnEnded(1, 1, 1, (), "t", "completed", text, assistant(text))
    assert isinstance(decode(encode(ended)), events.TurnEnded)


@given(st.binary(max_size=40))
def test_bytes_that_are_no_event_are_refused_by_one_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode(data)


def test_deep_json_is_refused_and_not_crashed_on() -> None:
    with pytest.raises(FormatError):
        decode('{"type":"tool_started","arguments":' + "[" * 200_000)


@given(texts, st.integers(0, 10**14))
def test_a_place_is_read_as_it_was_written(stream: str, seq: int) -> None:
    place = Place(stream, seq)
    assert Place.read(str(place)) == place


@pytest.mark.parametrize("text", ["", "a:", "a:-1", "a:1.5", "a:٣", "a:" + "9" * 40])
def test_what_is_no_place_is_none(text: str) -> None:
    assert Place.read(text) is None


def test_an_event_takes_another_number_and_stays_the_same_otherwise() -> None:
    event = events.TextChunk(4, 1, 1, (), "hi")
    assert numbered(event, 9) == events.TextChunk(9, 1, 1, (), "hi")
    assert numbered(event, 4) is event
