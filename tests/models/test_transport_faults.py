"""What the way to a provider can do to a call, beyond what the contract of models holds."""

import asyncio
from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.errors import ModelOverloaded
from retinue.models.base import ModelRetry, generate
from tests.models.calling import TEXT, Heard, ask, chat, log, model_of

NOW = ModelRetry(base=0.0)


@pytest.mark.behaviour("B-ST-11")
@pytest.mark.parametrize(
    "style",
    [
        {"gzip": "force", "split": 7},
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


async def test_many_calls_run_at_once(rig: Any, session: str) -> None:
    rig.script(session, [{"text": "x", "hang": 0.3, "repeat": True}])
    model = model_of(rig, session)
    answers = await asyncio.gather(*(ask(model, stream=True) for _ in range(120)))
    assert {answer.text for answer in answers} == {"x"}
    entries = await log(rig, session)
    assert len({entry["connection"] for entry in entries}) == 120


@pytest.mark.rule("R-FAIL-2")
async def test_a_wait_longer_than_the_cap_ends_the_retries(rig: Any, session: str) -> None:
    rig.script(session, [{"status": 429, "retry_after": 600}, {"text": "never"}])
    with pytest.raises(ModelOverloaded, match="asks to wait 600 s"):
        await generate(model_of(rig, session), chat(stream=True), Heard(), NOW)
    assert len(await log(rig, session)) == 1


@pytest.mark.rule("R-FAIL-3")
async def test_the_last_error_says_how_often_it_was_tried(rig: Any, session: str) -> None:
    rig.script(session, [{"status": 503, "repeat": True}])
    with pytest.raises(ModelOverloaded) as caught:
        await generate(model_of(rig, session), chat(stream=True), Heard(), NOW)
    assert "3 times" in "".join(caught.value.__notes__)
