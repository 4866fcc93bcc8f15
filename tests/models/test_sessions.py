"""Connections over the life of a program: loops that come and go, models that share, proxies."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from retinue.errors import ModelBroken, ModelError, ModelRefused, ModelUnreachable
from retinue.models.openai.model import OpenAI
from retinue.testing.faulty import PROMPT
from tests.models.calling import Heard, ask, chat
from tests.provider import run_script

ANSWER = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}


@asynccontextmanager
async def serving(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """A server on this machine that gives every request to the handler; its address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def speaking(reply: bytes) -> AsyncIterator[str]:
    """A server that says these bytes to whatever it hears, and hangs up; its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


# -- loops --------------------------------------------------------------------------------------

SCRIPT = """
import asyncio
from retinue.models.openai.model import OpenAI
from tests.models.calling import ask
model = OpenAI("gpt-4o", base_url=BASE, api_key=KEY)
"""


def script(rig: Any, session: str, body: str) -> str:
    rig.script(session, [{"text": "ok", "repeat": True}])
    return f"BASE, KEY = {rig.openai(session)!r}, {rig.key!r}{SCRIPT}{body}"


def test_a_script_that_runs_two_loops_and_closes_nothing_ends_silently(
    rig: Any, session: str
) -> None:
    source = script(
        rig,
        session,
        "for stream in (True, False):\n    print(asyncio.run(ask(model, stream=stream)).text)\n",
    )
    done = run_script(source, "-W", "error")
    assert done.stderr == ""
    assert done.stdout == "ok\nok\n"
    assert len({entry["connection"] for entry in rig.log(session)}) == 2


def test_a_loop_that_is_closed_by_hand_ends_silently(rig: Any, session: str) -> None:
    source = script(
        rig,
        session,
        "for _ in range(2):\n"
        "    loop = asyncio.new_event_loop()\n"
        "    print(loop.run_until_complete(ask(model, stream=True)).text)\n"
        "    loop.close()\n",
    )
    done = run_script(source)
    assert done.stderr == ""
    assert done.stdout == "ok\nok\n"


def test_a_loop_that_is_never_closed_ends_silently(rig: Any, session: str) -> None:
    source = script(
        rig,
        session,
        "loop = asyncio.new_event_loop()\n"
        "print(loop.run_until_complete(ask(model, stream=True)).text)\n",
    )
    done = run_script(source)
    assert done.stderr == ""
    assert done.stdout == "ok\n"


def test_a_program_that_is_interrupted_in_a_call_ends_without_a_complaint_of_the_connection(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": "ok", "hang": 30}])
    source = (
        f"BASE, KEY = {rig.openai(session)!r}, {rig.key!r}{SCRIPT}"
        "async def main():\n"
        "    async with asyncio.timeout(0.2):\n"
        "        await ask(model, stream=True)\n"
        "try:\n"
        "    asyncio.run(main())\n"
        "except TimeoutError:\n"
        "    print('left')\n"
    )
    done = run_script(source, "-W", "error")
    assert done.stderr == ""
    assert done.stdout == "left\n"


def test_aiohttp_is_not_loaded_before_the_first_call() -> None:
    done = run_script(
        "import sys\n"
        "from retinue.models import OpenAI, resolve\n"
        "OpenAI('gpt-5-mini', api_key='sk-something')\n"
        "resolve('ollama:qwen3')\n"
        "print([name for name in ('aiohttp', 'pydantic', 'genai_prices') if name in sys.modules])\n"
    )
    assert done.stdout == "[]\n", done.stderr


async def test_models_share_connections_and_closing_one_leaves_the_others_theirs(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": "a"}, {"text": "b", "drip": 20, "chunk": 1}, {"text": "c"}])
    first = OpenAI("gpt-4o", base_url=rig.openai(session), api_key=rig.key)
    second = OpenAI("gpt-4o-mini", base_url=rig.openai(session), api_key=rig.key)
    await ask(first, stream=True)
    running = asyncio.create_task(ask(second, stream=True))
    async with asyncio.timeout(5):
        while len(await asyncio.to_thread(rig.log, session)) < 2:
            pass
    await first.close()
    async with asyncio.timeout(5):
        assert (await running).text == "b"
    await second.close()
    await second.close()
    assert (await ask(first, stream=True)).text == "c"  # a closed model opens anew
    entries = await asyncio.to_thread(rig.log, session)
    assert entries[0]["connection"] == entries[1]["connection"] != entries[2]["connection"]


async def test_a_call_that_is_running_ends_well_although_its_model_is_closed(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": "a"}, {"text": "b", "hang": 0.2}])
    model = OpenAI("gpt-4o", base_url=rig.openai(session), api_key=rig.key)
    await ask(model, stream=True)
    running = asyncio.create_task(ask(model, stream=True))
    async with asyncio.timeout(5):
        while len(await asyncio.to_thread(rig.log, session)) < 2:
            pass
    await model.close()
    async with asyncio.timeout(5):
        assert (await running).text == "b"


async def test_closing_a_model_that_was_never_used_does_nothing() -> None:
    await OpenAI("gpt-4o", api_key="sk-something").close()


# -- where it goes ------------------------------------------------------------------------------


async def test_the_proxy_of_the_environment_is_used_and_its_exceptions_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    async def proxy(request: web.Request) -> web.Response:
        seen.append(request.raw_path)
        return web.json_response(ANSWER)

    async def direct(request: web.Request) -> web.Response:
        seen.append("direct")
        return web.json_response(ANSWER)

    async with serving(proxy) as address, serving(direct) as other:
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.setenv("no_proxy", "excepted.invalid")
        model = OpenAI("m", base_url="http://models.example/v1")
        assert (await ask(model)).text == "ok"
        with pytest.raises(ModelUnreachable):
            await ask(OpenAI("m", base_url="http://excepted.invalid/v1"))
        # a model on this machine needs no exception
        assert (await ask(OpenAI("m", base_url=other))).text == "ok"
    assert seen == ["http://models.example/v1/chat/completions", "direct"]


@pytest.mark.rule("R-FAIL-3")
async def test_a_proxy_that_refuses_is_told_without_its_password_and_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with speaking(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as address:
        monkeypatch.setenv("https_proxy", address.replace("//", "//ann:hush-hush-hush@"))
        with pytest.raises(ModelUnreachable, match=r"proxy refuses: HTTP 407 Proxy") as caught:
            await ask(OpenAI("m", base_url="https://models.example", api_key="sk-something"))
    assert "hush" not in shown(caught.value)
    assert "sk-something" not in shown(caught.value)


def shown(error: BaseException) -> str:
    """All that a log may show of an error."""
    return f"{error} {error!r} {error.__cause__!r} {error.__context__!r}"


@pytest.mark.rule("R-FAIL-3")
async def test_a_redirect_that_repeats_the_key_is_told_without_it() -> None:
    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPTemporaryRedirect("https://elsewhere.example/?key=sk-something")

    async with serving(redirect) as address:
        with pytest.raises(ModelRefused, match=r"redirects to https://elsewhere") as caught:
            await ask(OpenAI("m", base_url=address, api_key="sk-something"))
    assert "sk-something" not in shown(caught.value)


async def test_a_redirect_is_told_and_the_key_stays_here() -> None:
    seen: list[web.Request] = []

    async def elsewhere(request: web.Request) -> web.Response:
        seen.append(request)
        return web.json_response(ANSWER)

    async with serving(elsewhere) as target:

        async def redirect(request: web.Request) -> web.Response:
            raise web.HTTPTemporaryRedirect(target)

        async with serving(redirect) as address:
            with pytest.raises(ModelRefused, match="redirects to http://127") as caught:
                await ask(OpenAI("m", base_url=address, api_key="sk-something"))
    assert "Set base_url" in str(caught.value)
    assert not seen


async def test_nobody_at_the_address_is_told_with_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(
            ModelUnreachable, match=f"127.0.0.1:{port}.*cannot be reached"
        ) as caught:
            await ask(OpenAI("m", base_url=f"http://127.0.0.1:{port}/v1"))
    assert caught.value.retryable


async def test_a_name_that_nobody_knows_is_told() -> None:
    with pytest.raises(ModelUnreachable, match=r"nowhere\.invalid.*looked up"):
        await ask(OpenAI("m", base_url="http://nowhere.invalid/v1"))


@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/9 what\r\n\r\n"])
async def test_a_server_that_speaks_no_http_is_told(reply: bytes) -> None:
    async with speaking(reply) as address:
        with pytest.raises(ModelBroken, match="sent no HTTP answer") as caught:
            await ask(OpenAI("m", base_url=address, api_key="sk-something"))
    assert "sk-something" not in shown(caught.value)


async def test_a_body_that_cannot_be_unpacked_is_broken() -> None:
    async def garbled(request: web.Request) -> web.Response:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=b"this is not gzip at all", headers=headers)

    async with serving(garbled) as address:
        with pytest.raises(ModelError, match="unpacked"):
            await ask(OpenAI("m", base_url=address))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"choices": [{"message": {"content": "ok"}}]}'),
        ("text/event-stream", b'data: {"choices": [{"delta": {"content": "ok"}}]}\n\ndata: [DONE]'),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_what_the_server_sends_counts_and_not_what_was_asked(
    kind: str, body: bytes, stream: bool
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind)

    async with serving(answer) as address:
        assert (await ask(OpenAI("m", base_url=address), stream=stream)).text == "ok"


async def test_a_stream_that_never_ends_after_its_end_marker_does_not_hold_the_answer() -> None:
    released = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"ok"}}]}\n\ndata: [DONE]\n\n')
        await released.wait()
        return response

    async with serving(endless) as address:
        async with asyncio.timeout(PROMPT):
            assert (await ask(OpenAI("m", base_url=address), stream=True)).text == "ok"
        released.set()


async def test_a_connection_is_kept_although_its_last_bytes_come_after_the_end_marker() -> None:
    connections: list[object] = []

    async def dawdling(request: web.Request) -> web.StreamResponse:
        connections.append(request.transport)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"ok"}}]}\n\ndata: [DONE]\n\n')
        await asyncio.sleep(0.01)  # so that the end of the body is a read of its own
        return response

    async with serving(dawdling) as address:
        model = OpenAI("m", base_url=address)
        await ask(model, stream=True)
        await ask(model, stream=True)
    assert len(connections) == 2
    assert connections[0] is connections[1]


async def test_a_request_of_many_megabytes_arrives_whole() -> None:
    sizes: list[int] = []

    async def count(request: web.Request) -> web.Response:
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
        sizes.append(size)
        return web.json_response(ANSWER)

    async with serving(count) as address:
        assert (await ask(OpenAI("m", base_url=address), "x" * 3_000_000)).text == "ok"
    assert sizes[0] > 3_000_000


async def test_the_request_id_of_the_provider_is_handed_on(rig: Any, session: str) -> None:
    rig.script(session, [{"text": "ok"}])
    heard = Heard()
    model = OpenAI("gpt-4o", base_url=rig.openai(session), api_key=rig.key)
    meta = await model.generate(chat(stream=True), heard)
    assert meta is not None
    assert meta["request_id"].startswith("req_")
    assert meta["model"] == "gpt-4o"
