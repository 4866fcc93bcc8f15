"""The server that runs the app: uvicorn, with an orderly end.

On SIGTERM or SIGINT the gateway drains: /readyz says so, no new turn is taken, and those that run
end, pause, or are cancelled when the time for that is over. Then the server stops. A second signal
cancels them at once. A third one ends the process, since a tool that will not be cancelled would
hold it for ever.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from retinue.errors import ConfigError
from retinue.serve.faults import log
from retinue.serve.gateway import Gateway
from retinue.serve.http.protocol import limited
from retinue.serve.tls import check_files

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

    Raises:
        ConfigError: the certificate or its key cannot be used; or, from `serve`, it cannot listen
            there.
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
        check_files(clients, certificate, key)
        config = uvicorn.Config(
            app,
            host=host,
            port=port,
            http=limited(gateway.bounds.body_seconds),
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
        self._signals = 0
        self._draining: set[asyncio.Task[None]] = set()
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
        own_log = logging.getLogger("uvicorn.error")
        own_log.disabled = True  # what it tells is raised here
        try:
            await super().startup(*arguments, **options)
        except SystemExit as stopped:  # by which uvicorn says that it cannot bind
            error = stopped.__context__
            raise ConfigError(
                f"The server cannot listen on {self.config.host}, port {self.config.port}:"
                f" {getattr(error, 'strerror', None) or error}."
            ) from error
        finally:
            own_log.disabled = False
        if self.started and self._on_ready is not None:
            self._on_ready(self.address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drains at the first signal, cancels at the second, and ends the process at the third."""
        self._signals += 1
        if self._loop is None:
            self.should_exit = True
        elif self._signals < 3:
            self._loop.call_soon_threadsafe(self.drain, self._grace if self._signals < 2 else 0.0)
        else:
            log.error("A third signal: the server ends, and turns that still run are cut off.")
            os._exit(1)

    def drain(self, grace: float | None = None) -> None:
        """Begins to drain; the server stops when it has.

        Args:
            grace: seconds that running turns have to end; by default those of the server.
        """
        draining = asyncio.create_task(self._drain(self._grace if grace is None else grace))
        self._draining.add(draining)

    async def _drain(self, grace: float) -> None:
        try:
            await self._gateway.drain(grace)
        finally:
            self.should_exit = True
