"""What the way to a provider can do to a call, and how a call leaves it."""

import asyncio
import contextlib
import gc
import time
from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.errors import (
    ModelBroken,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)
from retinue.messages import Delta
from retinue.models.base import ModelRetry, generate
from retinue.models.openai.model import OpenAI
from tests.models.calling import BOTH, TEXT, Heard, ask, chat, failure, log, model_of

# -- the connection -----------------------------------------------------------------------------


@pytest.mark.rule("R-FAIL-2")
@BOTH
@pytest.mark.parametrize("fault", [{"reset": "before"}, {"close": "before"}, {"reset": 1}])
async def test_a_connection_that_breaks_before_the_answer_is_worth_a_retry(
    rig: Any, session: str, fault: dict[str, Any], stream: bool
) -> None:
    rig.script(session, [{"text": TEXT} | fault])
    error = await failure(model_of(rig, session), stream=stream)
    assert type(error) is ModelUnreachable
    assert error.retryable
    assert len(await log(rig, session)) == 1  # a new connection is not tried again unnoticed


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("how", ["reset", "close"])
async def test_a_connection_that_breaks_within_the_answer_leaves_half_of_it(
    rig: Any, session: str, how: str
) -> None:
    rig.script(session, [{"text": TEXT, how: 1100}])
    heard = Heard()
    with pytest.raises(ModelBroken, match="middle of the answer") as caught:
        await model_of(rig, session).generate(chat(stream=True), heard)
    assert not caught.value.retryable
    assert heard.text
    assert TEXT.startswith(heard.text)


@BOTH
async def test_silence_before_the_answer_is_a_timeout(rig: Any, session: str, stream: bool) -> None:
    rig.script(session, [{"text": TEXT, "hang": 5}])
    error = await failure(model_of(rig, session, timeout=0.1), stream=stream)
    assert type(error) is ModelTimeout
    assert "0.1 s" in str(error)


async def test_silence_within_the_answer_is_a_timeout(rig: Any, session: str) -> None:
    rig.script(session, [{"text": TEXT, "hang": 5, "hang_at": 3}])
    heard = Heard()
    with pytest.raises(ModelTimeout):
        await model_of(rig, session).generate(
            chat(stream=True, settings=Settings(timeout=0.1)), heard
        )
    assert heard.text == TEXT[:24]


async def test_a_slow_answer_is_no_timeout_while_bytes_come(rig: Any, session: str) -> None:
    rig.script(session, [{"text": TEXT, "chunk": 4, "drip": 40}])
    began = time.monotonic()
    answer = await ask(model_of(rig, session, timeout=0.25), stream=True)
    assert answer.text == TEXT
    assert time.monotonic() - began > 0.3


@pytest.mark.behaviour("B-ST-11")
@pytest.mark.parametrize(
    "style",
    [
        {"gzip": True},
        {"gzip": "force", "split": 7},
        {"split": "utf8"},
        {"split": 1},
        {"split": 3, "eol": "\r\n"},
        {"split": 5, "eol": "\r"},
        {"comments": True, "pings": True, "ids": True},
        {"multiline": True, "no_space": True},
        {"ascii": True},
    ],
    ids=str,
)
async def test_an_answer_is_the_same_in_every_framing(
    rig: Any, session: str, style: dict[str, Any]
) -> None:
    rig.script(session, [{"text": TEXT, "chunk": 2} | style])
    answer = await ask(model_of(rig, session), stream=True)
    assert answer.text == TEXT
    assert answer.message.usage is not None


async def test_a_header_that_cannot_be_one_is_told_as_it_is(rig: Any, session: str) -> None:
    settings = Settings(headers={"X-Odd": "a\nb"})
    with pytest.raises(ValueError, match="header") as caught:
        await ask(model_of(rig, session), settings=settings)
    assert caught.value.__cause__ is not caught.value


# -- kept connections ---------------------------------------------------------------------------


async def test_one_connection_serves_one_call_after_another(rig: Any, session: str) -> None:
    rig.script(
        session,
        [
            {"text": "a"},
            {"status": 400},
            {"text": "b"},
            {"html": True},
            {"text": "c"},
            {"text": "d"},
        ],
    )
    model = model_of(rig, session)
    for stream in (True, False, True, False, False, True):
        with contextlib.suppress(ModelError):
            await ask(model, stream=stream)
    assert len({entry["connection"] for entry in await log(rig, session)}) == 1


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("stream", [True, False])
async def test_kept_connections_that_turn_out_dead_are_replaced_unnoticed(
    rig: Any, session: str, stream: bool
) -> None:
    # Three calls at once, so that three connections are kept; each is cut when it is used again.
    rig.script(
        session, [{"text": "one", "hang": 0.1, "stale": "reuse", "repeat": 3}, {"text": "two"}]
    )
    model = model_of(rig, session)
    await asyncio.gather(*(ask(model, stream=True) for _ in range(3)))
    assert (await ask(model, stream=stream)).text == "two"
    assert [entry["status"] for entry in await log(rig, session)] == [200] * 3 + [None] * 3 + [200]


async def test_a_kept_connection_that_the_server_closed_is_not_used(rig: Any, session: str) -> None:
    rig.script(session, [{"text": "one", "stale": 0}, {"text": "two"}])
    model = model_of(rig, session)
    await ask(model, stream=True)
    assert (await ask(model, stream=True)).text == "two"


async def test_many_calls_run_at_once(rig: Any, session: str) -> None:
    rig.script(session, [{"text": "x", "hang": 0.3, "repeat": True}])
    model = model_of(rig, session)
    answers = await asyncio.gather(*(ask(model, stream=True) for _ in range(120)))
    assert {answer.text for answer in answers} == {"x"}
    entries = await log(rig, session)
    assert len({entry["connection"] for entry in entries}) == 120


# -- leaving early ------------------------------------------------------------------------------


async def gone(rig: Any, session: str) -> None:
    """Returns when the provider has seen its reader leave."""
    async with asyncio.timeout(5):
        while not (entries := await log(rig, session)) or not entries[-1]["disconnected"]:
            pass


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.behaviour("B-ST-9")
@pytest.mark.parametrize("hang_at", [None, 3], ids=["before the answer", "within it"])
async def test_cancelling_a_call_closes_its_connection(
    rig: Any, session: str, hang_at: int | None
) -> None:
    step: dict[str, Any] = {"text": TEXT, "hang": 30}
    rig.script(session, [step if hang_at is None else step | {"hang_at": hang_at}])
    model = model_of(rig, session)
    heard = Heard()
    task = asyncio.create_task(_generate(model, heard))
    async with asyncio.timeout(5):
        while not await log(rig, session) or (hang_at and heard.text != TEXT[:24]):
            pass
    cancelled = time.time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(rig, session)
    assert (await log(rig, session))[-1]["disconnected"] - cancelled < 0.1


async def _generate(model: OpenAI, heard: Heard) -> None:
    await model.generate(chat(stream=True), heard)


async def test_a_reader_that_fails_closes_the_connection(rig: Any, session: str) -> None:
    rig.script(session, [{"text": TEXT, "hang": 30, "hang_at": 3}])

    async def fail(delta: Delta) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await model_of(rig, session).generate(chat(stream=True), fail)
    await gone(rig, session)


# -- retries ------------------------------------------------------------------------------------


async def delivered(model: OpenAI, retry: ModelRetry) -> tuple[str, list[ModelError]]:
    """The text that one call with retries delivers, and the failures on its way."""
    heard = Heard()
    failures: list[ModelError] = []
    await generate(
        model, chat(stream=True), heard, retry, lambda error, wait: failures.append(error)
    )
    return heard.text, failures


NOW = ModelRetry(base=0.0)


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize(
    "fault", [{"status": 503}, {"status": 529}, {"reset": "before"}, {"reset": 1}, {"no_end": 1}]
)
async def test_a_call_that_may_work_later_is_tried_again(
    rig: Any, session: str, fault: dict[str, Any]
) -> None:
    rig.script(session, [{"fail": {"times": 2} | fault, "text": "ok"}])
    text, failures = await delivered(model_of(rig, session), NOW)
    assert text == "ok"
    assert len(failures) == 2


@pytest.mark.rule("R-FAIL-2")
async def test_what_was_refused_is_not_tried_again(rig: Any, session: str) -> None:
    rig.script(session, [{"status": 400}, {"text": "never"}])
    with pytest.raises(ModelRefused):
        await delivered(model_of(rig, session), NOW)
    assert len(await log(rig, session)) == 1


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("fault", [{"error_at": 3, "error": {"code": 503}}, {"reset": 1100}])
async def test_after_the_first_token_nothing_is_tried_again(
    rig: Any, session: str, fault: dict[str, Any]
) -> None:
    rig.script(session, [{"text": TEXT} | fault, {"text": "never"}])
    with pytest.raises(ModelError):
        await delivered(model_of(rig, session), NOW)
    assert len(await log(rig, session)) == 1


@pytest.mark.rule("R-FAIL-2")
async def test_a_wait_longer_than_the_cap_ends_the_retries(rig: Any, session: str) -> None:
    rig.script(session, [{"status": 429, "retry_after": 600}, {"text": "never"}])
    with pytest.raises(ModelOverloaded, match="asks to wait 600 s"):
        await delivered(model_of(rig, session), NOW)
    assert len(await log(rig, session)) == 1


@pytest.mark.rule("R-FAIL-3")
async def test_the_last_error_says_how_often_it_was_tried(rig: Any, session: str) -> None:
    rig.script(session, [{"status": 503, "repeat": True}])
    with pytest.raises(ModelOverloaded) as caught:
        await delivered(model_of(rig, session), NOW)
    assert "3 times" in "".join(caught.value.__notes__)


async def test_nothing_is_left_behind_by_a_failed_call(rig: Any, session: str) -> None:
    rig.script(session, [{"text": TEXT, "reset": 1100}])
    before = asyncio.all_tasks()
    await failure(model_of(rig, session), stream=True)
    gc.collect()
    assert asyncio.all_tasks() == before
