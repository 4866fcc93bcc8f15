"""The protocol of uvicorn, with three limits that it lacks.

They are on how long a request's head takes, how large it is, and how long a client takes nothing
of what it is sent. Without them a client could hold a connection for ever, or fill the memory. How
long a body takes is not said here but where it is read, since there it can be answered.
"""

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from retinue.serve.bounds import STALLED

LONGEST_HEAD: Final = 65_536
"""Bytes of a request's first line and headers, or of trailers, that may come in pieces."""

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


def limited(head_seconds: float) -> type[HttpToolsProtocol]:
    """The protocol of a server on which a head may take so many seconds."""
    return type("Limited", (_Limited,), {"head_seconds": head_seconds})


class _Limited(HttpToolsProtocol):
    """A connection.

    Attributes:
        head_seconds: how long a request's head may take.
    """

    head_seconds: float
    _head: asyncio.TimerHandle | None = None
    _head_bytes = 0  # taken since the last head was complete, or the last of a body came
    _stalled: asyncio.TimerHandle | None = None  # while something is unsent that nothing adds to

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > LONGEST_HEAD:
            self._refuse_head()
        elif self._is_answering():
            self._stop_waiting()
        elif self._head is None:
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        if not self.flow.write_paused:
            self._stop_looking()  # the answer may add to what is unsent
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._stop_waiting()  # between two requests the keep-alive time counts
        self._look_at_rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        self._stop_looking()
        super().resume_writing()
        self._look_at_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_looking()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def _refuse_head(self) -> None:
        if self._is_answering():  # trailers, or a head that was sent ahead: nothing can be said now
            self.transport.abort()
            return
        self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _wait_for_head(self) -> None:
        self._head = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _look_at_rest(self) -> None:
        if not self._is_answering():  # else what comes next adds to it, until there is a pause
            self._look_later()

    def _look_later(self) -> None:
        self._stop_looking()
        if left := self.transport.get_write_buffer_size():
            self._stalled = self.loop.call_later(STALLED, self._look, left)

    def _look(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._look_later()
        else:
            self.transport.abort()

    def _stop_looking(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
