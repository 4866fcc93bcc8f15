"""Answers written by hand, for what the recordings do not have."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.errors import ModelBroken, ModelOverloaded, ModelRefused, ModelUnreachable, classify
from retinue.messages import FinishDelta, TextDelta, Thinking, ToolCallDelta, Usage, UsageDelta
from tests.wire.receives.anthropic.decoding import Decoded, events, pieces, stream, whole


def begins(**usage: int | None) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
               "content": [], "stop_reason": None, "usage": usage}  # fmt: skip
    return {"type": "message_start", "message": message}


def opens(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    block = {"type": kind, **fields}
    return {"type": "content_block_start", "index": index, "content_block": block}


def grows(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def closes(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ends(reason: str | None = "end_turn", usage: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None, **fields},
        "usage": {"output_tokens": 9} if usage is None else usage,
    }


START = begins(input_tokens=5, output_tokens=1)
PING = {"type": "ping"}
OVER = {"type": "message_stop"}
HELLO = [opens(0, "text", text=""), grows(0, "text_delta", text="Hello"), closes(0)]


def streamed(*data: dict[str, Any]) -> Decoded:
    return stream([events(*data)])


EVERYTHING = events(
    START,
    PING,
    opens(0, "thinking", thinking="", signature=""),
    grows(0, "thinking_delta", thinking="Hm"),
    grows(0, "thinking_delta", thinking=", so."),
    grows(0, "signature_delta", signature="c2ln"),
    closes(0),
    opens(1, "redacted_thinking", data="AAAA"),
    closes(1),
    opens(2, "text", text=""),
    PING,
    grows(2, "text_delta", text="Grüße "),
    grows(2, "text_delta", text="🌍"),
    grows(2, "citations_delta", citation={"cited_text": "x"}),
    closes(2),
    opens(3, "server_tool_use", id="srv_1", name="web_search", input={}),
    grows(3, "input_json_delta", partial_json=""),
    grows(3, "input_json_delta", partial_json='{"query": "x"}'),
    closes(3),
    opens(4, "web_search_tool_result", tool_use_id="srv_1", content=[{"encrypted": "e"}]),
    closes(4),
    opens(5, "compaction", content=None),
    grows(5, "compaction_delta", content="So far", encrypted_content="e2"),
    closes(5),
    opens(6, "something_new", value=[1]),
    grows(6, "new_delta", more=1),
    closes(6),
    opens(7, "tool_use", id="toolu_1", name="look", input={}),
    grows(7, "input_json_delta", partial_json=""),
    grows(7, "input_json_delta", partial_json='{"a":'),
    grows(7, "input_json_delta", partial_json="1}"),
    closes(7),
    opens(8, "tool_use", id="toolu_2", name="rest", input={}),
    closes(8),
    {"type": "event_to_come"},
    ends("tool_use", {"input_tokens": 7, "cache_read_input_tokens": 2,
                      "cache_creation_input_tokens": 1, "output_tokens": 30,
                      "output_tokens_details": {"thinking_tokens": 4}}),
    OVER,
)  # fmt: skip


def check_everything(got: Decoded) -> None:
    assert got.error is None
    message = got.message
    assert message.text == "Grüße 🌍"
    assert message.thinking == "Hm, so."
    assert message.parts[0] == Thinking("Hm, so.", "c2ln", None, "anthropic")
    assert got.kept == [
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_1",
            "content": [{"encrypted": "e"}],
        },
        {"type": "compaction", "content": "So far", "encrypted_content": "e2"},
        {"type": "something_new", "value": [1]},
    ]
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    assert calls == [("toolu_1", "look", '{"a":1}'), ("toolu_2", "rest", "{}")]
    assert message.usage == Usage(10, 30, 2, 1, 4)
    assert message.finish == "tool_calls"
    assert got.meta == {"id": "msg_1", "model": "claude-x", "citations": [{"cited_text": "x"}]}


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-ST-11", "B-TH-1")
def test_every_type_of_block_means_the_same_at_every_split() -> None:
    check_everything(stream([EVERYTHING]))
    check_everything(stream([EVERYTHING[n : n + 1] for n in range(len(EVERYTHING))]))
    for cut in range(1, len(EVERYTHING)):
        check_everything(stream(pieces(EVERYTHING, [cut])))
    check_everything(stream([EVERYTHING.replace(b"\n", b"\r\n")]))


def test_text_is_handed_on_as_it_comes() -> None:
    got = streamed(START, *HELLO, grows(1, "text_delta", text="!"), ends(), OVER)
    texts = [delta for delta in got.deltas if isinstance(delta, TextDelta)]
    assert texts == [TextDelta("Hello"), TextDelta("!")]
    assert got.deltas[-1] == FinishDelta("stop")


def test_an_empty_text_makes_no_delta() -> None:
    got = streamed(START, opens(0, "text", text=""), grows(0, "text_delta", text=""), ends(), OVER)
    assert not any(isinstance(delta, TextDelta) for delta in got.deltas)


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-ST-8", "B-TH-2")
def test_interleaved_blocks_keep_their_order_and_their_signatures() -> None:
    got = streamed(
        START,
        opens(0, "thinking", thinking="", signature=""),
        opens(1, "redacted_thinking", data="AAAA"),
        opens(2, "tool_use", id="a", name="look", input={}),
        opens(3, "tool_use", id="b", name="look", input={}),
        grows(0, "thinking_delta", thinking="x"),
        grows(2, "input_json_delta", partial_json='{"n":'),
        grows(3, "input_json_delta", partial_json='{"n":'),
        closes(1),
        grows(0, "thinking_delta", thinking="y"),
        grows(2, "input_json_delta", partial_json="1}"),
        grows(3, "input_json_delta", partial_json="2}"),
        grows(0, "signature_delta", signature="s1"),
        closes(2),
        closes(0),
        closes(3),
        ends("tool_use"),
        OVER,
    )
    kinds = [type(part).__name__ for part in got.message.parts]
    assert kinds == ["Thinking", "Thinking", "ToolCall", "ToolCall"]
    assert got.message.parts[0] == Thinking("xy", "s1", None, "anthropic")
    assert [call.arguments for call in got.message.tool_calls] == ['{"n":1}', '{"n":2}']


@pytest.mark.behaviour("B-TH-2")
def test_a_thought_without_words_keeps_its_signature() -> None:
    got = streamed(
        START,
        opens(0, "thinking", thinking="", signature=""),
        grows(0, "signature_delta", signature="s1"),
        closes(0),
        *[{**event, "index": 1} for event in HELLO],
        ends(),
        OVER,
    )
    assert got.message.parts[0] == Thinking("", "s1", None, "anthropic")


def test_input_in_the_start_of_a_call_counts_unless_more_comes() -> None:
    start = opens(0, "tool_use", id="a", name="look", input={"n": 1})
    got = streamed(START, start, closes(0), ends("tool_use"), OVER)
    assert got.message.tool_calls[0].arguments == '{"n":1}'
    more = grows(0, "input_json_delta", partial_json='{"n":2}')
    got = streamed(START, start, more, closes(0), ends("tool_use"), OVER)
    assert got.message.tool_calls[0].arguments == '{"n":2}'
    assert [d.index for d in got.deltas if isinstance(d, ToolCallDelta)] == [0, 0]


def test_blocks_that_have_no_end_end_with_the_message() -> None:
    got = streamed(
        START,
        opens(0, "thinking", thinking="x", signature="s1"),
        opens(1, "tool_use", id="a", name="look", input={"n": 1}),
        ends("tool_use"),
        OVER,
    )
    assert got.message.parts[0] == Thinking("x", "s1", None, "anthropic")
    assert got.message.tool_calls[0].arguments == '{"n":1}'


def test_a_message_that_starts_twice_is_read_once() -> None:
    got = streamed(START, begins(input_tokens=6, output_tokens=1), *HELLO, ends(), OVER)
    assert got.message.text == "Hello"
    assert got.message.usage == Usage(6, 9)


def test_uses_of_tools_that_the_vendor_bills_are_told_besides() -> None:
    used = {"web_search_requests": 2, "web_fetch_requests": 0}
    usage = {"input_tokens": 9, "output_tokens": 1, "server_tool_use": used}
    assert whole({"content": [], "usage": usage}).meta["server_tool_use"] == used
    got = streamed(START, *HELLO, ends(usage=usage), OVER)
    assert got.meta["server_tool_use"] == used


# -- the end ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
        ("to_come", "to_come"),
        (None, None),
    ],
)
def test_stop_reasons_are_told_in_one_set_of_words(reason: str | None, finish: str | None) -> None:
    assert streamed(START, *HELLO, ends(reason), OVER).message.finish == finish
    body = {"type": "message", "content": [], "stop_reason": reason}
    assert whole(json.dumps(body).encode()).message.finish == finish


def test_what_ends_an_answer_is_told_besides() -> None:
    got = streamed(
        START,
        *HELLO,
        ends(
            "refusal",
            stop_sequence="END",
            container={"id": "c1"},
            stop_details={"type": "refusal", "category": "bio", "explanation": "Too risky."},
        ),
        OVER,
    )
    assert got.meta["refusal"] == "Too risky."
    assert got.meta["stop_sequence"] == "END"
    assert got.meta["container"] == {"id": "c1"}
    bare = ends("refusal", stop_details={"type": "refusal", "category": None})
    assert streamed(START, bare, OVER).meta["refusal"] == "the provider gives no reason"


def test_an_end_without_its_last_event_is_an_end() -> None:
    assert streamed(START, *HELLO, ends()).error is None


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        ([START, *HELLO], ModelBroken, "stopped in the middle"),
        ([START], ModelUnreachable, "ended the stream before its answer"),
        ([PING], ModelUnreachable, "sent no answer at all"),
        ([], ModelUnreachable, "sent no answer at all"),
    ],
)
def test_an_answer_that_is_cut_off_is_an_error(
    data: list[dict[str, Any]], kind: type[Exception], words: str
) -> None:
    error = streamed(*data).error
    assert type(error) is kind
    assert words in str(error)


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.behaviour("B-ST-12")
@pytest.mark.rule("R-FAIL-1", "R-FAIL-2")
@pytest.mark.parametrize(
    ("kind", "error", "status", "failure"),
    [
        ("overloaded_error", ModelOverloaded, 529, "transient"),
        ("api_error", ModelOverloaded, 500, "transient"),
        ("timeout_error", ModelOverloaded, 504, "transient"),
        ("rate_limit_error", ModelOverloaded, 429, "transient"),
        ("invalid_request_error", ModelRefused, 400, "semantic"),
        ("authentication_error", ModelRefused, 401, "environment"),
        ("billing_error", ModelRefused, 402, "environment"),
        ("permission_error", ModelRefused, 403, "environment"),
        ("not_found_error", ModelRefused, 404, "semantic"),
        ("request_too_large", ModelRefused, 413, "semantic"),
        ("error_to_come", ModelBroken, None, "semantic"),
    ],
)
def test_an_error_in_the_stream_has_its_class_and_keeps_what_was_said(
    kind: str, error: type[Exception], status: int | None, failure: str
) -> None:
    said = {"type": "error", "error": {"type": kind, "message": "No more sk-secret-secret."}}
    for got in (streamed(START, *HELLO, said), whole(json.dumps(said).encode())):
        assert got.error is not None
        assert type(got.error) is error
        assert got.error.status == status
        assert classify(got.error) == failure
        assert "No more ***." in str(got.error)
    assert streamed(START, *HELLO, said).message.text == "Hello"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"<html>", b'"x"', b"{}"])
def test_a_whole_answer_that_is_none_is_an_error(body: bytes) -> None:
    got = whole(body)
    assert got.error is not None
    assert str(got.error).startswith("anthropic (api.example)")


def test_an_event_that_is_no_json_is_an_error_that_quotes_it() -> None:
    got = stream([events(START) + b"data: {oops\n\n"])
    assert type(got.error) is ModelBroken
    assert "{oops" in str(got.error)


def test_an_error_that_is_no_json_keeps_its_words() -> None:
    got = stream([b"event: error\ndata: upstream is gone\n\n"])
    assert "upstream is gone" in str(got.error)


# -- counts -------------------------------------------------------------------------------------


@pytest.mark.rule("R-USAGE-1", "R-USAGE-2")
@pytest.mark.behaviour("B-US-1", "B-US-2")
@pytest.mark.parametrize(
    ("start", "end", "usage"),
    [
        (
            {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2,
             "output_tokens": 1},
            {"output_tokens": 9},
            Usage(10, 9, 3, 2),
        ),
        (
            {"input_tokens": 5, "output_tokens": 1},
            {"input_tokens": 8, "cache_read_input_tokens": 4, "output_tokens": 9},
            Usage(12, 9, 4),
        ),
        ({"input_tokens": 5, "cache_read_input_tokens": 3}, {"input_tokens": 7},
         Usage(10, None, 3)),
        ({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 5, "output_tokens": 9},
         Usage(5, 9)),
        ({"input_tokens": 5, "cache_read_input_tokens": None}, {}, Usage(5)),
        ({}, {"output_tokens": 9}, Usage(None, 9)),
        ({"input_tokens": 0, "output_tokens": 0}, {"output_tokens": 0}, None),
        ({}, {}, None),
    ],
)  # fmt: skip
def test_the_prompt_is_all_of_it_and_later_counts_win(
    start: dict[str, Any], end: dict[str, Any], usage: Usage | None
) -> None:
    got = streamed(begins(**start), *HELLO, ends(usage=end), OVER)
    assert got.message.usage == usage
    body = {"type": "message", "content": [], "stop_reason": "end_turn", "usage": start | end}
    assert whole(json.dumps(body).encode()).message.usage == usage


def test_counts_are_known_from_the_start() -> None:
    got = stream([events(START)])
    assert got.deltas == [UsageDelta(Usage(5, 1))]


# -- characters ---------------------------------------------------------------------------------


@pytest.mark.behaviour("B-ST-11")
@given(st.text(max_size=20), st.lists(st.integers(0, 400), max_size=8))
def test_text_is_the_same_at_any_cut(text: str, places: list[int]) -> None:
    body = events(START, grows(0, "text_delta", text=text), ends(), OVER)
    got = stream(pieces(body, [place % len(body) for place in places]))
    assert got.message.text == text


def test_half_a_character_spoils_itself_and_nothing_else() -> None:
    lone = events(grows(0, "text_delta", text="X")).replace(b"X", b"a\\ud83d b")
    bad = events(grows(0, "text_delta", text="X")).replace(b"X", b"a\xff b")
    got = stream([events(START) + lone + bad + events(ends(), OVER)])
    assert got.error is None
    assert got.message.text == "a? ba\ufffd b"
