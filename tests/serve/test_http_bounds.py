"""What a server withstands: bodies, heads, names and clients that mean no good."""

import asyncio
import io
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from retinue import Agent
from retinue.models.scripted import Say, Scripted
from retinue.serve.bounds import Bounds
from retinue.serve.faults import Fault
from retinue.serve.http.operations import error_response
from tests.serve.scenes import BOUND, Stuck, echoing, within
from tests.serve.serving import Here, keys, serving

JSON = {"content-type": "application/json"}


POST = b"POST /v1/turns HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


def request(body: bytes) -> bytes:
    """One for a turn, as it goes over the wire."""
    return POST + b"content-length: %d\r\n\r\n%b" % (len(body), body)


async def post(here: Here, body: Any, path: str = "/v1/turns", **headers: str) -> tuple[int, Any]:
    async with here.client.post(path, data=body, headers={**JSON, **headers}) as response:
        return response.status, json.loads(await response.text())


async def test_a_body_of_ten_megabytes_is_refused_and_the_client_hears_why() -> None:
    async with serving(echoing()) as here:
        body = json.dumps({"input": "x" * 10_000_000}).encode()
        status, got = await within(post(here, io.BytesIO(body)))
        assert (status, got["error"]["code"]) == (413, "too_large")
        assert (await here.json("GET", "/healthz"))[0] == 200


async def test_a_body_that_does_not_say_how_large_it_is_is_bounded_too() -> None:
    async def chunks() -> Any:
        for _ in range(40):
            yield b"x" * 100_000

    async with serving(echoing()) as here:
        status, got = await within(post(here, chunks()))
    assert (status, got["error"]["code"]) == (413, "too_large")


BODIES = (
    b"",
    b"null",
    b"[]",
    b'{"input":',
    b'{"input":""}',
    b'{"input":[]}',
    b'{"input":1}',
    b'{"input":"\xff\xfe"}',
    b'{"input":"\\ud800"}',
    b'{"input":"a","surprise":1}',
    b'{"input":"a","choices":{"headers":{"x":"y"}}}',
    b'{"input":"a","timeout":-1}',
    b'{"input":"a","timeout":1e999}',
    b'{"input":"   "}',
    b'{"input":"a","context":{"retinue.client_tools":[]}}',
    b'{"input":"a","request_id":""}',
    b'{"input":"a","tools":[{"name":"no good"}]}',
    b'{"input":"a","tools":[{"name":"a"},{"name":"a"}]}',
    b'{"input":"a","output":{"type":"nonsense"}}',
    b'{"input":"a","context":' + b"[" * 100_000 + b"}",
    b'{"input":"a","context":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
)


async def test_a_body_that_says_what_cannot_be_is_refused_before_any_work() -> None:
    model = Scripted("never")
    async with serving(Agent(model)) as here:
        for body in BODIES:
            status, got = await post(here, body)
            assert (status, got["error"]["code"]) == (400, "invalid"), body[:80]
            assert got["error"]["message"]
    assert model.requests == []


async def test_a_form_of_another_site_is_not_taken_for_a_request() -> None:
    async with serving(echoing()) as here:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            status, got = await post(here, b'{"input":"a"}', **{"content-type": kind})
            assert (status, got["error"]["code"]) == (400, "invalid")
            assert "Content-Type" in got["error"]["message"]


IDS = (
    "..%2F..%2Fetc%2Fpasswd",
    "%2e%2e",
    "a%00b",
    "%7B%7B7*7%7D%7D",
    "a%0d%0aset-cookie:x",
    "%ff",
    "%F0%9F%98%80",
    "a" * 201,
    "a%20b",
)


async def test_a_path_cannot_be_made_to_name_something_else() -> None:
    async with serving(echoing()) as here:
        for path in [f"/v1/conversations/{id}{end}" for id in IDS for end in ("/messages", "")]:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url[17:]))
            writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            head, _, body = (await within(reader.read())).partition(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            assert head.split()[1] in (b"400", b"404"), path
            assert b"set-cookie" not in head.lower()
            assert b"49" not in body


async def test_a_name_is_never_a_template_and_an_error_never_grows_with_it() -> None:
    async with serving(echoing()) as here:
        for name in ("{{7*7}}", "../x", "a\nb", "<script>", "x" * 5_000):
            status, got = await here.json("POST", "/v1/turns", {"agent": name, "input": "Hi"})
            assert (status, got["error"]["code"]) == (404, "not_found")
            assert "49" not in got["error"]["message"]
            assert len(got["error"]["message"]) < 300


async def test_a_head_that_comes_byte_by_byte_ends_the_connection() -> None:
    bounds = Bounds(body_seconds=0.2)
    async with serving(echoing(), bounds=bounds) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url[17:]))
        writer.write(b"POST /v1/turns HTTP/1.1\r\nhost: x\r\n")
        assert await within(reader.read()) == b""  # closed, with nothing said
        writer.close()
        await writer.wait_closed()
        assert (await here.json("GET", "/healthz"))[0] == 200


async def test_a_body_that_does_not_come_ends_the_request() -> None:
    bounds = Bounds(body_seconds=0.2)
    async with serving(echoing(), bounds=bounds) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url[17:]))
        writer.write(POST + b'content-length: 100\r\n\r\n{"in')
        answer = await within(reader.read(200))
        assert answer.startswith(b"HTTP/1.1 408 ")
        writer.close()
        await writer.wait_closed()


async def test_a_connection_that_is_used_again_is_not_ended_while_it_answers() -> None:
    bounds = Bounds(body_seconds=0.1)
    stuck = Stuck()
    async with serving(Agent(Scripted("one", stuck)), bounds=bounds) as here:
        assert (await here.json("POST", "/v1/turns", {"input": "a"}))[1]["text"] == "one"
        asking = asyncio.create_task(here.json("POST", "/v1/turns", {"input": "b"}))
        await within(stuck.asked.wait())
        await asyncio.sleep(0.2)  # longer than a head may take: time is the subject
        stuck.go.set()
        assert (await within(asking))[1]["text"] == "at last"


async def test_a_client_that_reads_nothing_holds_back_its_turn_and_no_memory_grows() -> None:
    sent = 0

    def flood(request: Any) -> Any:
        def texts() -> Any:
            nonlocal sent
            for _ in range(200_000):
                sent += 1
                yield "x" * 1_000

        return Say(text=texts())  # pyright: ignore[reportArgumentType]

    async with serving(Agent(Scripted(flood))) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url[17:]), limit=1_000)
        writer.write(request(b'{"input":"go","stream":true}'))
        await within(reader.readline())
        before = -1
        async with asyncio.timeout(BOUND):
            while before != sent:  # until nothing moves any more
                before = sent
                await asyncio.sleep(0.2)
        assert 0 < sent < 100_000
        writer.transport.abort()


async def test_an_owner_has_a_rate_and_hears_when_to_come_back() -> None:
    access, secrets = keys("ann", "bob")
    bounds = Bounds(rate=0.001, burst=2)
    async with serving(echoing(), access=access, bounds=bounds) as here:
        ask = {"input": "Hi"}
        got = [(await here.json("POST", "/v1/turns", ask, key=secrets["ann"]))[0] for _ in "abc"]
        assert got == [200, 200, 429]
        async with here.client.post(
            "/v1/turns", json=ask, headers={"authorization": f"Bearer {secrets['ann']}"}
        ) as refused:
            assert int(refused.headers["retry-after"]) > 60
        assert (await here.json("POST", "/v1/turns", ask, key=secrets["bob"]))[0] == 200


async def test_an_owner_may_have_so_many_turns_running_and_no_more() -> None:
    stuck = Stuck()
    access, secrets = keys("ann", "bob")
    agent = Agent(Scripted(stuck, "two"), name="echo")
    async with serving(agent, access=access, bounds=Bounds(turns=1)) as here:
        ask = {"input": "Hi"}
        first = asyncio.create_task(here.json("POST", "/v1/turns", ask, key=secrets["ann"]))
        await within(stuck.asked.wait())
        status, got = await here.json("POST", "/v1/turns", ask, key=secrets["ann"])
        assert (status, got["error"]["code"]) == (429, "too_many")
        assert (await here.json("POST", "/v1/turns", ask, key=secrets["bob"]))[0] == 200
        stuck.go.set()
        assert (await within(first))[0] == 200


@pytest.mark.rule("R-LOOP-3")
async def test_a_turn_has_no_more_time_than_the_server_gives_whatever_is_asked() -> None:
    stuck = Stuck()
    async with serving(Agent(Scripted(stuck)), bounds=Bounds(turn_seconds=0.05)) as here:
        _, got = await here.json("POST", "/v1/turns", {"input": "Hi", "timeout": 600})
    assert got["status"] == "limit"
    assert stuck.stopped.is_set()


async def test_pages_of_other_origins_are_let_in_only_if_named() -> None:
    preflight = {
        "origin": "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    async with (
        serving(echoing()) as here,
        here.client.options("/v1/turns", headers=preflight) as response,
    ):
        assert "access-control-allow-origin" not in response.headers
    async with serving(echoing(), origins=("https://app.example",)) as here:
        async with here.client.options("/v1/turns", headers=preflight) as response:
            assert "access-control-allow-origin" not in response.headers
        good = {
            **preflight,
            "origin": "https://app.example",
            "access-control-request-headers": "authorization,x-stainless-lang",
        }
        async with here.client.options("/v1/turns", headers=good) as response:
            assert response.status == 200
            assert response.headers["access-control-allow-origin"] == "https://app.example"


async def test_a_name_that_only_leads_here_is_not_answered() -> None:
    async with serving(echoing(), hosts=("localhost", "127.0.0.1", "[::1]")) as here:
        assert (await here.json("GET", "/v1/agents"))[0] == 200
        for host in ("evil.example", "evil.example:8000", ""):
            async with here.client.get("/v1/agents", headers={"host": host}) as refused:
                assert refused.status == 403
                assert refused.headers["cache-control"] == "no-store"
        assert (await here.json("GET", "/v1/agents", host="[::1]:99"))[0] == 200


async def test_a_failure_of_the_program_is_told_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = RuntimeError("password=hunter2secret at db.internal")
    async with serving(Agent(Scripted(error))) as here:
        _, got = await here.json("POST", "/v1/turns", {"input": "Hi"})
    assert (got["status"], got["reason"]) == ("failed", "The server failed; its log says why.")
    assert "hunter2secret" not in caplog.text
    assert "RuntimeError" in caplog.text


async def told(here: Here, *pieces: bytes) -> bytes:
    """What a server says to bytes that are sent piece by piece, until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url[17:]))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await within(reader.read())
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


GET = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"


async def test_a_head_has_a_bound_whatever_it_is_made_of() -> None:
    async with serving(echoing(), bounds=Bounds(body_seconds=600)) as here:
        for piece in (b"x" * 8_000, b"x-a: b\r\n" * 1_000):
            answer = await told(here, GET + b"x-b: ", *[piece] * 9)
            assert answer.startswith(b"HTTP/1.1 431 ") or not answer
        answer = await told(here, b"GET /", *[b"x" * 8_000] * 9)
        assert answer.startswith(b"HTTP/1.1 431 ") or not answer
        answer = await told(here, GET, *[b"x-a: b\r\n" * 500] * 9, b"connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")


async def test_what_is_sent_behind_a_request_that_is_being_answered_has_a_bound_too() -> None:
    body = b'{"input":"go"}'
    chunked = POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(body), body)
    for begun in (request(body) + GET, chunked):
        stuck = Stuck()
        async with serving(Agent(Scripted(stuck))) as here:
            assert await told(here, begun, *[b"x-a: b\r\n" * 10_000] * 9) == b""
            if stuck.asked.is_set():
                await within(stuck.stopped.wait())


async def test_a_client_that_takes_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.serve.http.protocol.STALLED", 0.05)
    said = Say(text=("x" * 100_000 for _ in range(10_000)))  # pyright: ignore[reportArgumentType]
    async with serving(Agent(Scripted(said))) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(here.url[17:]), limit=1_000)
        writer.write(request(b'{"input":"go","stream":true}'))
        await within(reader.readline())
        await until_hung_up(here)
        writer.transport.abort()


async def test_a_client_that_leaves_the_end_of_an_answer_is_hung_up_on_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.http.protocol.STALLED", 0.05)
    async with serving(Agent(Scripted("x" * 40_000))) as here:
        with socket.socket() as small:
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            small.connect(("127.0.0.1", int(here.url[17:])))
            await until(lambda: len(here.server.server_state.connections) == 1)
            (connection,) = here.server.server_state.connections
            opened = connection.transport.get_extra_info("socket")
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
            small.send(request(b'{"input":"go"}'))
            await until_hung_up(here)


async def until_hung_up(here: Here) -> None:
    await until(lambda: not here.server.server_state.connections)


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not happened():  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)


async def test_a_slash_too_many_leads_nowhere() -> None:
    async with (
        serving(echoing()) as here,
        here.client.get(
            "/v1/agents/", headers={"host": "evil.example"}, allow_redirects=False
        ) as response,
    ):
        assert response.status == 404
        assert "location" not in response.headers


async def test_a_refusal_of_a_method_names_all_that_the_path_takes() -> None:
    async with serving(echoing()) as here:
        for path, takes in (
            ("/v1/conversations/c", {"GET", "HEAD", "DELETE"}),
            ("/v1/turns", {"POST"}),
            ("/v1/turns/t/events", {"GET"}),
        ):
            async with here.client.options(path) as response:
                assert response.status == 405
                assert {*response.headers["allow"].split(", ")} == takes


async def test_a_client_is_not_told_to_come_back_before_it_is_let_in() -> None:
    fault = Fault("too_many", "Wait.", retry_after=1.2)
    assert error_response(fault).headers["retry-after"] == "2"
