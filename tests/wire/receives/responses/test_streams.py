"""Answers written by hand, for what the recordings do not have."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.errors import ModelBroken
from retinue.messages import FinishDelta, TextDelta, Thinking, ToolCallDelta, Usage
from tests.models.vendor import asks, events_of, says, thinks
from tests.wire.receives.responses.decoding import (
    CREATED,
    USAGE,
    delta,
    done,
    ended,
    kept,
    lines,
    pieces,
    response,
    stream,
    streamed,
    whole,
)

# -- the same, however it comes -----------------------------------------------------------------

CUSTOM = {"type": "custom_tool_call", "call_id": "x", "name": "sql", "input": "SELECT 'é'"}
OPEN = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}
SEARCH = {"type": "web_search_call", "status": "completed", "action": {"query": "東京"}}
CITED = {
    "type": "message", "phase": "final_answer", "role": "assistant",
    "content": [{"type": "output_text", "text": "Da. 🌍", "annotations": [{"url": "https://a"}]}],
}  # fmt: skip
ANSWERS = {
    "text": [says("Grüße aus 東京 🌍")],
    "thought and text": [thinks("Erst denken."), says("Dann reden.")],
    "open thought": [OPEN, says("Yes.")],
    "hidden thought and calls": [
        thinks(), asks("look", "a", city="Zürich"), asks("look", "b", city="Rome"),
    ],
    "phases": [says("Wait.", phase="commentary"), asks("look", "a"), thinks("Aha."), CITED],
    "tools of the provider": [thinks("Search."), SEARCH, thinks(), CITED],
    "a call with text": [thinks(), CUSTOM],
    "nothing": [],
}  # fmt: skip


@pytest.mark.behaviour("B-ST-11")
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_means_the_same_whole_streamed_and_cut_anywhere(name: str) -> None:
    body = response(*ANSWERS[name], usage=USAGE)
    at_once = whole(body)
    assert at_once.error is None
    events = lines(*events_of(body))
    expected = at_once.message.with_(id="")
    assert stream([events]).message.with_(id="") == expected
    for eol in (b"\n", b"\r\n"):
        sent = events.replace(b"\n", eol)
        for cut in range(1, len(sent), 7):
            got = stream(pieces(sent, [cut]))
            assert got.message.with_(id="") == expected
            assert got.meta == at_once.meta
        bytewise = stream([sent[n : n + 1] for n in range(len(sent))])
        assert bytewise.message.with_(id="") == expected


@pytest.mark.behaviour("B-ST-11")
@given(st.text(max_size=20), st.lists(st.integers(0, 2000), max_size=8), st.booleans())
def test_text_is_the_same_in_any_script_and_any_cut(
    text: str, places: list[int], ascii_only: bool
) -> None:
    events = events_of(response(says(text)))
    data = [json.dumps(event, ensure_ascii=ascii_only) for event in events]
    body = lines(*data)
    assert stream(pieces(body, [place % len(body) for place in places])).message.text == text


@pytest.mark.behaviour("B-ST-8")
@given(st.lists(st.text('{}":,ab \\', max_size=6), min_size=1, max_size=6))
def test_fragments_of_arguments_are_joined_as_they_are(fragments: list[str]) -> None:
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": ""}
    got = streamed(
        {"type": "response.output_item.added", "output_index": 0, "item": call},
        *(delta("function_call_arguments", text) for text in fragments),
        ended(),
    )
    assert [c.arguments for c in got.message.tool_calls] == ["".join(fragments) or "{}"]


@pytest.mark.behaviour("B-ST-8")
def test_calls_that_grow_at_the_same_time_keep_to_themselves() -> None:
    calls = [asks("look", "a"), asks("find", "b")]
    begun = [
        {"type": "response.output_item.added", "output_index": n, "item": call | {"arguments": ""}}
        for n, call in enumerate(calls)
    ]
    grown = [
        delta("function_call_arguments", text, place)
        for text in ('{"q"', ": 1}")
        for place in (1, 0)
    ]
    got = streamed(*begun, *grown, ended())
    assert [(c.id, c.name, c.arguments) for c in got.message.tool_calls] == [
        ("a", "look", '{"q": 1}'), ("b", "find", '{"q": 1}'),
    ]  # fmt: skip
    said = [d for d in got.deltas if isinstance(d, ToolCallDelta)]
    assert [(d.id, d.name) for d in said if d.id or d.name] == [("a", "look"), ("b", "find")]


# -- what is missing ----------------------------------------------------------------------------


def test_what_no_delta_told_is_read_from_the_finished_item() -> None:
    items = [thinks("Hm."), says("Yes."), asks("look", "a", city="Oslo")]
    got = streamed(CREATED, *(done(item, n) for n, item in enumerate(items)), ended(*items))
    assert got.message.thinking == "Hm."
    assert got.message.text == "Yes."
    assert got.message.tool_calls[0].arguments == '{"city": "Oslo"}'


def test_what_is_never_done_is_read_from_the_whole_answer_at_the_end() -> None:
    items = [says("Yes, and more."), asks("look", "a", city="Oslo")]
    begun = {"type": "response.output_item.added", "output_index": 0, "item": says("")}
    got = streamed(CREATED, begun, delta("output_text", "Yes, "), ended(*items))
    assert got.message.text == "Yes, and more."
    assert [call.id for call in got.message.tool_calls] == ["a"]


def test_an_item_that_is_told_twice_counts_once() -> None:
    item = says("Yes.")
    got = streamed(CREATED, done(item), done(item), ended(item))
    assert got.message.text == "Yes."


def test_a_text_that_ends_otherwise_than_it_was_shown_stays_as_it_was_shown() -> None:
    got = streamed(delta("output_text", "No"), done(says("Yes.")), ended(says("Yes.")))
    assert got.message.text == "No"


def test_items_that_do_not_say_their_place_come_one_after_another() -> None:
    events = [
        {name: value for name, value in event.items() if name != "output_index"}
        for event in events_of(response(says("One."), asks("look", "a", n=1), says("Two.")))
    ]
    got = streamed(*events)
    assert got.message.text == "One.Two."
    assert [call.arguments for call in got.message.tool_calls] == ['{"n": 1}']


def test_arguments_that_are_an_object_become_its_text() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": {"city": "Oslo"}}
    assert whole(response(call)).message.tool_calls[0].arguments == '{"city":"Oslo"}'


def test_the_name_may_come_with_the_end_of_a_call() -> None:
    first = {"type": "function_call", "call_id": "a", "name": "", "arguments": ""}
    begun = {"type": "response.output_item.added", "output_index": 0, "item": first}
    got = streamed(begun, done(asks("look", "a")), ended())
    assert [(c.id, c.name, c.arguments) for c in got.message.tool_calls] == [("a", "look", "{}")]


@pytest.mark.parametrize("junk", [None, 3, "x", [1]])
def test_an_item_that_is_none_is_left_out(junk: Any) -> None:
    got = streamed(done(junk, 0), done(says("Yes."), 1), ended())
    assert got.message.text == "Yes."
    body = response() | {"output": [junk, says("Yes.")]}
    assert whole(body).message.text == "Yes."


def test_events_that_nobody_knows_are_passed_over() -> None:
    events = list(events_of(response(says("Yes."))))
    new = {"type": "response.something.new", "output_index": 9, "delta": "?", "text": "?"}
    got = streamed(*[e for event in events for e in (new, event)])
    assert got.message.text == "Yes."
    assert got.error is None


# -- reasoning ----------------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-1")
def test_the_reasoning_itself_is_shown_rather_than_its_summary() -> None:
    both = OPEN | {"summary": [{"type": "summary_text", "text": "short"}]}
    assert whole(response(both, says("Yes."))).message.thinking == "Hm."
    got = streamed(
        delta("reasoning_text", "Hm."),
        delta("reasoning_summary_text", "short"),
        done(both),
        done(says("Yes."), 1),
        ended(),
    )
    assert got.message.thinking == "Hm."
    assert got.message.text == "Yes."


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-2")
def test_reasoning_is_kept_to_the_letter_with_the_id_of_what_it_led_to() -> None:
    raw = '{"id" : "rs_1","type":"reasoning","encrypted_content":"gAA\\u00e9\\/==","summary":[ ]}'
    data = f'{{"type":"response.output_item.done","output_index":0,"item":{raw}}}'
    got = streamed(CREATED, data, done(asks("look", "a") | {"id": "fc_1"}, 1), ended())
    (thought,) = [part for part in got.message.parts if isinstance(part, Thinking)]
    assert thought.opaque is not None
    assert raw in thought.opaque
    assert json.loads(thought.opaque)["following"] == {"type": "function_call", "id": "fc_1"}
    assert got.message.parts.index(thought) == 0


def test_reasoning_that_is_done_after_the_text_is_kept_as_what_came_before_it() -> None:
    begun = {"type": "response.output_item.added", "output_index": 0, "item": thinks()}
    got = streamed(
        begun, delta("reasoning_text", "Hm."), delta("output_text", "Yes.", 1),
        done(says("Yes."), 1), done(OPEN, 0), ended(OPEN, says("Yes.")),
    )  # fmt: skip
    assert (got.message.thinking, got.message.text) == ("Hm.", "Yes.")
    assert [each["late"] for each in kept(got)] == [[OPEN]]


def test_an_answer_of_text_alone_keeps_nothing_beside_it() -> None:
    assert kept(whole(response(says("Yes.")))) == []


def test_the_phases_of_several_messages_are_kept_apart() -> None:
    got = whole(response(says("One.", phase="commentary"), says("Two.", phase="final_answer")))
    assert [each["following"]["phase"] for each in kept(got)] == ["commentary", "final_answer"]
    assert [type(part).__name__ for part in got.message.parts] == [
        "Thinking", "Text", "Thinking", "Text",
    ]  # fmt: skip


# -- beside the answer --------------------------------------------------------------------------


def test_tools_of_the_provider_are_no_calls_and_citations_are_in_meta() -> None:
    got = whole(response(SEARCH, CITED))
    assert got.message.tool_calls == ()
    assert got.message.finish == "stop"
    assert [item["action"] for item in got.meta["executed_tools"]] == [SEARCH["action"]]
    assert got.meta["annotations"] == [{"url": "https://a"}]
    assert (got.meta["id"], got.meta["model"]) == ("resp_1", "some-model")


@pytest.mark.parametrize("in_pieces", [True, False])
def test_a_refusal_is_kept_beside_the_text(in_pieces: bool) -> None:
    content = [{"type": "refusal", "refusal": "I cannot."}]
    body = response({"type": "message", "role": "assistant", "content": content})
    got = stream([lines(*events_of(body))]) if in_pieces else whole(body)
    assert got.meta["refusal"] == "I cannot."
    assert got.message.text == ""
    assert got.message.finish == "content_filter"


@pytest.mark.parametrize("in_pieces", [True, False])
def test_how_likely_each_token_was_is_told_where_it_was_asked(in_pieces: bool) -> None:
    likely = [{"token": "Hi", "logprob": -0.1}]
    body = response(says("Hi", content=[{"type": "output_text", "text": "Hi", "logprobs": likely}]))
    got = stream([lines(*events_of(body))]) if in_pieces else whole(body)
    assert got.meta["logprobs"] == likely


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_an_answer_that_is_put_off_is_none(status: str) -> None:
    got = whole(response(status=status))
    assert type(got.error) is ModelBroken
    assert "leave 'background' out" in str(got.error)


@pytest.mark.rule("R-USAGE-1")
@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (None, None),
        ({}, None),
        ("12", None),
        (USAGE, Usage(input=9, output=3)),
        ({"input_tokens": 9}, Usage(input=9)),
        ({"input_tokens": "9", "output_tokens": -3}, None),
        (
            USAGE
            | {
                "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "output_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(input=9, output=3, cache_read=4, cache_write=2, reasoning=1),
        ),
        (USAGE | {"input_tokens_details": None}, Usage(input=9, output=3)),
    ],
)
def test_usage_takes_one_form_and_the_unknown_is_none(raw: Any, usage: Usage | None) -> None:
    assert whole(response(says("x"), usage=raw)).message.usage == usage


@pytest.mark.behaviour("B-ST-7")
@pytest.mark.parametrize(
    ("body", "finish"),
    [
        (response(says("x")), "stop"),
        (response(asks("look", "a")), "tool_calls"),
        (response(says("x"), status="incomplete"), "incomplete"),
        (
            response(
                says("x"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            ),
            "length",
        ),
        (
            response(
                says("x"), status="incomplete", incomplete_details={"reason": "content_filter"}
            ),
            "content_filter",
        ),
    ],
)
def test_why_the_answer_ended_is_told_once(body: dict[str, Any], finish: str) -> None:
    for got in (whole(body), stream([lines(*events_of(body))])):
        assert got.error is None
        assert [d.reason for d in got.deltas if isinstance(d, FinishDelta)] == [finish]


def test_what_comes_after_the_end_is_not_read() -> None:
    got = streamed(*events_of(response(says("Hi"))), "[DONE]", delta("output_text", "!"))
    assert got.message.text == "Hi"
    assert got.error is None


def test_half_a_character_spoils_itself_and_nothing_else() -> None:
    lone = '{"type":"response.output_text.delta","output_index":0,"delta":"a\\ud83d b"}'
    got = streamed(lone, delta("output_text", "c"), ended())
    assert got.error is None
    assert got.message.text == "a? bc"


def test_an_empty_text_makes_no_delta() -> None:
    got = streamed(delta("output_text", ""), delta("output_text", "Hi"), ended(says("Hi")))
    assert [d for d in got.deltas if isinstance(d, TextDelta)] == [TextDelta("Hi")]


def test_the_type_may_stand_in_the_name_of_the_event_alone() -> None:
    body = b""
    for event in events_of(response(says("Hi"))):
        data = {name: value for name, value in event.items() if name != "type"}
        body += f"event: {event['type']}\ndata: {json.dumps(data)}\n\n".encode()
    assert stream([body]).message.text == "Hi"
