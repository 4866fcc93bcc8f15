"""Answers written by hand, for what the recordings do not have."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.errors import ModelBroken, ModelOverloaded, ModelRefused, ModelUnreachable
from retinue.messages import FinishDelta, TextDelta, Thinking, Usage
from tests.wire.receives.openai.decoding import (
    lines,
    pieces,
    said,
    stream,
    streamed,
    whole,
)

# -- reasoning ----------------------------------------------------------------------------------


@pytest.mark.behaviour("B-TH-1")
@pytest.mark.parametrize(
    "thought",
    [
        {"reasoning_content": " so\n"},
        {"reasoning": " so\n"},
        {"reasoning": " so\n", "reasoning_content": " so\n"},
        {"reasoning_details": [{"type": "reasoning.text", "text": " so\n", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": " so\n", "index": 0}]},
        {
            "reasoning": " so\n",
            "reasoning_details": [{"type": "reasoning.text", "text": " so\n", "index": 0}],
        },
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": " so\n"}]}]},
        {"content": [{"type": "thinking", "thinking": " so\n"}]},
    ],
)
def test_reasoning_in_any_spelling_stays_out_of_the_text(thought: dict[str, Any]) -> None:
    got = streamed(said(**thought), said(content="Yes"), said("stop"))
    assert got.message.thinking == " so\n"
    assert got.message.text == "Yes"
    message = {"role": "assistant", "content": None} | thought
    if "content" in thought:
        message["content"] = [*thought["content"], {"type": "text", "text": "Yes"}]
    else:
        message["content"] = "Yes"
    once = whole(json.dumps({"choices": [{"message": message}]}).encode())
    assert once.message.thinking == " so\n"
    assert once.message.text == "Yes"


@pytest.mark.rule("R-STREAM-7")
def test_the_pieces_of_a_reasoning_detail_are_kept_as_one_before_the_text() -> None:
    def detail(**fields: Any) -> str:
        kind = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
        return said(reasoning_details=[kind | fields])

    got = streamed(
        detail(text="Let"), detail(text=" me"), detail(signature="s1"), said(content="A")
    )
    thought = got.message.parts[0]
    assert isinstance(thought, Thinking)
    assert thought.text == "Let me"
    assert thought.opaque is not None
    assert json.loads(thought.opaque) == [
        {
            "type": "reasoning.text",
            "index": 0,
            "format": "anthropic-claude-v1",
            "text": "Let me",
            "signature": "s1",
        }
    ]


def test_encrypted_reasoning_is_kept_without_a_word_of_it_shown() -> None:
    secret = {"type": "reasoning.encrypted", "data": "gAAAA", "index": 0}
    got = streamed(said(content="Yes"), said(reasoning_details=[secret]), said("stop"))
    assert got.message.thinking == ""
    kept = [part for part in got.message.parts if isinstance(part, Thinking)]
    assert [json.loads(part.opaque or "") for part in kept] == [[secret]]


def test_think_tags_that_the_server_left_in_the_text_stay_there() -> None:
    got = streamed(said(content="<think>hm"), said(content="</think>Yes"), said("stop"))
    assert got.message.text == "<think>hm</think>Yes"


# -- usage and the end --------------------------------------------------------------------------


@pytest.mark.rule("R-USAGE-1")
@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({}, None),
        (None, None),
        ("12", None),
        ({"prompt_tokens": 9}, Usage(input=9)),
        ({"prompt_tokens": 9, "completion_tokens": 0}, Usage(input=9, output=0)),
        ({"prompt_tokens": "9", "completion_tokens": 3}, Usage(output=3)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            Usage(input=9, output=3, cache_read=4, cache_write=2, reasoning=1),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 5},
            Usage(input=9, output=3, cache_read=5),
        ),
        (
            # xAI counts reasoning beside the output.
            {
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "total_tokens": 32,
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(input=9, output=23, reasoning=20),
        ),
    ],
)
def test_usage_takes_one_form_and_the_unknown_is_none(raw: Any, usage: Usage | None) -> None:
    body = {"choices": [{"message": {"content": "x"}}], "usage": raw}
    assert whole(json.dumps(body).encode()).message.usage == usage


@pytest.mark.behaviour("B-US-1")
@pytest.mark.rule("R-USAGE-2")
def test_usage_that_grows_on_every_chunk_counts_as_its_last_report() -> None:
    chunks = [
        {
            "choices": [{"delta": {"content": "x"}}],
            "usage": {"prompt_tokens": 5, "completion_tokens": n},
        }
        for n in (1, 2, 3)
    ]
    got = streamed(*map(json.dumps, chunks), said("stop"))
    assert got.message.usage == Usage(input=5, output=3)


@pytest.mark.behaviour("B-ST-7")
@pytest.mark.parametrize(
    ("chunks", "finish"),
    [
        ([said(content="Hi")], None),
        ([said(content="Hi"), said("")], None),
        ([said("stop", content="H"), said("stop", content="i"), said("stop")], "stop"),
        ([said(content="Hi"), said("function_call")], "tool_calls"),
        ([said(content="Hi"), said("weird")], "weird"),
    ],
)
def test_the_finish_reason_comes_once_at_the_end_or_not_at_all(
    chunks: list[str], finish: str | None
) -> None:
    got = streamed(*chunks)
    assert got.error is None
    assert got.message.text == "Hi"
    finishes = [delta.reason for delta in got.deltas if isinstance(delta, FinishDelta)]
    assert finishes == ([] if finish is None else [finish])


def test_a_second_choice_is_not_mixed_into_the_first() -> None:
    other = json.dumps({"choices": [{"index": 1, "delta": {"content": "other"}}]})
    got = streamed(said(content="one"), other, said("stop"))
    assert got.message.text == "one"


def test_what_comes_after_the_end_marker_is_not_read() -> None:
    got = stream([lines(said(content="Hi")) + lines(said(content="!"))])
    assert got.message.text == "Hi"


def test_a_refusal_is_kept_beside_the_text() -> None:
    got = streamed(said(refusal="I can"), said(refusal="not."), said("stop"))
    assert got.meta["refusal"] == "I cannot."
    assert got.message.text == ""
    assert got.message.finish == "content_filter"


def test_what_is_cited_and_shown_comes_piece_by_piece_and_is_all_there() -> None:
    cited = [{"type": "url_citation", "url_citation": {"url": f"https://{n}"}} for n in "ab"]
    shown = [{"type": "image_url", "index": n, "image_url": {"url": f"data:{n}"}} for n in (0, 1)]
    searches = [{"index": 0, "type": "search", "arguments": "{}"}, {"index": 0, "output": "sun"}]
    got = streamed(
        said(content="Hi", annotations=cited[:1], images=shown[:1], executed_tools=searches[:1]),
        said(annotations=cited, images=shown[1:]),
        said(executed_tools=[searches[1] | {"type": "search"}]),
        said("stop"),
    )
    assert got.meta["annotations"] == cited
    assert got.meta["images"] == shown
    assert got.meta["executed_tools"] == [searches[0] | searches[1]]


def test_how_likely_each_token_was_is_told_where_it_was_asked() -> None:
    def weighed(*tokens: str) -> dict[str, Any]:
        return {"content": [{"token": token, "logprob": -0.1} for token in tokens], "refusal": None}

    chunks = [
        json.dumps({"choices": [{"delta": {"content": word}, "logprobs": weighed(word)}]})
        for word in ("Hi", "!")
    ]
    wanted = {"content": weighed("Hi", "!")["content"]}
    assert streamed(*chunks, said("stop")).meta["logprobs"] == wanted
    choice = {"message": {"content": "Hi!"}, "logprobs": weighed("Hi", "!")}
    assert whole({"choices": [choice]}).meta["logprobs"] == wanted


def test_the_words_of_speech_are_the_text_and_the_sound_is_kept() -> None:
    pieces_of_it = [base64.b64encode(sound).decode() for sound in (b"ab", b"cdef")]
    got = streamed(
        said(audio={"id": "audio_1", "transcript": "Hello "}),
        said(audio={"transcript": "you", "data": pieces_of_it[0]}),
        said(audio={"data": pieces_of_it[1]}),
        said("stop", audio={"expires_at": 5}),
    )
    assert got.message.text == "Hello you"
    speech = {
        "id": "audio_1", "transcript": "Hello you", "expires_at": 5,
        "data": base64.b64encode(b"abcdef").decode(),
    }  # fmt: skip
    assert got.meta["audio"] == speech
    message = {"content": None, "audio": speech}
    at_once = whole({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert (at_once.message.text, at_once.meta["audio"]) == ("Hello you", speech)


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("finish", ["error", "insufficient_system_resource"])
def test_an_answer_that_ended_because_the_server_failed_is_none(finish: str) -> None:
    got = streamed(said(content="Half"), said(finish))
    assert type(got.error) is ModelOverloaded
    assert finish in str(got.error)
    assert got.message.text == "Half"


def test_an_answer_that_asks_for_tools_ends_for_them_whatever_the_server_says() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}
    assert streamed(said("stop", tool_calls=[call])).message.finish == "tool_calls"
    assert streamed(said("length", tool_calls=[call])).message.finish == "length"


# -- what is no answer --------------------------------------------------------------------------


@pytest.mark.behaviour("B-ST-12")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "code": 429}, ModelOverloaded),
        ({"message": "slow down", "type": "rate_limit_error"}, ModelOverloaded),
        ({"message": "slow down", "code": "server_error"}, ModelOverloaded),
        ({"message": "slow down", "code": 400}, ModelRefused),
        ({"message": "slow down", "code": "context_length_exceeded"}, ModelRefused),
        ({"message": "slow down", "code": "content_filter"}, ModelRefused),
        ({"message": "slow down"}, ModelBroken),
        ("slow down", ModelBroken),
    ],
)
@pytest.mark.parametrize("form", ["data: ", "event: error\ndata: ", "error: "])
def test_an_error_in_a_stream_keeps_what_came_before_it(
    error: Any, kind: type[Exception], form: str
) -> None:
    body = lines(said(content="Hel"), said(content="lo"), done=False)
    got = stream([body + f"{form}{json.dumps({'error': error})}\n\n".encode()])
    assert got.message.text == "Hello"
    assert type(got.error) is kind
    assert "slow down" in str(got.error)


@pytest.mark.behaviour("B-US-1")
def test_usage_in_the_chunk_of_an_error_is_kept() -> None:
    chunk = {"error": {"message": "no"}, "usage": {"prompt_tokens": 4, "completion_tokens": 1}}
    got = streamed(said(content="Hi"), json.dumps(chunk))
    assert got.message.usage == Usage(input=4, output=1)
    assert got.error is not None


@pytest.mark.rule("R-FAIL-2")
def test_a_stream_that_stops_half_way_is_broken_and_one_that_never_began_is_worth_a_retry() -> None:
    half = stream([lines(said(content="Hel"), done=False)])
    assert type(half.error) is ModelBroken
    assert not half.error.retryable
    none = stream([lines(said(role="assistant", content=""), done=False)])
    assert type(none.error) is ModelUnreachable
    assert none.error.retryable


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b"null", b"not json", b'{"choices": []}', b"{"]
)
def test_a_whole_answer_that_is_none_is_broken(body: bytes) -> None:
    got = whole(body)
    assert type(got.error) is ModelBroken
    assert "api.example" in str(got.error)


@pytest.mark.parametrize("data", ["not json", '{"choices": 3}', '{"choices": [{"delta": [1]}]}'])
def test_a_chunk_that_is_none_ends_the_answer_as_broken(data: str) -> None:
    got = streamed(said(content="Hi"), data, said(content="!"), said("stop"))
    assert got.message.text == "Hi"
    assert type(got.error) is ModelBroken


def test_an_error_in_a_list_is_read_as_an_error() -> None:
    body = json.dumps([{"error": {"code": 400, "message": "no such field"}}]).encode()
    assert "no such field" in str(whole(body).error)
    assert type(stream([b"data: " + body + b"\n\n"]).error) is ModelRefused


@pytest.mark.rule("R-FAIL-3")
def test_a_key_that_the_provider_repeats_is_masked() -> None:
    chunk = json.dumps({"error": {"message": "bad key sk-secret-secret given", "code": 401}})
    error = streamed(chunk).error
    assert "sk-secret" not in str(error)
    assert "bad key *** given" in str(error)


# -- characters ---------------------------------------------------------------------------------


@pytest.mark.behaviour("B-ST-11")
@given(st.text(max_size=20), st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_text_is_the_same_in_any_script_and_any_cut(
    text: str, places: list[int], escaped: bool
) -> None:
    chunk = {"choices": [{"delta": {"content": text}}]}
    body = lines(json.dumps(chunk, ensure_ascii=escaped), said("stop"))
    got = stream(pieces(body, [place % len(body) for place in places]))
    assert got.message.text == text


def test_half_a_character_spoils_itself_and_nothing_else() -> None:
    lone = '{"choices": [{"delta": {"content": "a\\ud83d b"}}]}'
    got = stream([lines(lone, said(content="c"), said("stop"))])
    assert got.error is None
    assert got.message.text == "a? bc"
    bad = b'data: {"choices": [{"delta": {"content": "a\xff b"}}]}\n\n'
    assert stream([bad + lines(said("stop"))]).message.text == "a\ufffd b"


def test_an_empty_text_makes_no_delta() -> None:
    got = streamed(said(role="assistant", content=""), said(content="Hi"), said("stop", content=""))
    assert [d for d in got.deltas if isinstance(d, TextDelta)] == [TextDelta("Hi")]
