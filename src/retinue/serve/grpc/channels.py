"""Connections: addresses, TLS and its mutual form, and the options that both ends share."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import grpc
from grpc import aio
from msgspec import Struct

from retinue.errors import ConfigError
from retinue.serve.access import is_loopback
from retinue.serve.grpc.outbox import LARGEST
from retinue.serve.tls import check_files, read

_MESSAGE: Final = LARGEST + 4 * 1024 * 1024
"""Bytes that a message may have: the largest event of a worker, and what is round it."""

_BESIDE: Final = 64 * 1024
"""Bytes that may be round the body of a client's request."""

_BOTH: Final = (
    ("grpc.max_send_message_length", _MESSAGE),
    # Who vanishes without a word, as where a cable is cut, is noticed within half a minute, on a
    # quiet stream too. The ping of a keepalive has a timeout of its own, which is a minute.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
)
CLIENT_OPTIONS: Final = (
    *_BOTH,
    ("grpc.max_receive_message_length", _MESSAGE),
    ("grpc.max_reconnect_backoff_ms", 1_000),  # the worker backs off itself
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.use_local_subchannel_pool", 1),
)
SERVER_OPTIONS: Final = (
    *_BOTH,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.so_reuseport", 0),  # a second gateway on the same port is an error, not a lottery
)


def server_options(body: int, *, workers: bool) -> "tuple[tuple[str, int], ...]":
    """The options of a gateway's port.

    Args:
        body: bytes that a client's request may have.
        workers: whether workers attach to it, whose messages may be larger.
    """
    largest = max(body + _BESIDE, _MESSAGE if workers else 0)
    return (*SERVER_OPTIONS, ("grpc.max_receive_message_length", largest))


class ClientTLS(Struct, frozen=True, kw_only=True):
    """How a client knows the server, and the server the client.

    Attributes:
        ca: a file with the certificates that the server's is signed with; None for the system's.
        cert, key: files with the client's own certificate and key, for mutual TLS.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """As gRPC takes them.

        Raises:
            ConfigError: a file cannot be read as what it is, or one of a pair is missing.
        """
        if (self.cert is None) != (self.key is None):
            raise ConfigError("A certificate needs its key, and a key its certificate; give both.")
        check_files(self.ca, self.cert, self.key)
        return grpc.ssl_channel_credentials(read(self.ca), read(self.key), read(self.cert))


class ServerTLS(Struct, frozen=True, kw_only=True):
    """How a server is known, and its clients.

    Attributes:
        cert, key: files with the server's certificate chain and key.
        client_ca: a file with the certificates that those of clients are signed with. With it,
            a client without one is not let in (mutual TLS).
    """

    cert: Path
    key: Path
    client_ca: Path | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """As gRPC takes them.

        Raises:
            ConfigError: a file cannot be read as what it is.
        """
        check_files(self.client_ca, self.cert, self.key)
        pair = (read(self.key) or b"", read(self.cert) or b"")
        asked = self.client_ca is not None
        return grpc.ssl_server_credentials([pair], read(self.client_ca), asked)


def channel_to(
    address: str, tls: ClientTLS | None, *, plaintext: bool = False
) -> Callable[[], aio.Channel]:
    """A function that opens a channel; it is called in the event loop that uses it.

    Args:
        address: "host:port".
        tls: None for a plain connection.
        plaintext: allow that to another machine.

    Raises:
        ConfigError: the address is none, or a token would travel in the open.
    """
    host, port = split(address)
    target = f"{host}:{port}"
    if tls is not None:
        credentials = tls.credentials()
        return lambda: aio.secure_channel(target, credentials, CLIENT_OPTIONS)
    if not plaintext and not is_loopback(host):
        raise ConfigError(
            f"{address!r} is another machine, and the connection would not be encrypted; give TLS"
            " (--tls-ca), or say --plaintext where the network itself is private."
        )
    return lambda: aio.insecure_channel(target, CLIENT_OPTIONS)


def split(address: str) -> tuple[str, int]:
    """The host and the port of an address; an IPv6 address stands in brackets.

    Raises:
        ConfigError: it is none.
    """
    host, _, port = address.rpartition(":")
    bare = ":" in host and not (host.startswith("[") and host.endswith("]"))
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not host or bare or not 0 < number <= 65_535:
        raise ConfigError(f"{address!r} is no address; give host:port, such as gateway:50051.")
    return host, number
