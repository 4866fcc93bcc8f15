"""A provider of Chat Completions that costs next to nothing: its answers lie ready as bytes.

The model's name is the script, and how far a turn has come is read off the request, so that any
number of callers may share it:

- `oneshot`: the answer;
- `parallel-8`: eight calls at once, then the answer;
- `loop-50`: one call in each of fifty rounds, then the answer;
- `burst-1000`: a thousand tokens, written at once;
- `drip-1000`: the same, one event a write.

`GET /heard` gives the body of the last request. `python -m bench.server` runs it until its
standard input closes; `serving()` does that in a process on another core than the caller's.
"""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from bench.models import ANSWER

ROOT: Final = Path(__file__).parents[1]
TOKEN: Final = "token "

_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_MODEL: Final = re.compile(rb'"model": ?"([^"]+)"')
_RESULT: Final = re.compile(rb'"role": ?"tool"')
_STREAM: Final = re.compile(rb'"stream": ?true')
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: "
_USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 8, "total_tokens": 18}


class Script(asyncio.Protocol):
    """One connection."""

    heard: bytes = b""
    """The body of the last request, on any connection."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remembers where answers go."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers each request that is whole."""
        pending = self._pending
        pending += data
        while (end := pending.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(pending, 0, end)
            stop = end + 4 + (int(length[1]) if length else 0)
            if len(pending) < stop:
                return
            request = bytes(pending[:stop])
            del pending[:stop]
            self._answer(request, request[end + 4 :])

    def _answer(self, request: bytes, body: bytes) -> None:
        assert self._transport is not None
        if request.startswith(b"GET /heard "):
            self._transport.write(_whole(Script.heard))
            return
        Script.heard = body
        model = _MODEL.search(body)
        assert model is not None, body[:200]
        name = model[1].decode()
        pieces = _reply(name, len(_RESULT.findall(body)), _STREAM.search(body) is not None)
        for piece in pieces if name.startswith("drip") else (b"".join(pieces),):
            self._transport.write(piece)  # asyncio sends each write at once, while there is room


@lru_cache(maxsize=4096)
def _reply(model: str, results: int, stream: bool) -> tuple[bytes, ...]:
    """The answer after so many tool results, in the pieces that a drip writes."""
    kind, _, number = model.partition("-")
    count = int(number or 0)
    asked = {"parallel": 0 if results else count, "loop": int(results < count)}.get(kind, 0)
    calls = [_call(f"call_{results}_{index}") for index in range(asked)]
    tokens = [TOKEN] * count if kind in ("burst", "drip") else [ANSWER]
    finish = "tool_calls" if calls else "stop"
    if stream:
        said = [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(calls)]
        deltas = said or [{"content": token} for token in tokens]
        return tuple(_events(model, deltas, finish))
    message = {"role": "assistant", "content": None if calls else "".join(tokens)}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": finish}
    answer = _stamped(model, "chat.completion", choices=[choice], usage=_USAGE)
    return (_whole(json.dumps(answer).encode()),)


def _call(call_id: str) -> dict[str, Any]:
    function = {"name": "noop", "arguments": '{"x":"y"}'}
    return {"id": call_id, "type": "function", "function": function}


def _stamped(model: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": model, **fields}


def _whole(body: bytes) -> bytes:
    return _HEAD + b"application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def _events(model: str, deltas: Iterable[dict[str, Any]], finish: str) -> Iterator[bytes]:
    """The head, then each event as a chunk of HTTP."""
    yield _HEAD + b"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.insert(0, {"index": 0, "delta": {"role": "assistant"}, "finish_reason": None})
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    for choice in choices:
        yield _event(_stamped(model, "chat.completion.chunk", choices=[choice]))
    yield _event(_stamped(model, "chat.completion.chunk", choices=[], usage=_USAGE))
    yield _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def _event(data: dict[str, Any]) -> bytes:
    return _chunk(b"data: %s\n\n" % json.dumps(data, separators=(",", ":")).encode())


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# -- its process --------------------------------------------------------------------------------


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The base URL of a server in a process of its own, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.communicate()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Script, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


def _move_to_the_last_core() -> None:
    """Works are on the first core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    _move_to_the_last_core()
    asyncio.run(_serve())
