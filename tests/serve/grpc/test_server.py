"""The port: TLS and its mutual form, reflection, health, and an end in order."""

import asyncio
import logging
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from retinue import Agent, ConfigError
from retinue.models.scripted import Scripted
from retinue.serve.dispatch import InProcess
from retinue.serve.gateway import Gateway
from retinue.serve.grpc import ClientTLS, Grpc, GrpcServer, ServerTLS, Worker
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub
from tests.serve.grpc.stage import stage, text_of
from tests.serve.scenes import Stuck, all_of, echoing, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


def says() -> Agent:
    return Agent(Scripted("x", repeat=True), name="a")


def made(folder: Path, name: str, ca: str | None = None) -> None:
    """A key and its certificate, by openssl: an authority, or signed by one."""
    signed = ["-CA", f"{ca}.pem", "-CAkey", f"{ca}.key"] if ca else []
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "1", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", f"{name}.key", "-out", f"{name}.pem", *signed],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca` has signed `gateway` and `worker`; `stranger` has signed itself."""
    folder = tmp_path_factory.mktemp("certificates")
    made(folder, "ca")
    for name in ("gateway", "worker"):
        made(folder, name, "ca")
    made(folder, "stranger")
    return folder


@pytest.fixture
def turned_away() -> Iterator[asyncio.Event]:
    """Set when a worker has told that it was not let in, for the second time."""
    event, said = asyncio.Event(), list[str]()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())
            if sum("trying again" in one for one in said) > 1:
                event.set()

    listening = Listening()
    logging.getLogger("retinue.serve").addHandler(listening)
    yield event
    logging.getLogger("retinue.serve").removeHandler(listening)


@asynccontextmanager
async def encrypted(certificates: Path, *, mutual: bool) -> AsyncIterator[tuple[Grpc, str]]:
    """A gateway with TLS, and where it listens."""
    tls = ServerTLS(
        cert=certificates / "gateway.pem",
        key=certificates / "gateway.key",
        client_ca=certificates / "ca.pem" if mutual else None,
    )
    dispatcher = Grpc()
    server = GrpcServer(Gateway(dispatcher), fleet=dispatcher.fleet, tls=tls)
    await server.start()
    try:
        yield dispatcher, f"127.0.0.1:{server.port}"
    finally:
        await dispatcher.close()
        await server.stop()


@asynccontextmanager
async def dialling(worker: Worker) -> AsyncIterator[None]:
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        await worker.close()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("mutual", [False, True])
async def test_a_worker_attaches_over_tls_and_runs_turns(certificates: Path, mutual: bool) -> None:
    own = {"cert": certificates / "worker.pem", "key": certificates / "worker.key"}
    tls = ClientTLS(ca=certificates / "ca.pem", **(own if mutual else {}))
    async with (
        encrypted(certificates, mutual=mutual) as (dispatcher, address),
        dialling(Worker(says(), address, tls=tls)),
        aio.secure_channel(address, tls.credentials()) as channel,
    ):
        await within(dispatcher.fleet.until(1))
        stub: Any = AgentsStub(channel)
        assert text_of(await all_of(stub.Run(pb.Start(text="x")))) == "x"


@pytest.mark.parametrize("name", [None, "stranger"])
async def test_mutual_tls_lets_nobody_in_who_has_no_certificate_of_the_authority(
    certificates: Path, name: str | None, turned_away: asyncio.Event
) -> None:
    own = {"cert": certificates / f"{name}.pem", "key": certificates / f"{name}.key"}
    tls = ClientTLS(ca=certificates / "ca.pem", **(own if name else {}))
    async with (
        encrypted(certificates, mutual=True) as (dispatcher, address),
        dialling(Worker(says(), address, tls=tls)),
    ):
        await within(turned_away.wait())
        assert dispatcher.load().workers == ()


async def test_a_gateway_that_the_authority_does_not_know_is_not_believed(
    certificates: Path, turned_away: asyncio.Event
) -> None:
    tls = ClientTLS(ca=certificates / "stranger.pem")
    async with (
        encrypted(certificates, mutual=False) as (dispatcher, address),
        dialling(Worker(says(), address, tls=tls)),
    ):
        await within(turned_away.wait())
        assert dispatcher.load().workers == ()


async def test_reflection_lists_the_services_and_tells_their_methods() -> None:
    async with stage() as one:

        def asked() -> tuple[list[str], list[str]]:
            with grpc.insecure_channel(one.address) as channel:
                database = ProtoReflectionDescriptorDatabase(channel)
                pool = DescriptorPool(database)
                agents: Any = pool.FindServiceByName("retinue.v1.Agents")
                return list(database.get_services()), [method.name for method in agents.methods]

        services, methods = await within(asyncio.to_thread(asked))
        assert {"retinue.v1.Agents", "retinue.v1.Workers", "grpc.health.v1.Health"} <= {*services}
        assert methods == ["Converse", "Run", "ListAgents"]


async def test_without_workers_there_is_no_service_for_them() -> None:
    gateway = Gateway(InProcess(echoing()))
    server = GrpcServer(gateway)
    await server.start()
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Any = AgentsStub(channel)
        assert text_of(await all_of(stub.Run(pb.Start(text="here")))) == "here"
        worker = Worker(says(), f"127.0.0.1:{server.port}")
        with pytest.raises(ConfigError, match="takes no workers"):
            await within(worker.run())
        await worker.close()
    await gateway.close()
    await server.stop()


async def test_health_says_whether_turns_can_be_run() -> None:
    serving, not_serving = (
        health_pb2.HealthCheckResponse.SERVING,
        health_pb2.HealthCheckResponse.NOT_SERVING,
    )
    async with stage() as one, aio.insecure_channel(one.address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watching = aiter(stub.Watch(health_pb2.HealthCheckRequest(service="retinue.v1.Agents")))
        assert (await within(anext(watching))).status == not_serving
        async with one.worker(says()) as worker:
            assert (await within(anext(watching))).status == serving
            await within(worker.leave(1))
            assert (await within(anext(watching))).status == not_serving
        whole = await stub.Check(health_pb2.HealthCheckRequest())
        assert whole.status == serving
        await one.server.drain()
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == not_serving


@pytest.mark.parametrize("host", ["::1", "[::1]", "localhost"])
async def test_a_host_is_listened_on_with_and_without_its_brackets(host: str) -> None:
    gateway = Gateway(InProcess(echoing()))
    server = GrpcServer(gateway, host=host)
    await server.start()
    target = f"[::1]:{server.port}" if "::" in host else f"{host}:{server.port}"
    async with aio.insecure_channel(target) as channel:
        stub: Any = AgentsStub(channel)
        assert text_of(await all_of(stub.Run(pb.Start(text="here")))) == "here"
    await gateway.close()
    await server.stop()


async def test_health_says_of_the_whole_server_that_it_drains() -> None:
    async with stage() as one, aio.insecure_channel(one.address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watching = aiter(stub.Watch(health_pb2.HealthCheckRequest()))
        assert (await within(anext(watching))).status == health_pb2.HealthCheckResponse.SERVING
        await one.gateway.drain(0)
        assert (await within(anext(watching))).status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_where_no_worker_attaches_a_message_is_bounded_before_it_is_read() -> None:
    gateway = Gateway(InProcess(echoing()))
    server = GrpcServer(gateway)
    await server.start()
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Any = AgentsStub(channel)
        for size, told in ((1_010_000, "over 1000000 bytes"), (2_000_000, "larger than max")):
            with pytest.raises(aio.AioRpcError, match=told) as error:
                await all_of(stub.Run(pb.Start(text="x" * size)))
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await gateway.close()
    await server.stop()


async def test_a_port_that_is_taken_is_refused_with_a_sentence() -> None:
    async with stage() as one:
        again = GrpcServer(Gateway(Grpc()), port=one.server.port)
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{one.server.port}"):
            await again.start()


async def test_a_gateway_that_drains_lets_turns_end_and_refuses_new_ones() -> None:
    stuck = Stuck()
    async with stage() as one, one.worker(Agent(Scripted(stuck), name="a")):
        running = asyncio.create_task(one.run("x"))
        await within(stuck.asked.wait())
        draining = asyncio.create_task(one.gateway.drain(10))
        await asyncio.sleep(0)
        with pytest.raises(aio.AioRpcError, match="shutting down") as refused:
            await one.run("y")
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        stuck.go.set()
        assert text_of(await within(running)) == "at last"
        await within(draining)
