"""The server that runs the app: uvicorn, with an orderly end and an end to slow heads.

On SIGTERM or SIGINT the gateway drains: /readyz says so, no new turn is taken, and those that run
end, pause, or are cancelled when the time for that is over. Then the server stops. A second signal
stops it at once.
"""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from retinue.serve.gateway import Gateway

GRACE: Final = 30.0
"""Seconds that running turns have to end."""

Ready = Callable[[str], None]
"""Told the address when the server listens."""


class Server(uvicorn.Server):
    """A server for one gateway.

    Args:
        app: the app.
        gateway: the gateway behind it, which drains before the server stops.
        host: the address to listen on.
        port: the port; 0 takes a free one.
        certificate, key: files in PEM, for TLS.
        clients: a file in PEM of the authorities that clients' certificates must come from.
        grace: seconds that running turns have to end.
        on_ready: told the address when the server listens.
    """

    def __init__(
        self,
        app: ASGIApp,
        gateway: Gateway,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        certificate: Path | None = None,
        key: Path | None = None,
        clients: Path | None = None,
        grace: float = GRACE,
        on_ready: Ready | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            http=_timed(gateway.bounds.body_seconds),
            ws="none",
            access_log=False,
            log_level="warning",
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            ssl_ca_certs=None if clients is None else str(clients),
            ssl_cert_reqs=ssl.CERT_NONE if clients is None else ssl.CERT_REQUIRED,
        )
        super().__init__(config)
        self._gateway = gateway
        self._grace = grace
        self._on_ready = on_ready
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        """Where it listens, as a URL; once it does."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        scheme = "https" if self.config.is_ssl else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def startup(self, *arguments: Any, **options: Any) -> None:
        """Begins to listen, and tells so."""
        self._loop = asyncio.get_running_loop()
        await super().startup(*arguments, **options)
        if self.started and self._on_ready is not None:
            self._on_ready(self.address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drains at the first signal, and stops at the second."""
        if self._loop is None or self._draining is not None:
            self.should_exit = self.force_exit = True
            return
        self._loop.call_soon_threadsafe(self.drain)

    def drain(self) -> None:
        """Begins to drain; the server stops when it has."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            await self._gateway.drain(self._grace)
        finally:
            self.should_exit = True


def _timed(seconds: float) -> type[HttpToolsProtocol]:
    """The protocol of uvicorn, which has no limit of its own for how long a request's head takes:
    a client that sends it byte by byte would hold a connection for ever."""

    class Timed(HttpToolsProtocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            super().connection_made(transport)
            self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle = cast("RequestResponseCycle | None", self.cycle)
            if cycle is not None and not cycle.response_complete:
                self._stop_waiting()
            elif self._head is None and not self.transport.is_closing():
                self._wait_for_head()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._stop_waiting()  # between two requests the keep-alive time counts

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait_for_head(self) -> None:
            self._head = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

    return Timed
