"""The serving works: `retinue serve` and `retinue worker` as processes, each beside a bare server
that sends the same bytes.

Times are by the clock and not of the CPU, since several processes share the work. Both sides take
turns, so that other load on the machine falls on both.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import aiohttp

from bench.served import process
from bench.works import Figures

SLICES: Final = 5
EVENTS: Final = 10_000
STAMPS: Final = 200
TURNS: Final = 1_000
CLIENTS: Final = (1, 50, 500)

Ask = Callable[[str], Awaitable[tuple[int, int, list[int]]]]
"""Asks a question; gives how many events came, their bytes, and the nanoseconds that each stamp
was on its way."""

_SERVE: Final = ("retinue.cli", "serve", "--port", "0", "--no-memory")
_AGENT: Final = "bench.served:agent"


@asynccontextmanager
async def over_grpc() -> AsyncIterator[tuple[Ask, Ask]]:
    """A gateway with a worker, and grpcio's server alone."""
    from grpc import aio

    from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub

    serve = (*_SERVE, "--workers", "--grpc-port", "0")
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(process(*serve, says="gRPC listens"))
        worker = ("retinue.cli", "worker", _AGENT, "--connect", ours, "--capacity", "1000")
        stack.enter_context(process(*worker, says="is attached"))
        bare = stack.enter_context(process("bench.served", "grpc"))
        channels = [aio.insecure_channel(address) for address in (ours, bare)]
        for channel in channels:
            await stack.enter_async_context(channel)
        yield _grpc_ask(AgentsStub(channels[0])), _grpc_ask(AgentsStub(channels[1]))


def _grpc_ask(stub: Any) -> Ask:
    from retinue.serve.grpc.v1 import agents_pb2 as pb

    async def ask(question: str) -> tuple[int, int, list[int]]:
        count, size, late = 0, 0, list[int]()
        stamped = question.startswith("stamps")
        async for event in stub.Run(pb.Start(text=question)):
            count += 1
            size += len(event.json)
            if stamped and event.type == "text":
                late.append(_late(event.json))
        return count, size, late

    return ask


@asynccontextmanager
async def over_sse() -> AsyncIterator[tuple[Ask, Ask]]:
    """A gateway with its agent in the process, and an ASGI app on the same server."""
    async with AsyncExitStack() as stack:
        ours = stack.enter_context(process(*_SERVE, _AGENT, says="Listening on"))
        bare = stack.enter_context(process("bench.served", "asgi"))
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

        def posting(question: str) -> Any:
            body = {"input": question, "stream": True}
            return session.post(f"{ours}/v1/turns", json=body)

        yield (
            _sse_ask(posting),
            _sse_ask(lambda question: session.post(f"http://{bare}/", data=question.encode())),
        )


def _sse_ask(post: Callable[[str], Any]) -> Ask:
    async def ask(question: str) -> tuple[int, int, list[int]]:
        count, size, late = 0, 0, list[int]()
        stamped = question.startswith("stamps")
        async with post(question) as response:
            assert response.status == 200, await response.text()
            async for data in response.content.iter_any():
                count += data.count(b"\n\n")
                size += len(data)
                if stamped and b'"type":"text"' in data:
                    late.append(_late(data.decode()))
        return count, size, late

    return ask


def _late(event: str) -> int:
    stamp = event.rpartition('"text":"')[2].partition(" ")[0]
    return time.monotonic_ns() - int(stamp)


async def _events(both: tuple[Ask, Ask]) -> Figures:
    """Microseconds for an event of a stream that is read as fast as it comes."""
    question = f"stream {EVENTS}"
    spent: tuple[list[float], list[float]] = ([], [])
    sizes: list[int] = []
    for at in range(SLICES + 1):
        for ask, found in zip(both, spent, strict=True):
            began = time.perf_counter()
            count, size, _ = await ask(question)
            assert count >= EVENTS, count
            sizes.append(size)
            if at:  # the first warms up
                found.append((time.perf_counter() - began) / count * 1e6)
    assert max(sizes) < min(sizes) * 1.05, sizes
    return {"us": statistics.median(spent[0]), "bare_us": statistics.median(spent[1])}


async def _latency(both: tuple[Ask, Ask]) -> Figures:
    """Microseconds from the making of a token, on a quiet stream, to its reader."""
    medians: list[float] = []
    for ask in both:
        _, _, late = await ask(f"stamps {STAMPS}")
        assert len(late) > STAMPS * 0.9, len(late)
        medians.append(statistics.median(late) / 1e3)
    return {"late_us": medians[0], "bare_late_us": medians[1]}


async def _turns(both: tuple[Ask, Ask]) -> Figures:
    """Turns a second, each with an answer of one token, by so many clients at once."""
    figures: Figures = {}
    for clients in CLIENTS:
        for ask, before in zip(both, ("", "bare_"), strict=True):
            left = TURNS if clients > 1 else TURNS // 5
            count = left

            async def client(ask: Ask = ask) -> None:
                nonlocal left
                while left > 0:
                    left -= 1
                    await ask("once")

            began = time.perf_counter()
            await asyncio.gather(*(client() for _ in range(clients)))
            figures[f"{before}turns_{clients}"] = count / (time.perf_counter() - began)
    return figures


async def grpc_serving() -> Figures:
    """Through gateway and worker over gRPC."""
    async with over_grpc() as both:
        return await _events(both) | await _latency(both) | await _turns(both)


async def sse_serving() -> Figures:
    """Through a gateway over HTTP and server-sent events."""
    async with over_sse() as both:
        return await _events(both) | await _latency(both) | await _turns(both)


SERVING_WORKS: Final[dict[str, Callable[[], Awaitable[Figures]]]] = {
    each.__name__: each for each in (grpc_serving, sse_serving)
}
