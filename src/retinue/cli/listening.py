"""Where `retinue serve` listens: for whom it may, and until it is ended."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from retinue.cli.exits import on_hangup
from retinue.errors import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from retinue.serve import Access, Gateway
    from retinue.serve.grpc import GrpcServer
    from retinue.serve.grpc.fleet import Fleet

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")


class Where(Struct, frozen=True):
    """Where a server listens, and how it ends.

    Attributes:
        host: the interface, without brackets.
        port, grpc_port: the ports of HTTP and of gRPC; 0 is any free one, None is no gRPC.
        certificate, key: of the server, for TLS; both or neither.
        clients: who signs the certificates that clients need, or None.
        grace: seconds that running turns have at the end.
    """

    host: str
    port: int
    grpc_port: int | None
    certificate: Path | None
    key: Path | None
    clients: Path | None
    grace: float


async def listen(app: "Starlette", gateway: "Gateway", fleet: "Fleet | None", where: Where) -> None:
    """Serves until it is ended.

    Raises:
        ConfigError: an address cannot be listened on, or a certificate is none.
        StoreError: the conversations cannot be read; nothing has listened.
    """
    from retinue.serve.http.server import Server  # its packages are there, or app_of had told

    server = Server(
        app,
        gateway,
        host=where.host,
        port=where.port,
        certificate=where.certificate,
        key=where.key,
        clients=where.clients,
        grace=where.grace,
        on_ready=_say_ready,
    )
    on_hangup(server.handle_exit)
    await gateway.conversations.recent(None, 1)  # a store that cannot be read is told of now
    if where.grpc_port is None:
        await server.serve()
        return
    grpc = await _grpc(gateway, fleet, where, where.grpc_port)
    try:
        await server.serve()
    finally:
        await grpc.stop(1.0)


async def _grpc(gateway: "Gateway", fleet: "Fleet | None", where: Where, port: int) -> "GrpcServer":
    from retinue.serve.grpc import GrpcServer, ServerTLS

    tls = None
    if where.certificate is not None and where.key is not None:
        tls = ServerTLS(cert=where.certificate, key=where.key, client_ca=where.clients)
    server = GrpcServer(gateway, fleet=fleet, host=where.host, port=port, tls=tls)
    await server.start()
    host = f"[{where.host}]" if ":" in where.host else where.host
    print(f"gRPC listens on {host}:{server.port}", flush=True)
    return server


def hosts_of(where: Where, access: "Access | None", *, open_to_all: bool) -> Sequence[str]:
    """The host names that requests may be for; none for any.

    Raises:
        ConfigError: it would listen in a way that nobody can mean.
    """
    from retinue.serve.access import is_loopback

    if (where.certificate is None) != (where.key is None):
        raise ConfigError("--tls-cert needs --tls-key, and the other way round; give both.")
    if where.clients is not None and where.certificate is None:
        raise ConfigError("--tls-client-ca needs TLS; give --tls-cert and --tls-key too.")
    if is_loopback(where.host):
        return () if access is not None or open_to_all else (*_LOOPBACK, where.host)
    if access is None and not open_to_all:
        raise ConfigError(
            f"{where.host!r} is not the loopback interface, and nobody would be asked who they are."
            " Give --api-keys or --jwt-key, or say --without-authentication."
        )
    if access is not None and where.certificate is None:
        print(
            "retinue: without --tls-cert, keys travel in the open unless a proxy encrypts them.",
            file=sys.stderr,
        )
    return ()


def _say_ready(address: str) -> None:
    print(f"Listening on {address}", flush=True)
