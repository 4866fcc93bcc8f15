"""The decoder of server-sent events, cut anywhere, in every spelling that servers use."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retinue.models.sse import Decoder, Event

ENDS = ("\n", "\r\n", "\r")


def decode(chunks: list[bytes]) -> list[Event]:
    decoder = Decoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.flush()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(at)]


line = st.text(
    st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12
)  # fmt: skip
comment = line.map(lambda text: f":{text}")
noise = comment | st.sampled_from(["id: 7", "retry: 3000", "data2: x", "nonsense"])


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[Event]]:
    """A stream as some server may write it, and the events it holds."""
    end = draw(st.sampled_from(ENDS))
    text, events = "", []
    for _ in range(draw(st.integers(0, 5))):
        data = draw(st.lists(line, min_size=1, max_size=3))
        name = draw(st.sampled_from(["", "", "ping", "错误"]))
        lines = draw(st.lists(noise, max_size=2))
        lines += [f"event: {name}"] if name else []
        # Where there is no space after the colon, the data must not begin with one.
        space = "" if draw(st.booleans()) and not any(d.startswith(" ") for d in data) else " "
        lines += [f"data:{space}{part}" for part in data]
        text += end.join(lines) + end * 2
        events.append(Event("\n".join(data).encode(), name))
    body = text.encode()
    if draw(st.booleans()):
        body = b"\xef\xbb\xbf" + body
    if draw(st.booleans()) and body.endswith(end.encode() * 2):
        body = body[: -len(end)]  # the blank line that would end the last event is missing
    return body, events


@pytest.mark.behaviour("B-ST-11")
@given(streams(), st.lists(st.integers(0, 10_000), max_size=20))
@example((b"data: \xe6\x9d\xb1\r\n\r\n", [Event("東".encode())]), [7, 8, 11, 12])
@example((b"\xef\xbb\xbfdata:1\n\n", [Event(b"1")]), [1, 2])
def test_events_are_the_same_however_the_bytes_are_cut(
    stream: tuple[bytes, list[Event]], places: list[int]
) -> None:
    body, events = stream
    assert decode(cut(body, places)) == events


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b"", []),
        (b"\n\n\n", []),
        (b": only a comment\n\n", []),
        (b"event: ping\n\n", []),
        (b"data: a", [Event(b"a")]),
        (b"data: a\n", [Event(b"a")]),
        (b"data\n\n", [Event(b"")]),
        (b"data:\n\n", [Event(b"")]),
        (b"data:a\ndata: b\ndata:  c\n\n", [Event(b"a\nb\n c")]),
        (b" data: a\n\n", [Event(b"a")]),
        (b'error: {"x": 1}\n\n', [Event(b'{"x": 1}', "error")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [Event(b"a", "error"), Event(b"b")]),
        (b"event: lost\n\ndata: b\n\n", [Event(b"b")]),
        (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
        (b"data: \xef\xbb\xbf\n\n", [Event(b"\xef\xbb\xbf")]),
        (b'data: {"a": 1}   \n\n', [Event(b'{"a": 1}   ')]),
        (b"data: a\xe2\x80\xa8b\n\n", [Event(b"a\xe2\x80\xa8b")]),  # U+2028 ends no line
    ],
)
def test_an_odd_stream_is_read_as_it_was_meant(body: bytes, events: list[Event]) -> None:
    assert decode([body]) == events
    assert decode([body[n : n + 1] for n in range(len(body))]) == events


def test_an_event_comes_out_with_the_chunk_that_ends_it() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\r\n\r") == [Event(b"a")]
    assert decoder.feed(b"\ndata: b\n") == []
    assert decoder.feed(b"\n") == [Event(b"b")]


def test_a_long_line_in_small_pieces_takes_time_in_proportion() -> None:
    decoder = Decoder()
    for _ in range(200_000):  # quadratic, this would take minutes
        assert decoder.feed(b"0123456789") == []
    decoder.feed(b"\n")
    assert decoder.flush() == []
