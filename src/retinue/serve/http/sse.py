"""Server-sent events: a reader of a turn as a response.

It is written here and not taken from sse-starlette, which sends each event by itself and keeps a
group of four tasks for each response: all events that are there go out in one write here, and a
slow socket holds back the turn itself, with nothing between them.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from retinue.serve.bounds import STALLED
from retinue.serve.faults import record
from retinue.serve.http.operations import unless_gone
from retinue.serve.keeping import Reader
from retinue.serve.wire import Sent, encode

BEAT: Final = 15.0
"""Seconds without a byte after which a comment is sent, so that nothing on the way hangs up."""

Frames = Callable[[Iterable[Sent]], bytes]
"""Writes events as frames; what it gives may be empty."""

_HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),  # or nginx collects the events
]


class EventStream:
    """The events of a turn as a response. When the client leaves, so does the reader.

    Args:
        reader: who reads the turn.
        frames: writes the events; by default as `frames_of` does.
        tail: written after the last event.
    """

    def __init__(
        self,
        reader: Reader,
        frames: Frames | None = None,
        *,
        tail: bytes = b"",
    ) -> None:
        self._reader = reader
        self._frames = frames or frames_of(reader)
        self._tail = tail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, as an ASGI app."""
        turn = self._reader.turn.turn.encode()
        start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [*_HEADERS, (b"x-turn-id", turn)],
        }
        try:
            await send(start)
            await unless_gone(self._write(send), receive)
        except (ClientDisconnect, TimeoutError):
            pass  # there is nobody to tell
        except Exception as error:
            # The response is not brought to its end, by which the client knows to come back.
            record(error, f"Reading turn {self._reader.turn.turn}")
        finally:
            self._reader.close()

    async def _write(self, send: Send) -> None:
        clock = asyncio.get_running_loop()
        due = clock.time() + BEAT
        while (batch := await self._next(due)) != []:
            body = self._frames(batch or ())
            if not body and clock.time() >= due:
                body = b": \n\n"
            if body:
                await _send(send, body)
                due = clock.time() + BEAT
        await send({"type": "http.response.body", "body": self._tail, "more_body": False})

    async def _next(self, due: float) -> list[Sent] | None:
        """The next events, none after the last; None where there are none until then."""
        try:
            async with asyncio.timeout_at(due):
                return await self._reader.next()
        except TimeoutError:
            return None


async def _send(send: Send, body: bytes) -> None:
    async with asyncio.timeout(STALLED):
        await send({"type": "http.response.body", "body": body, "more_body": True})


def frames_of(reader: Reader) -> Frames:
    """Writes each event under its name and its place in the stream."""
    stream = reader.turn.stream.encode()

    def write(batch: Iterable[Sent]) -> bytes:
        return b"".join(
            b"id: %b:%d\nevent: %b\ndata: %b\n\n" % (stream, event.seq, _name(event), encode(event))
            for event in batch
        )

    return write


def _name(event: Sent) -> bytes:
    return str(type(event).__struct_config__.tag).encode()
