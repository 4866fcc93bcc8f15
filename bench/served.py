"""What the serving works talk to: agents for `retinue serve` and `retinue worker`, and two bare
servers that send the same bytes with nothing behind them.

A question says what is to be answered: `stream N` gives N tokens as fast as they are taken,
`stamps N` gives N with the time at which each was made, 5 ms apart, and anything else gives one.
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final

from retinue import Agent
from retinue.chains import ChatRequest
from retinue.chains.events import (
    AttemptStarted,
    Event,
    RoundStarted,
    TextChunk,
    TurnEnded,
    TurnStarted,
)
from retinue.messages import TextDelta, assistant
from retinue.serve import wire

ROOT: Final = Path(__file__).parents[1]
TOKEN: Final = " token"
APART: Final = 0.005
TURN: Final = "0123456789abc"  # as long as the id of a turn is


async def tokens(question: str) -> AsyncIterator[str]:
    """What a question is answered with."""
    kind, _, count = question.partition(" ")
    if kind == "stream":
        for _ in range(int(count)):
            yield TOKEN
    elif kind == "stamps":
        for _ in range(int(count)):
            await asyncio.sleep(APART)
            yield f"{time.monotonic_ns()} "
    else:
        yield TOKEN


class Tokens:
    """A model that answers so."""

    name, provider = "tokens", "bench"

    async def generate(self, request: ChatRequest, send: Any) -> None:
        """Sends the tokens."""
        async for token in tokens(request.messages[-1].text):
            await send(TextDelta(token))

    async def close(self) -> None:
        """Nothing is held."""


model: Any = Tokens()
agent = Agent(model, name="tokens")


async def events(question: str) -> AsyncIterator[Event]:
    """The events of such a turn."""
    yield TurnStarted(1, 0, 0, (), TURN)
    yield RoundStarted(2, 1, 0, ())
    yield AttemptStarted(3, 1, 1, ())
    said: list[str] = []
    async for token in tokens(question):
        said.append(token)
        yield TextChunk(3 + len(said), 1, 1, (), token)
    text = "".join(said)
    yield TurnEnded(4 + len(said), 1, 1, (), TURN, "completed", text, assistant(text))


async def written(question: str, write: Callable[[Event], Any]) -> AsyncIterator[Any]:
    """The events, written; those of a stream beforehand, so that it sends and does nothing else."""
    if question.startswith("stream"):
        for each in await _all(question, write):
            yield each
    else:
        async for event in events(question):
            yield write(event)


_ready: dict[tuple[str, Any], list[Any]] = {}


async def _all(question: str, write: Callable[[Event], Any]) -> Iterable[Any]:
    key = (question, write)
    if key not in _ready:
        _ready[key] = [write(event) async for event in events(question)]
    return _ready[key]


async def bare_grpc() -> None:
    """grpcio's server with a method that sends."""
    from grpc import aio

    from retinue.serve.grpc.talk import shown
    from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsServicer, add_AgentsServicer_to_server

    def write(event: Event) -> Any:
        return shown(event, TURN, TURN, "")

    class Bare(AgentsServicer):
        async def Run(self, request: Any, context: Any) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            async for message in written(request.text, write):
                await context.write(message)

    server = aio.server()
    add_AgentsServicer_to_server(Bare(), server)  # pyright: ignore[reportAbstractUsage]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0)


def _frame(event: Event) -> bytes:
    data = wire.encode(event)
    kind = type(event).__struct_config__.tag
    return b"id: %s:%d\nevent: %s\ndata: %s\n\n" % (
        TURN.encode(), event.seq, str(kind).encode(), data,
    )  # fmt: skip


async def bare_app(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """An ASGI app that reads a question, and sends."""
    question = (await receive())["body"].decode()
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for frame in written(question, _frame):
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def bare_asgi() -> None:
    """The same server as that of `retinue serve`, with that app."""
    import uvicorn

    class Telling(uvicorn.Server):
        async def startup(self, *arguments: Any, **options: Any) -> None:
            await super().startup(*arguments, **options)
            port = self.servers[0].sockets[0].getsockname()[1]
            print(f"127.0.0.1:{port}", flush=True)

    app: Any = bare_app
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", access_log=False)
    await Telling(config).serve()


@contextlib.contextmanager
def process(*command: str, says: str = "") -> Iterator[str]:
    """A process until the end of the block; gives the last word of its first line with `says`."""
    running = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert running.stdout is not None
    try:
        for line in running.stdout:
            if says in line:
                yield line.split()[-1].rstrip(".")
                return
        raise SystemExit(f"{' '.join(command)} ended before it said {says!r}")
    finally:
        running.kill()
        running.communicate()


if __name__ == "__main__":
    asyncio.run({"grpc": bare_grpc, "asgi": bare_asgi}[sys.argv[1]]())
