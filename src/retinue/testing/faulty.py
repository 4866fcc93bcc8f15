"""`FaultyVendor`: a server on this machine that answers by script, with the faults of real ones.

It speaks HTTP/1.1 byte by byte, so that it can break it anywhere, and any format of which there
is a `Dialect`. It checks no request: what a vendor refuses is said by the script. It is also a
proxy that answers for the hosts behind it; of TLS it knows nothing, and refuses every tunnel.
"""

import asyncio
import contextlib
import json
import socket
import struct
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final

from retinue.testing.vendor import Dialect, Frames, Place, Seen, Step

PROMPT: Final = 10.0
"""Seconds within which whatever is waited for must have happened; generous, for busy machines."""

_PAGE: Final = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_MOST: Final = 2**26  # bytes of a request's head
_NO_WAIT: Final = struct.pack("ii", 1, 0)  # closing sends a reset


class FaultyVendor:
    """A vendor, from `async with` to its end.

    Args:
        dialect: the format that it speaks.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.url = ""
        self._dialect = dialect
        self._steps: list[Step] = []
        self._seen: list[Seen] = []
        self._lines: dict[_Line, asyncio.Task[Any]] = {}
        self._count = 0
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "FaultyVendor":
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_MOST)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        tasks = list(self._lines.values())
        for line in list(self._lines):
            line.abort()
        await asyncio.gather(*tasks, return_exceptions=True)

    def script(self, *steps: Step) -> None:
        """Sets the answers to come. When there are no more, requests are refused."""
        self._steps = list(steps)

    async def seen(self) -> Sequence[Seen]:
        """The requests so far."""
        return self._seen

    async def arrived(self, count: int) -> None:
        """Waits until so many requests have come."""
        await self._until(lambda: len(self._seen) >= count)

    async def left(self) -> Seen:
        """Waits until the reader of the last answer has left."""
        await self._until(lambda: bool(self._seen) and self._seen[-1].left is not None)
        return self._seen[-1]

    async def idle(self) -> None:
        """Waits until no connection is open."""
        await self._until(lambda: not self._lines)

    async def _until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PROMPT):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    # -- a connection -------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._count += 1
        line = _Line(reader, writer, self._count)
        self._lines[line] = task
        task.add_done_callback(lambda _: self._ended(line))
        try:
            while (seen := await line.request()) is not None:
                self._seen.append(seen)
                self._changed.set()
                if line.doomed:
                    line.reset()
                    break
                await self._answer(line, seen)
        except (_Over, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            await line.close()

    def _ended(self, line: "_Line") -> None:
        del self._lines[line]
        self._changed.set()

    async def _answer(self, line: "_Line", seen: Seen) -> None:
        if not seen.target.startswith(("/", "http://")):  # host:port of a tunnel
            await line.head(407, {"Content-Length": "0", "Proxy-Authenticate": "Basic"})
            raise _Over
        step = self._take(json.dumps(seen.body, ensure_ascii=False))
        await _Answer(line, seen, step, self._dialect).send()
        if step.stale == "closed":
            raise _Over
        line.doomed = step.stale == "reset"

    def _take(self, asked: str) -> Step:
        for at, step in enumerate(self._steps):
            if step.when in asked:
                if not step.repeat:
                    del self._steps[at]
                return step
        return Step(status=400, message="the script has no answer left")


class _Over(Exception):
    """The connection has been dealt with."""


class _Answer:
    """One answer on its way out."""

    def __init__(self, line: "_Line", seen: Seen, step: Step, dialect: Dialect) -> None:
        self._line = line
        self._seen = seen
        self._step = step
        self._dialect = dialect
        zipped = step.gzip and "gzip" in seen.headers.get("accept-encoding", "")
        self._zip = zlib.compressobj(wbits=31) if zipped else None
        self._chunked = False

    async def send(self) -> None:
        """Sends it, with its faults."""
        step, dialect = self._step, self._dialect
        await self._may_fail("before")
        if step.bad is not None:
            refusal = dialect.refusals[step.bad]
            await self._send(refusal.status, refusal.body)
        elif step.status is not None:
            await self._send(step.status, dialect.failure(step.status, step.message))
        elif step.html:
            await self._send(200, _PAGE, kind="text/html")
        elif dialect.streams(self._seen.target, self._seen.body or {}):
            await self._stream(dialect.frames(step.text, step.call))
        else:
            await self._whole(dialect.whole(step.text, step.call))

    async def _whole(self, body: bytes) -> None:
        if self._step.fault == "error":
            body = self._dialect.failure(500, self._step.message)
        await self._send(200, body[: len(body) // 2] if self._step.truncated else body)

    async def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        if self._zip is not None:
            await self._head(status, kind)
            await self._write(body)
            await self._end()
            return
        await self._head(status, kind, len(body))
        await self._may_fail("headers")
        half = len(body) // 2 if self._step.at == "within" else 0
        await self._write(body[:half])
        await self._may_fail("within")
        await self._write(body[half:])

    async def _stream(self, frames: Frames) -> None:
        await self._head(200, "text/event-stream")
        await self._may_fail("headers")
        for frame in self._styled(frames):
            if self._step.drip:
                await asyncio.sleep(self._step.drip)
            await self._write(frame)
        await self._may_fail("within")
        await self._end()

    def _styled(self, frames: Frames) -> Iterator[bytes]:
        for frame in self._chosen(frames):
            if self._step.comments:
                frame = b": still at it\n\n" + frame
            yield frame.replace(b"\n", b"\r\n") if self._step.crlf else frame

    def _chosen(self, frames: Frames) -> Iterator[bytes]:
        """The events that are sent: all of them, or those before the fault."""
        step = self._step
        yield from frames.begin
        heard = len(frames.said) // 2
        if step.truncated:
            yield from frames.said[:heard]
            yield frames.said[heard][: len(frames.said[heard]) // 2]
            return
        if step.fault is None or step.at == "headers":
            yield from frames.said
            yield from frames.end
            return
        if step.at == "within":
            yield from frames.said[:heard]
        if step.fault == "error":
            yield self._dialect.broken(step.message)

    async def _may_fail(self, place: Place) -> None:
        fault = self._step.fault if self._step.at == place else None
        if fault == "reset":
            self._line.reset()
        elif fault == "hang":
            await self._line.hang_up()
            self._seen.left = time.time()
        elif fault != "close":
            return
        raise _Over

    # -- bytes --------------------------------------------------------------------------------

    async def _head(self, status: int, kind: str, length: int | None = None) -> None:
        headers = {"Content-Type": kind}
        if length is None:
            headers["Transfer-Encoding"] = "chunked"
            self._chunked = True
        else:
            headers["Content-Length"] = str(length)
        if self._zip is not None:
            headers["Content-Encoding"] = "gzip"
        await self._line.head(status, {**headers, **self._step.headers})

    async def _write(self, data: bytes) -> None:
        if self._zip is not None:
            data = self._zip.compress(data) + self._zip.flush(zlib.Z_SYNC_FLUSH)
        for piece in _pieces(data, self._step.split):
            await self._line.write(_chunk(piece) if self._chunked else piece)

    async def _end(self) -> None:
        if self._zip is not None:
            await self._line.write(_chunk(self._zip.flush()))
        await self._line.write(b"0\r\n\r\n")


class _Line:
    """One connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._number = number
        self.doomed = False

    async def request(self) -> Seen | None:
        """The next request, or None if the client has closed."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *rest = head.decode("latin-1").strip().split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
        }
        body = b"".join([piece async for piece in self._body(headers)])
        try:
            value = json.loads(body)
        except ValueError:
            value = None
        return Seen(first.split()[1], headers, value, self._number)

    async def _body(self, headers: dict[str, str]) -> AsyncIterator[bytes]:
        if "chunked" not in headers.get("transfer-encoding", ""):
            yield await self._reader.readexactly(int(headers.get("content-length", "0")))
            return
        while size := int(await self._reader.readline(), 16):
            yield await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()

    async def head(self, status: int, headers: dict[str, str]) -> None:
        """Sends the status line and the headers."""
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:  # 529 is no status of the standard
            phrase = "Failed"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        await self.write("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def write(self, data: bytes) -> None:
        """Sends bytes, and lets a client in the same loop read them before there are more."""
        if data:
            self._writer.write(data)
            await self._writer.drain()
            await asyncio.sleep(0)

    async def hang_up(self) -> None:
        """Waits until the client closes."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(1024):
                pass

    def reset(self) -> None:
        """Ends the connection with a reset."""
        sock: Any = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_WAIT)
        self._writer.transport.abort()

    def abort(self) -> None:
        """Ends the connection at once; whoever reads from it is told."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Ends the connection after what is still to be sent."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _pieces(data: bytes, split: int | str) -> Iterator[bytes]:
    if split == "utf8":
        cuts = [at for at, byte in enumerate(data) if 0x80 <= byte < 0xC0]
    else:
        cuts = list(range(int(split), len(data), int(split))) if split else []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[start:end]
