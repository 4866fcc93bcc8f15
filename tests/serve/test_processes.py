"""Gateways, workers and readers over HTTP as real processes: what holds between them all."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from retinue.chains.events import TextChunk, TurnEnded
from tests.serve.grpc.processes import START, Child, child, line_of, server, worker
from tests.serve.scenes import within
from tests.serve.serving import Frames

STREAMS = 500
WORKERS = 5  # of 100 places each
PIECES, SIZE = 75, 4_000


@asynccontextmanager
async def gateway(folder: Path, *agents: str) -> AsyncIterator[tuple[Child, str]]:
    """`retinue serve` with agents of `served`, and its URL."""
    targets = [f"tests.serve.grpc.served:{agent}" for agent in agents]
    async with server(folder, "--no-memory", *targets) as started:
        yield started


@asynccontextmanager
async def fleet(folder: Path, *agents: str) -> AsyncIterator[tuple[Child, str]]:
    """A gateway and one worker; the worker, and the gateway's URL."""
    async with dispatching(folder) as (_, address, url), worker(folder, address, *agents) as one:
        yield one, url


@asynccontextmanager
async def dispatching(folder: Path) -> AsyncIterator[tuple[Child, str, str]]:
    """A gateway for workers, its address for them, and its URL."""
    serve = ("-m", "retinue.cli", "serve", "--workers", "--port", "0", "--grpc-port", "0")
    async with child(folder, *serve) as process:
        address = (await process.until("gRPC listens on")).split()[-1]
        yield process, address, (await process.until("Listening on")).split()[-1]


async def running(client: aiohttp.ClientSession) -> int:
    """How many turns run."""
    async with client.get("/v1/load") as response:
        return json.loads(await response.text())["running"]


async def is_ready(client: aiohttp.ClientSession) -> bool:
    """Whether new turns are taken."""
    async with client.get("/readyz") as response:
        return response.status == 200


async def until_running(client: aiohttp.ClientSession, count: int) -> None:
    """Waits until so many turns run."""
    async with asyncio.timeout(START):
        while await running(client) != count:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.05)


@pytest.mark.rule("R-LOOP-8")
async def test_a_reader_that_leaves_ends_its_turn_on_the_worker(tmp_path: Path) -> None:
    async with fleet(tmp_path, "halting") as (one, url), aiohttp.ClientSession(url) as client:
        async with client.post("/v1/turns", json={"input": "x", "stream": True}):
            assert await line_of(tmp_path / "asked") == str(one.pid)
        assert await line_of(tmp_path / "cancelled") == str(one.pid)
        await until_running(client, 0)


@pytest.mark.rule("R-STREAM-6")
async def test_a_reader_that_returns_with_its_last_id_gets_the_rest_from_the_worker(
    tmp_path: Path,
) -> None:
    asked = {"input": "x", "stream": True, "detached": True}
    seen: list[Any] = []
    async with fleet(tmp_path, "halting") as (_, url), aiohttp.ClientSession(url) as client:
        async with client.post("/v1/turns", json=asked) as response:
            frames = Frames(response)
            async with asyncio.timeout(START):
                async for event in frames:
                    seen.append(event)
                    if isinstance(event, TextChunk):
                        break
        (tmp_path / "go").touch()
        back = {"last-event-id": frames.last_id}
        async with client.get(f"/v1/turns/{seen[0].turn}/events", headers=back) as response:
            async with asyncio.timeout(START):
                seen += [event async for event in Frames(response)]
    assert [event.seq for event in seen] == [*range(1, len(seen) + 1)]
    assert [event.text for event in seen if isinstance(event, TextChunk)] == ["one ", "two"]
    assert isinstance(seen[-1], TurnEnded)
    assert seen[-1].text == "one two"


async def test_a_reader_that_takes_nothing_stops_the_model_on_the_worker(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    poured = tmp_path / "poured"
    async with fleet(tmp_path, "pouring") as (_, url), aiohttp.ClientSession(url) as client:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.setblocking(False)
            await asyncio.get_running_loop().sock_connect(
                slow, ("127.0.0.1", int(url.rpartition(":")[2]))
            )
            reader, writer = await asyncio.open_connection(sock=slow, limit=4_096)
            body = b'{"input": "200000 1000", "stream": true}'
            writer.write(
                b"POST /v1/turns HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n%b" % (len(body), body)
            )
            await line_of(poured)
            stopped = await size_at_rest(poured)
            assert stopped < 2 * 20_000  # lines of two bytes; what the sockets hold is in it
            await within(reader.readexactly(8_000_000), START)
            assert await size_at_rest(poured) > stopped
            writer.transport.abort()
        await until_running(client, 0)
        assert size_of(poured) < 2 * 200_000


async def size_at_rest(file: Path) -> int:
    """The size of a file that grows no more."""
    async with asyncio.timeout(START):
        before, now = -1, size_of(file)
        while before != now:
            await asyncio.sleep(0.5)
            before, now = now, size_of(file)
    return now


def size_of(file: Path) -> int:
    """Its size, in bytes."""
    return file.stat().st_size


async def test_five_hundred_streams_of_one_gateway_lose_nothing_and_its_memory_is_bounded(
    tmp_path: Path,
) -> None:
    async def read(client: aiohttp.ClientSession) -> str:
        asked = {"input": f"{PIECES} {SIZE}", "stream": True}
        numbers, length, last = list[int](), 0, {}
        async with client.post("/v1/turns", json=asked) as response:
            async for frame in Frames(response).raw():
                last = json.loads(frame["data"])
                numbers.append(last["seq"])
                length += len(last["text"]) if last["type"] == "text" else 0
        assert numbers == [*range(1, len(numbers) + 1)]
        assert length == PIECES * SIZE
        return last["status"]

    connector = aiohttp.TCPConnector(limit=0)
    async with (
        dispatching(tmp_path) as (process, address, url),
        AsyncExitStack() as workers,
        aiohttp.ClientSession(url, connector=connector, read_bufsize=2**20) as client,
    ):
        for number in range(WORKERS):
            one = worker(tmp_path, address, "pouring", name=f"{number}")
            await workers.enter_async_context(one)
        before = peak(process)
        reading = asyncio.gather(*(read(client) for _ in range(STREAMS)))
        await until_running(client, STREAMS)
        (tmp_path / "go").touch()
        assert await within(reading, 120) == ["completed"] * STREAMS
        grown = peak(process) - before
    assert grown < 300_000_000


def peak(process: Child) -> int:
    """The most memory that a process has taken, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1_024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_second_signal_cancels_what_runs_and_its_reader_hears_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with gateway(tmp_path, "halting") as (process, url), aiohttp.ClientSession(url) as client:
        async with client.post("/v1/turns", json={"input": "x", "stream": True}) as response:
            frames = aiter(Frames(response))
            await line_of(tmp_path / "asked")
            process.signal(number)
            async with asyncio.timeout(START):
                while await is_ready(client):  # noqa: ASYNC110 - it is another process
                    await asyncio.sleep(0.05)
            process.signal(signal.SIGTERM)
            last: Any = [event async for event in frames][-1]
        assert (last.status, last.reason) == ("cancelled", "The server is shutting down.")
        assert await process.line() == ""  # nothing is said, and no traceback shown
        assert await process.code() == 0


async def test_a_third_signal_ends_a_server_that_a_tool_holds(tmp_path: Path) -> None:
    async with gateway(tmp_path, "holding") as (process, url), aiohttp.ClientSession(url) as client:
        async with client.post("/v1/turns", json={"input": "x", "stream": True}):
            await line_of(tmp_path / "held")
            await until_ended_by_signals(process)
        assert await process.code() == 1


async def test_a_third_signal_ends_a_worker_that_a_tool_holds(tmp_path: Path) -> None:
    async with fleet(tmp_path, "holding") as (one, url), aiohttp.ClientSession(url) as client:
        async with client.post("/v1/turns", json={"input": "x", "stream": True}):
            await line_of(tmp_path / "held")
            await until_ended_by_signals(one)
        assert await one.code() == 1


async def until_ended_by_signals(process: Child) -> None:
    """Signals until it is over; signals that come together are heard as one."""
    async with asyncio.timeout(START):
        while process.is_running:
            process.signal(signal.SIGTERM)
            await asyncio.sleep(0.1)
