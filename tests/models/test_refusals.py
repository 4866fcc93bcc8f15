"""What a provider refuses, and answers that are none, as errors that say what to do."""

from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.errors import (
    ModelBroken,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    classify,
)
from tests.models.calling import BOTH, TEXT, Heard, ask, chat, failure, model_of

# -- refusals -----------------------------------------------------------------------------------

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


async def test_an_account_out_of_credit_is_not_asked_again(rig: Any, session: str) -> None:
    rig.script(
        session, [{"status": 429, "retry_after": 1, "error": {"code": "insufficient_quota"}}]
    )
    error = await failure(model_of(rig, session))
    assert type(error) is ModelRefused
    assert classify(error) == "environment"
    assert "Top up" in str(error)


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [(7, 7, 7), (0.5, 0.5, 0.5), ({"date": 90}, 80, 90), ({"date": -90}, 0, 0), ("soon", None, 0)],
)
async def test_the_wait_that_the_provider_asks_for_is_read(
    rig: Any, session: str, asked: Any, low: float | None, high: float
) -> None:
    rig.script(session, [{"status": 429, "retry_after": asked}])
    error = await failure(model_of(rig, session))
    if low is None:
        assert error.retry_after is None
    else:
        assert error.retry_after is not None
        assert low <= error.retry_after <= high


@pytest.mark.rule("R-FAIL-3")
@BOTH
@pytest.mark.parametrize(
    "step",
    [
        {"status": 401, "error": {"message": "Wrong key: sk-rig-openai!"}},
        {"status": 500, "body": "stack trace with Bearer sk-rig-openai in it"},
        {"status": 400, "error": {"message": "header x-tenant-token was hush-hush-tenant"}},
        {"error_at": 1, "error": {"message": "sk-rig-openai is used up"}},
    ],
    ids=["401", "500", "header", "within the answer"],
)
async def test_a_key_never_shows_even_if_the_provider_repeats_it(
    rig: Any, session: str, step: dict[str, Any], stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    rig.script(session, [step])
    model = model_of(rig, session)
    settings = Settings(headers={"X-Tenant-Token": "hush-hush-tenant"})
    error = await failure(model, stream=stream, settings=settings)
    shown = f"{error} {error!r} {error.__dict__} {getattr(error, '__notes__', '')} {model!r}"
    shown += f"{error.__cause__!r} {error.__context__!r} {caplog.text}"
    assert "***" in str(error)
    assert rig.key not in shown
    assert "hush-hush" not in shown


# -- answers that are none ----------------------------------------------------------------------


@BOTH
async def test_a_web_page_is_no_answer(rig: Any, session: str, stream: bool) -> None:
    rig.script(session, [{"html": True}])
    error = await failure(model_of(rig, session), stream=stream)
    assert type(error) is ModelBroken
    assert "web page" in str(error)
    assert "base_url" in str(error)


async def test_a_whole_answer_cut_short_is_broken(rig: Any, session: str) -> None:
    rig.script(session, [{"text": TEXT, "truncate": 150}])
    error = await failure(model_of(rig, session))
    assert type(error) is ModelBroken


@pytest.mark.behaviour("B-ST-12")
async def test_an_error_in_the_middle_of_a_stream_comes_after_the_text_before_it(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": TEXT, "error_at": 3, "error": {"message": "GPU on fire"}}])
    heard = Heard()
    with pytest.raises(ModelError, match="GPU on fire"):
        await model_of(rig, session).generate(chat(stream=True), heard)
    assert heard.text == TEXT[:24]


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


async def test_a_stream_that_just_stops_is_broken_and_its_text_is_kept(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": TEXT, "no_end": "finish"}])
    heard = Heard()
    with pytest.raises(ModelBroken, match="middle of its answer"):
        await model_of(rig, session).generate(chat(stream=True), heard)
    assert heard.text == TEXT
