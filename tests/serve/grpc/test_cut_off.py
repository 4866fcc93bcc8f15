"""Ends that are cut off from each other and alive: nobody is told twice, and nothing is written
twice."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from retinue import Agent
from retinue.chains.events import AttemptDiscarded, Event, TextChunk, TurnEnded, final_text
from retinue.models.scripted import Scripted
from retinue.serve.grpc import Worker, channels
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub
from retinue.stores import SQLite
from tests.serve.grpc.processes import START, line_of, seen_until, worker
from tests.serve.grpc.stage import by_name, job, stage
from tests.serve.grpc.wires import wire
from tests.serve.scenes import Stuck, all_of, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def said_in(folder: Path) -> list[tuple[str, str]]:
    """The roles and texts of the log of the conversation."""
    store = SQLite(folder / "chat.db")
    try:
        return [(one.message.role, one.message.text) for one in await store.tail("c")]
    finally:
        await store.close()


@pytest.mark.rule("R-MEM-6", "R-STREAM-1")
async def test_a_worker_that_is_cut_off_unnoticed_ends_the_turn_and_another_tells_it(
    tmp_path: Path,
) -> None:
    async with (
        stage(route=by_name, heartbeat=1.0) as one,
        wire(one.server.port) as frail,
        worker(tmp_path, frail.address, "halting", name="1") as first,
        worker(tmp_path, one.address, "halting", name="2"),
    ):
        running = await one.dispatcher.start(job("halting", conversation="c"))
        stream, events = aiter(running), list[Event]()
        await seen_until(stream, TextChunk, events)
        frail.freeze()
        await seen_until(stream, AttemptDiscarded, events)
        rest = asyncio.create_task(all_of(stream, START))
        (tmp_path / "go").touch()  # the first goes on, and knows nothing of the other
        events += await rest
        frail.thaw()  # what it had sent comes too late, and reaches nobody
        assert [event.seq for event in events] == [*range(1, len(events) + 1)]
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].status == "completed"
        assert final_text(events) == events[-1].text == "one two"
        assert (tmp_path / "asked").read_text() == f"{first.pid}\n"
        assert await said_in(tmp_path) == [("user", "Hello"), ("assistant", "one two")]


@pytest.mark.rule("R-MEM-6", "R-LOOP-8")
async def test_a_worker_that_notices_its_loss_ends_the_turn_as_cancelled_for_all(
    tmp_path: Path,
) -> None:
    async with (
        stage(route=by_name) as one,
        wire(one.server.port) as frail,
        worker(tmp_path, frail.address, "halting", name="1") as first,
        worker(tmp_path, one.address, "halting", name="2"),
    ):
        running = await one.dispatcher.start(job("halting", conversation="c"))
        stream, events = aiter(running), list[Event]()
        await seen_until(stream, TextChunk, events)
        frail.cut()
        events += await all_of(stream, START)
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].status == "cancelled"
        assert final_text(events) == events[-1].text == "one "
        assert await line_of(tmp_path / "cancelled") == str(first.pid)
        assert (tmp_path / "asked").read_text() == f"{first.pid}\n"
        assert await said_in(tmp_path) == [("user", "Hello"), ("assistant", "one ")]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ends ask soon whether the other one is there."""
    soon = (
        ("grpc.keepalive_time_ms", 300),
        ("grpc.keepalive_timeout_ms", 300),
        ("grpc.http2.ping_timeout_ms", 300),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10),
    )
    for name in ("CLIENT_OPTIONS", "SERVER_OPTIONS"):
        kept = {**dict(getattr(channels, name)), **dict(soon)}
        monkeypatch.setattr(channels, name, tuple(kept.items()))


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_vanishes_without_a_word_ends_its_turn() -> None:
    stuck = Stuck()
    async with (
        stage() as one,
        one.worker(Agent(Scripted(stuck), name="a")),
        wire(one.server.port) as frail,
        aio.insecure_channel(frail.address) as channel,
    ):
        call: Any = AgentsStub(channel).Run(pb.Start(text="x"))
        await within(anext(aiter(call)))
        await within(stuck.asked.wait())
        frail.freeze()
        await within(stuck.stopped.wait())


@pytest.mark.usefixtures("impatient")
async def test_a_worker_notices_a_gateway_that_vanishes_without_a_word() -> None:
    stuck = Stuck()
    async with stage() as one, wire(one.server.port) as frail:
        alone = Worker(Agent(Scripted(stuck), name="a"), frail.address)
        running = asyncio.create_task(alone.run())
        try:
            await within(alone.attached.wait())
            stream = aiter(await one.dispatcher.start(job()))
            await within(anext(stream))  # else the gateway waits for another worker
            await within(stuck.asked.wait())
            frail.freeze()
            await within(stuck.stopped.wait())
            assert (await all_of(stream))[-1].status == "failed"
        finally:
            await alone.close()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
