"""What the way to a provider can do to a call, beyond what the contract of models holds."""

import asyncio
import time
from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.errors import (
    ConfigError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
)
from retinue.messages import Image, user
from retinue.models import OpenAI
from retinue.models.base import ModelRetry, generate
from retinue.testing.faulty import PROMPT
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


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("name", "value"),
    [("X-Odd", "hush\nhush"), ("X-Odd", "hush\x00"), ("X-Odd", "hush\ud83d"), ("X Odd", "hush")],
)
async def test_a_header_that_cannot_be_one_is_refused_before_the_call(
    rig: Any, session: str, name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=f"header '{name}' cannot be sent; ") as caught:
        await ask(model_of(rig, session), settings=Settings(headers={name: value}))
    assert "hush" not in str(caught.value)
    assert not await log(rig, session)
    with pytest.raises(ConfigError, match=f"header '{name}' cannot be sent; "):
        OpenAI("m", base_url=rig.openai(session), headers={name: value})


async def test_a_vendor_that_does_not_take_the_request_is_not_waited_for() -> None:
    over = asyncio.Event()

    async def take_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with await asyncio.start_server(take_nothing, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        image = Image(b"\x89PNG" + bytes(20_000_000))
        request = chat(user("?", image), settings=Settings(timeout=0.2))
        try:
            async with asyncio.timeout(PROMPT):
                with pytest.raises(ModelTimeout, match=r"0\.2 s") as caught:
                    await OpenAI("m", base_url=url).generate(request, Heard())
        finally:
            over.set()
    assert caught.value.retryable


async def test_a_vendor_that_takes_the_request_slowly_is_waited_for() -> None:
    sip = 1_000_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        size = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        for left in range(size, 0, -sip):
            await reader.readexactly(min(sip, left))
            await asyncio.sleep(0.03)
        writer.write(b"HTTP/1.1 418 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        image = Image(b"\x89PNG" + bytes(20_000_000))
        began = time.monotonic()
        with pytest.raises(ModelRefused, match="418"):
            await OpenAI("m", base_url=url).generate(
                chat(user("?", image), settings=Settings(timeout=0.5)), Heard()
            )
        assert time.monotonic() - began > 0.5


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
