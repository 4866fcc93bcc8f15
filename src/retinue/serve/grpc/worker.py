"""A worker: it dials a gateway, says what it serves, and runs what it is given.

It needs no port of its own, so it may sit behind a firewall. It has its own keys of providers and
its own way to the store; a gateway sends neither. When the gateway is gone, it tries again with
back-off, until it is back or the worker is told to end.
"""

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from grpc import StatusCode, aio

from retinue.agent import Agent
from retinue.errors import ConfigError
from retinue.messages import new_id
from retinue.serve.dispatch import InProcess
from retinue.serve.faults import log
from retinue.serve.grpc.attachment import Attachment
from retinue.serve.grpc.channels import ClientTLS, channel_to
from retinue.serve.grpc.v1.workers_pb2_grpc import WorkersStub
from retinue.stores import Store

if TYPE_CHECKING:
    from retinue.serve.grpc.v1.workers_pb2_grpc import WorkersAsyncStub

CAPACITY: Final = 100
"""Turns that a worker holds at once, unless it is told otherwise."""

_FIRST: Final = 0.1
_LONGEST: Final = 10.0  # seconds between two tries
_LAST: Final = 5.0  # seconds that a turn which was cancelled has to tell its end

_FINAL: Final[dict[StatusCode, str]] = {
    StatusCode.UNAUTHENTICATED: "refused this worker's token",
    StatusCode.PERMISSION_DENIED: "does not let this token work",
    StatusCode.INVALID_ARGUMENT: "does not take this worker",
    StatusCode.UNIMPLEMENTED: "takes no workers",
}
"""Refusals that trying again does not mend."""


class Worker:
    """Runs turns for a gateway.

    Args:
        agents: the agents by name, or one under its own name.
        connect: the gateway, as "host:port".
        token: the token that lets it in, or None where the gateway asks for none.
        tls: how the gateway is known and, for mutual TLS, the worker; None for a plain connection.
        plaintext: allow a plain connection to another machine.
        capacity: turns that it holds at once.
        name: what it is called; by default the host and the process id.
        store: where agents that have no memory keep their conversations.

    Attributes:
        attached: set while a gateway has the worker.

    Raises:
        ConfigError: the address, the token, the capacity or an agent cannot be one, or the
            connection would carry the token in the open.
    """

    def __init__(
        self,
        agents: Agent | Mapping[str, Agent],
        connect: str,
        *,
        token: str | None = None,
        tls: ClientTLS | None = None,
        plaintext: bool = False,
        capacity: int = CAPACITY,
        name: str | None = None,
        store: Store | None = None,
    ) -> None:
        self.address = connect
        self._channel = channel_to(connect, tls, plaintext=plaintext)
        self._agents = InProcess(agents, store=store, capacity=capacity)
        self._capacity = capacity
        self._metadata = _metadata(token)
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._instance = new_id()
        self._orphans: set[asyncio.Task[None]] = set()
        self._begun: dict[str, asyncio.Event] = {}
        self._attachment: Attachment | None = None
        self._leaving = asyncio.Event()
        self.attached = asyncio.Event()

    async def run(self) -> None:
        """Serves until `leave` has been called and the stream has ended. To end it at once, cancel
        it, and then `close`.

        Raises:
            ConfigError: the gateway does not take this worker, and would not later.
        """
        longest = _FIRST
        async with self._channel() as channel:
            stub = WorkersStub(channel)
            while not self._leaving.is_set():
                self.attached.clear()
                said = await self._attach(stub)
                if self._leaving.is_set():
                    return
                longest = _FIRST if self.attached.is_set() else min(_LONGEST, 2 * longest)
                wait = random.uniform(0, longest)
                log.warning("%s; trying again in %.1f s.", said, wait)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._leaving.wait()

    async def leave(self, seconds: float) -> None:
        """Takes no more turns, and waits until those that it has are over.

        Args:
            seconds: after so many, what still runs is cancelled. What has not told its end a few
                seconds later, as where its reader takes nothing, is given up.
        """
        self._leaving.set()  # a stream that breaks meanwhile is not opened again
        attachment = self._attachment
        if attachment is not None:
            attachment.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds + _LAST):
                await self._agents.drain(seconds)
                if attachment is not None:
                    await attachment.idle()
        if attachment is not None:
            attachment.end()

    async def close(self) -> None:
        """Cancels what runs, and lets go of the agents and their stores."""
        self._leaving.set()
        await self._agents.close()

    async def _attach(self, stub: "WorkersAsyncStub") -> str:
        """One stream, from its beginning to its end; gives why it ended."""
        attachment = self._attachment = Attachment(
            self._agents,
            name=self.name,
            instance=self._instance,
            capacity=self._capacity,
            orphans=self._orphans,
            begun=self._begun,
        )
        try:
            await attachment.run(stub.Attach(metadata=self._metadata), self.attached)
        except aio.AioRpcError as error:
            final = _FINAL.get(error.code())
            if final is not None:
                raise ConfigError(
                    f"The gateway at {self.address} {final}: {error.details()}"
                ) from None
            why = (error.details() or "").rpartition("last error: ")[2]
            return f"The gateway at {self.address} is not there ({why})"
        finally:
            self._attachment = None
        return f"The gateway at {self.address} ended the stream"


def _metadata(token: str | None) -> tuple[tuple[str, str], ...]:
    if token is None:
        return ()
    token = token.strip()  # of a file's last line
    if not (token and token.isascii() and token.isprintable()):
        raise ConfigError("The worker's token is none: it is made of printable ASCII characters.")
    return (("authorization", f"Bearer {token}"),)
