"""The port: both services, and those by which gRPC's own tools find and watch them."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, cast

from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from retinue.errors import ConfigError
from retinue.serve.gateway import Gateway
from retinue.serve.grpc.agents import Agents, credential_of
from retinue.serve.grpc.channels import ServerTLS, server_options
from retinue.serve.grpc.fleet import Fleet
from retinue.serve.grpc.v1 import agents_pb2, workers_pb2
from retinue.serve.grpc.v1.agents_pb2_grpc import add_AgentsServicer_to_server
from retinue.serve.grpc.v1.workers_pb2_grpc import add_WorkersServicer_to_server
from retinue.serve.grpc.workers import HEARTBEAT, Workers

if TYPE_CHECKING:
    from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsServicer
    from retinue.serve.grpc.v1.workers_pb2_grpc import WorkersServicer

AGENTS: Final = agents_pb2.DESCRIPTOR.services_by_name["Agents"].full_name
WORKERS: Final = workers_pb2.DESCRIPTOR.services_by_name["Workers"].full_name

_LOOK_EVERY: Final = 1.0


class GrpcServer:
    """A gateway's gRPC port.

    It offers `retinue.v1.Agents` and, where workers run the turns, `retinue.v1.Workers`; besides
    the health service, which says of `Agents` whether turns can be run, and reflection. These two
    ask for no key.

    Args:
        gateway: who runs the turns.
        fleet: the workers of its dispatcher, or None where it needs none.
        host, port: where it listens; port 0 is any free one.
        tls: its certificate, and whose certificates clients need; None for plain connections.
        heartbeat: seconds between the heartbeats of a worker.

    Raises:
        ConfigError: the heartbeat is none, or a certificate or its key cannot be read as one.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        fleet: Fleet | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ServerTLS | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        if not heartbeat > 0:
            raise ConfigError(f"GrpcServer(heartbeat={heartbeat!r}): give seconds above 0.")
        self._gateway = gateway
        self._fleet = fleet
        bare = host.strip("[]")
        self._address = f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"
        self._credentials = None if tls is None else tls.credentials()
        self._heartbeat = heartbeat
        self._server: aio.Server | None = None
        self._health = cast("Any", health).aio.HealthServicer()
        self._watching: asyncio.Task[None] | None = None
        self.port = port

    async def start(self) -> None:
        """Listens; `port` is then the port.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        body = self._gateway.bounds.body_bytes
        server = aio.server(options=server_options(body, workers=self._fleet is not None))
        names = [AGENTS, health.SERVICE_NAME, reflection.SERVICE_NAME]
        # The types of the stubs know generators only; ours write for themselves.
        add_AgentsServicer_to_server(cast("AgentsServicer", Agents(self._gateway)), server)
        cast("Any", health_pb2_grpc).add_HealthServicer_to_server(self._health, server)
        if self._fleet is not None:
            names.append(WORKERS)
            workers = Workers(self._fleet, self._admit, self._heartbeat)
            add_WorkersServicer_to_server(cast("WorkersServicer", workers), server)
        reflection.enable_server_reflection(names, server)
        try:
            if self._credentials is None:
                self.port = server.add_insecure_port(self._address)
            else:
                self.port = server.add_secure_port(self._address, self._credentials)
        except RuntimeError as error:
            raise ConfigError(
                f"gRPC cannot listen on {self._address}; is the port taken?"
            ) from error
        await server.start()
        self._server = server
        self._watching = asyncio.create_task(self._tell_health())

    async def drain(self) -> None:
        """Says by the health service that it is going; running calls go on."""
        if self._watching is not None:
            self._watching.cancel()
        await self._health.enter_graceful_shutdown()

    async def stop(self, seconds: float = 0.0) -> None:
        """Takes no new calls, and ends those that are not over after so many seconds."""
        await self.drain()
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(seconds)

    async def _tell_health(self) -> None:
        """Keeps what the health service says true while workers come and go."""
        changed = asyncio.Event()
        if self._fleet is not None:
            self._fleet.watch(changed.set)
        while True:
            status = health_pb2.HealthCheckResponse
            ready = self._gateway.ready
            await self._health.set(AGENTS, status.SERVING if ready else status.NOT_SERVING)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY):  # nobody tells that a gateway drains
                    await changed.wait()
            changed.clear()
            if self._gateway.load().draining:  # for probes that ask of the server as a whole
                await self._health.enter_graceful_shutdown()
                return

    def _admit(self, context: "aio.ServicerContext[Any, Any]") -> None:
        self._gateway.known(credential_of(context), "work")
