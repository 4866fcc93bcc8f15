"""Keeps the tests on this machine: whatever leaves the loopback interface fails, by name.

No test may pay a model or depend on somebody else's server. The guard sits in `socket`, below
every client that is written in Python.
"""

import ipaddress
import socket
from typing import Any

import pytest


class OffMachineError(AssertionError):
    """A test tried to reach another machine."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"A test tried to reach {host!r}. Tests stay on this machine: "
            "use a server on 127.0.0.1, or a scripted model."
        )


def is_local(host: str) -> bool:
    """Whether the host is this machine, told without asking a name server."""
    if host in ("", "localhost") or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_unspecified


def _check(sock: socket.socket, address: Any) -> None:
    if sock.family in (socket.AF_INET, socket.AF_INET6) and not is_local(str(address[0])):
        raise OffMachineError(str(address[0]))


def stay_on_this_machine(patch: pytest.MonkeyPatch) -> None:
    """Makes connecting, sending and looking up names fail for every host but this one."""
    connect, connect_ex, sendto = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.socket.sendto,
    )
    getaddrinfo = socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _check(self, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _check(self, address)
        return connect_ex(self, address)

    def guarded_sendto(self: socket.socket, data: Any, *rest: Any) -> int:
        _check(self, rest[-1])
        return sendto(self, data, *rest)

    def guarded_getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host or ""
        if name.endswith(".invalid"):
            # Reserved for names that never resolve: the answer is known without asking.
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if not is_local(name):
            raise OffMachineError(name)
        return getaddrinfo(host, *rest, **options)

    patch.setattr(socket.socket, "connect", guarded_connect)
    patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    patch.setattr(socket.socket, "sendto", guarded_sendto)
    patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
