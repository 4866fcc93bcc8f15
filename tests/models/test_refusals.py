"""What OpenAI refuses, status by status, and the odd ends of its answers.

What holds for every vendor is in the contract of models.
"""

import json
from typing import Any

import pytest

from retinue.errors import ModelOverloaded, ModelRefused, classify
from retinue.models.failures import Peer, of_status
from retinue.testing.dialects import (
    AnthropicMessages,
    ChatCompletions,
    GeminiContent,
    OpenAIResponses,
)
from retinue.testing.vendor import Dialect
from tests.models.calling import BOTH, TEXT, ask, failure, model_of

STATUS = {
    400: (ModelRefused, "semantic", "maximum context length is 128000"),
    401: (ModelRefused, "environment", "Incorrect API key"),
    402: (ModelRefused, "environment", "Insufficient Balance"),
    403: (ModelRefused, "environment", "Country, region"),
    404: (ModelRefused, "semantic", "does not exist"),
    408: (ModelOverloaded, "transient", "Request timed out"),
    409: (ModelOverloaded, "transient", "updated by another"),
    413: (ModelRefused, "semantic", "too large"),
    422: (ModelRefused, "semantic", "Unprocessable"),
    429: (ModelOverloaded, "transient", "Rate limit reached"),
    500: (ModelOverloaded, "transient", "had an error"),
    502: (ModelOverloaded, "transient", "502 Bad Gateway"),
    503: (ModelOverloaded, "transient", "overloaded"),
    529: (ModelOverloaded, "transient", "overloaded"),
}


@pytest.mark.rule("R-FAIL-1", "R-FAIL-2", "R-FAIL-3")
@BOTH
@pytest.mark.parametrize("status", STATUS)
async def test_a_refusal_says_who_what_and_what_to_do(
    rig: Any, session: str, status: int, stream: bool
) -> None:
    kind, failure_class, words = STATUS[status]
    rig.script(session, [{"status": status}])
    error = await failure(model_of(rig, session), stream=stream)
    assert type(error) is kind
    assert error.status == status
    assert error.retryable is (kind is ModelOverloaded)
    assert classify(error) == failure_class
    text = str(error)
    assert text.startswith("openai (127.0.0.1:")
    assert f"HTTP {status}" in text
    assert words in text
    assert text.endswith(".")


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        (400, "This model's maximum context length is 8192 tokens.", "Send fewer messages"),
        (400, "Input is too long for requested model.", "Send fewer messages"),
        (422, "Prompt contains 40000 tokens and exceeds the maximum of 32768", "Send fewer"),
        (400, "Invalid 'metadata': string too long.", "Change the request"),
        (429, "Request too large on tokens per min: the context is too long", "Ask less often"),
    ],
)
def test_a_prompt_that_is_too_long_is_told_what_makes_it_shorter(
    status: int, said: str, advice: str
) -> None:
    body = json.dumps({"error": {"message": said}}).encode()
    error = of_status(Peer("shed", "127.0.0.1", "m", "SHED_KEY"), status, {}, body)
    assert said.rstrip(".") in str(error)
    assert advice in str(error).rpartition(said.rstrip("."))[2]


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    "dialect", [ChatCompletions, OpenAIResponses, AnthropicMessages, GeminiContent]
)
def test_every_vendor_is_understood_when_it_finds_a_prompt_too_long(dialect: type[Dialect]) -> None:
    refusal = dialect().refusals["context"]
    error = of_status(Peer("shed", "127.0.0.1", "m", "SHED_KEY"), refusal.status, {}, refusal.body)
    assert "longer context" in str(error)
    assert type(error) is ModelRefused
    assert classify(error) == "semantic"


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"error":' * 9_000])
def test_an_error_that_is_nested_without_end_is_told_all_the_same(body: bytes) -> None:
    error = of_status(Peer("shed", "127.0.0.1", "m", "SHED_KEY"), 500, {}, body)
    assert type(error) is ModelOverloaded
    assert len(str(error)) < 1_000


@pytest.mark.behaviour("B-ST-7")
@pytest.mark.parametrize("finish", ["missing", "empty", "every:stop"])
@BOTH
async def test_an_answer_is_complete_whatever_its_finish_reason(
    rig: Any, session: str, finish: str, stream: bool
) -> None:
    rig.script(session, [{"text": TEXT, "finish": finish}])
    answer = await ask(model_of(rig, session), stream=stream)
    assert answer.text == TEXT
    assert answer.message.finish == ("stop" if finish == "every:stop" else None)


async def test_a_stream_without_its_end_marker_is_complete_if_the_model_said_why_it_stopped(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": TEXT, "no_end": "done"}])
    assert (await ask(model_of(rig, session), stream=True)).text == TEXT


@pytest.mark.rule("R-FAIL-1")
async def test_an_account_out_of_credit_needs_a_person_also_in_the_middle_of_a_stream(
    rig: Any, session: str
) -> None:
    spent = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
    rig.script(session, [{"text": TEXT, "error_at": 1, "error": spent}])
    error = await failure(model_of(rig, session), stream=True)
    assert type(error) is ModelRefused
    assert classify(error) == "environment"
    assert "Top up the account" in str(error)
