"""Answers written by hand, for what the recordings do not have."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.errors import ModelBroken, ModelOverloaded, ModelRefused, ModelUnreachable, classify
from retinue.messages import FinishDelta, TextDelta, Thinking, Usage, UsageDelta
from retinue.models.failures import of_status
from tests.wire.receives.gemini.decoding import (
    PEER,
    Decoded,
    chunk,
    lines,
    pieces,
    stream,
    streamed,
    whole,
)

SEARCH = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "s1"}}
FOUND = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"a": 1}, "id": "s1"}}
CODE = {"executableCode": {"language": "PYTHON", "code": "1 + 1"}, "thoughtSignature": "s2"}
RAN = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}}
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "s3"}


def counted(**counts: int) -> dict[str, Any]:
    return {"usageMetadata": {f"{name}TokenCount": count for name, count in counts.items()}}


EVERYTHING = lines(
    chunk({"text": "Hm", "thought": True}, **counted(prompt=7), responseId="r1"),
    chunk({"text": ", so.", "thought": True}),
    chunk({"text": "Grüße "}, **counted(prompt=7, candidates=2, thoughts=4)),
    chunk({"text": "🌍"}, {"text": ""}),
    chunk({"text": "!", "thoughtSignature": "s0"}),
    chunk(SEARCH),
    chunk(FOUND, CODE, RAN, PICTURE),
    chunk({"something": {"new": [1]}}),
    chunk({"functionCall": {"name": "look", "args": {"a": 1.0}, "id": "f1"},
           "thoughtSignature": "s4"}, {"functionCall": {"name": "look"}}),
    chunk({"text": "", "thoughtSignature": "s5"}, finish="STOP",
          **counted(prompt=7, toolUsePrompt=3, cachedContent=2, candidates=20, thoughts=4)),
)  # fmt: skip


def check_everything(got: Decoded) -> None:
    assert got.error is None
    message = got.message
    assert message.text == "Grüße 🌍!"
    assert message.thinking == "Hm, so."
    assert got.kept == [
        {"text": "s0", "length": 1},
        {"part": SEARCH},
        {"part": FOUND},
        {"part": CODE},
        {"part": RAN},
        {"part": PICTURE},
        {"part": {"something": {"new": [1]}}},
        {"call": "s4"},
        {"text": "s5"},
    ]
    first, second = message.tool_calls
    assert (first.id, first.name, json.loads(first.arguments)) == ("f1", "look", {"a": 1.0})
    assert second.id.startswith("call_")
    assert (second.name, second.arguments) == ("look", "{}")
    assert message.usage == Usage(10, 24, 2, None, 4)
    assert message.finish == "tool_calls"
    assert got.meta == {
        "id": "r1",
        "model": "some-model",
        "executed_tools": [SEARCH, {"executableCode": CODE["executableCode"]}],
        "inline_data": [PICTURE["inlineData"]],
    }


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-ST-11", "B-TH-1")
def test_every_kind_of_part_means_the_same_at_every_split() -> None:
    check_everything(stream([EVERYTHING]))
    check_everything(stream([EVERYTHING[n : n + 1] for n in range(len(EVERYTHING))]))
    for cut in range(1, len(EVERYTHING)):
        check_everything(stream(pieces(EVERYTHING, [cut])))
    check_everything(stream([EVERYTHING.replace(b"\r\n", b"\n")]))


def test_a_row_of_answers_in_one_list_is_read_as_a_whole_answer() -> None:
    data = [line[6:] for line in EVERYTHING.split(b"\r\n") if line]
    check_everything(whole(b"[" + b"\n,\r\n".join(data) + b"]"))


def test_text_is_handed_on_as_it_comes() -> None:
    got = streamed(chunk({"text": "Hello"}), chunk({"text": "!"}, finish="STOP"))
    texts = [delta for delta in got.deltas if isinstance(delta, TextDelta)]
    assert texts == [TextDelta("Hello"), TextDelta("!")]
    assert got.deltas[-1] == FinishDelta("stop")


@pytest.mark.behaviour("B-TH-2")
def test_a_signed_thought_keeps_its_signature_with_and_without_words() -> None:
    got = whole(
        chunk(
            {"text": "Hm", "thought": True, "thoughtSignature": "s1"},
            {"thought": True, "thoughtSignature": "s2"},
            {"text": "So."},
            finish="STOP",
        )
    )
    assert [part for part in got.message.parts if isinstance(part, Thinking)] == [
        Thinking("Hm", "s1", None, "gemini"),
        Thinking("", "s2", None, "gemini"),
    ]


@pytest.mark.behaviour("B-US-1")
def test_counts_are_cumulative_and_a_count_that_says_nothing_is_none() -> None:
    got = streamed(
        chunk({"text": "a"}, usageMetadata={"trafficType": "ON_DEMAND"}),
        chunk({"text": "b"}, **counted(prompt=0, candidates=0)),
        chunk({"text": "c"}, **counted(prompt=5)),
        chunk({"text": "d"}, **counted(prompt=5, candidates=3)),
        chunk({"text": "e"}, finish="STOP", **counted(prompt=5, candidates=3)),
    )
    reports = [delta for delta in got.deltas if isinstance(delta, UsageDelta)]
    assert reports == [UsageDelta(Usage(input=5)), UsageDelta(Usage(input=5, output=3))]
    assert streamed(chunk({"text": "a"}, finish="STOP")).message.usage is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), (1, "stop"),
        (2, "length"), (3, "content_filter"), ("RECITATION", "content_filter"),
        ("NEW_REASON", "NEW_REASON"),
    ],
)  # fmt: skip
def test_reasons_are_told_in_our_words_where_there_are_some(reason: Any, finish: str) -> None:
    for got in (
        streamed(chunk({"text": "x"}), chunk(finish=reason)),
        whole(chunk({"text": "x"}, finish=reason)),
    ):
        assert got.error is None
        assert got.message.finish == finish


def test_an_answer_that_was_filtered_says_why_and_keeps_what_came() -> None:
    end = {"finishReason": "PROHIBITED_CONTENT", "finishMessage": "It may be prohibited."}
    got = streamed(chunk({"text": "Half"}), {"candidates": [end]})
    assert got.error is None
    assert got.message.text == "Half"
    assert got.message.finish == "content_filter"
    assert got.meta["refusal"] == "It may be prohibited."


@pytest.mark.rule("R-FAIL-3")
def test_a_blocked_prompt_is_refused_with_its_reason() -> None:
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": "Harmful. AIza-secret-secret"}
    for got in (
        streamed({"promptFeedback": feedback, **counted(prompt=4)}),
        whole({"promptFeedback": feedback, **counted(prompt=4)}),
    ):
        assert isinstance(got.error, ModelRefused)
        assert "blocked the prompt (SAFETY): Harmful. ***. Change" in str(got.error)
        assert got.message.usage == Usage(input=4)
    kept = whole({**chunk({"text": "x"}, finish="STOP"), "promptFeedback": feedback})
    assert kept.error is None


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(
    ("reason", "again"),
    [("MALFORMED_FUNCTION_CALL", True), ("UNEXPECTED_TOOL_CALL", True), ("OTHER", False)],
)
def test_an_end_without_an_answer_is_an_error(reason: str, again: bool) -> None:
    end = {"finishReason": reason, "finishMessage": "print(look)"}
    for got in (
        streamed(chunk({"text": "Hm", "thought": True}), {"candidates": [end]}),
        whole({"candidates": [end]}),
    ):
        assert isinstance(got.error, ModelBroken)
        assert f"ended without an answer ({reason}); ask again: print(look)." in str(got.error)
        assert got.error.retryable is again


def test_an_answer_of_no_parts_is_an_empty_one() -> None:
    for candidate in ({"content": {"role": "model"}}, {}, {"content": {"parts": []}}):
        got = whole({"candidates": [{**candidate, "finishReason": "STOP"}]})
        assert got.error is None
        assert got.message.parts == ()
        assert got.message.finish == "stop"


def test_a_second_candidate_is_not_read() -> None:
    second = {"content": {"parts": [{"text": "B"}]}, "index": 1, "finishReason": "MAX_TOKENS"}
    body = chunk({"text": "A"}, finish="STOP")
    body["candidates"].append(second)
    for got in (whole(body), streamed(body)):
        assert (got.message.text, got.message.finish) == ("A", "stop")


def test_sources_are_told_beside_the_answer() -> None:
    body = chunk({"text": "A"}, finish="STOP")
    body["candidates"][0] |= {
        "groundingMetadata": {"webSearchQueries": ["q"]},
        "citationMetadata": {"citationSources": [{"uri": "u"}]},
        "urlContextMetadata": {"urlMetadata": []},
    }
    got = whole(body)
    assert got.meta["grounding"] == {"webSearchQueries": ["q"]}
    assert got.meta["citations"] == {"citationSources": [{"uri": "u"}]}
    assert got.meta["url_context"] == {"urlMetadata": []}


# -- errors -------------------------------------------------------------------------------------


def failed(code: int = 503, status: str = "UNAVAILABLE") -> dict[str, Any]:
    return {"error": {"code": code, "message": "The model is overloaded.", "status": status}}


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.behaviour("B-ST-12")
def test_an_error_in_the_stream_keeps_what_came_before_it() -> None:
    for last in (lines(failed()), b"data: " + json.dumps([failed()]).encode() + b"\n\n",
                 b"event: error\ndata: " + json.dumps(failed()).encode() + b"\n\n"):  # fmt: skip
        got = stream([lines(chunk({"text": "Half"})), last])
        assert isinstance(got.error, ModelOverloaded)
        assert "The model is overloaded" in str(got.error)
        assert got.message.text == "Half"


def test_an_error_in_place_of_an_answer_is_one() -> None:
    for body in (failed(), [failed()]):
        got = whole(body)
        assert isinstance(got.error, ModelOverloaded)
        assert classify(got.error) == "transient"
    assert isinstance(whole(failed(400, "INVALID_ARGUMENT")).error, ModelRefused)


@pytest.mark.rule("R-FAIL-2")
def test_a_stream_cut_short_is_told_apart_from_one_that_never_began() -> None:
    half = lines(chunk({"text": "Half"}))
    assert isinstance(stream([half]).error, ModelBroken)
    assert isinstance(stream([b""]).error, ModelUnreachable)
    assert isinstance(stream([lines({**counted(prompt=3)})]).error, ModelUnreachable)
    assert "nothing in it" in str(whole({}).error)


def test_what_is_no_json_is_quoted() -> None:
    got = streamed(chunk({"text": "a"}))
    assert got.message.text == "a"
    for broken in (stream([b"data: {oh no\n\n"]), whole(b"oh no"), whole(b"[1]")):
        assert isinstance(broken.error, ModelBroken)
        assert "sent what is no answer" in str(broken.error)


def test_half_characters_are_mended_and_the_rest_is_read() -> None:
    body = b'data: {"candidates":[{"content":{"parts":[{"text":"a\\ud83d"},{"text":"b"}]},'
    got = stream([body + b'"finishReason":"STOP"}]}\n\n'])
    assert got.error is None
    assert got.message.text == "a?b"


def test_an_end_marker_of_other_formats_does_no_harm() -> None:
    got = stream([lines(chunk({"text": "a"}, finish="STOP")), b"data: [DONE]\n\ndata: \n\n"])
    assert (got.error, got.message.text) == (None, "a")


@pytest.mark.rule("R-FAIL-2")
def test_the_wait_that_is_asked_for_in_the_body_is_honoured() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    body = {"error": {"code": 429, "message": "Slow down.", "details": [info]}}
    error = of_status(PEER, 429, {}, json.dumps(body, indent=2).encode())
    assert error.retry_after == 37.5
    assert "It asks to wait 37.5 s." in str(error)
    assert of_status(PEER, 429, {"retry-after": "2"}, json.dumps(body).encode()).retry_after == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
PART = st.fixed_dictionaries(
    {},
    optional={
        "text": JSON, "thought": JSON, "thoughtSignature": JSON,
        "functionCall": st.fixed_dictionaries({}, optional={
            "name": JSON, "id": JSON, "args": JSON, "willContinue": JSON,
            "partialArgs": st.lists(st.fixed_dictionaries({}, optional={
                "jsonPath": st.sampled_from(["$.a", "$.a[1]", "$[0]", "$", "$['x']", "a b"]) | JSON,
                "stringValue": JSON, "nullValue": JSON, "willContinue": JSON,
            }), max_size=3) | JSON,
        }),
        "odd": JSON,
    },
)  # fmt: skip


@given(st.lists(st.lists(PART, max_size=3), max_size=4))
def test_no_part_however_odd_breaks_the_decoder(answers: list[list[dict[str, Any]]]) -> None:
    got = streamed(*(chunk(*parts) for parts in answers), chunk(finish="STOP"))
    assert got.error is None
    for call in got.message.tool_calls:
        assert call.id
