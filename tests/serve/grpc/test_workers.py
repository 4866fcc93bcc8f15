"""Workers of this process at a gateway of this process: the streams between them."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from grpc import aio

from retinue import Agent
from retinue.advisors import Memory
from retinue.chains import ChatRequest
from retinue.errors import ConfigError
from retinue.messages import TextDelta
from retinue.models.scripted import Say, Scripted
from retinue.serve.access import ApiKeys, new_key
from retinue.serve.faults import Refused
from retinue.serve.gateway import Gateway
from retinue.serve.grpc import Grpc, GrpcServer, Worker
from retinue.serve.grpc.v1 import agents_pb2
from retinue.serve.grpc.v1 import workers_pb2 as pb
from retinue.serve.grpc.v1.workers_pb2_grpc import WorkersStub
from retinue.stores import InMemory
from tests.serve.grpc.stage import chunk, event_of, hello, job, stage, text_of
from tests.serve.scenes import Stuck, all_of, echoing, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


def naming(name: str) -> Agent:
    """An agent that says its own name."""
    return Agent(Scripted(name, repeat=True), name="a")


async def test_each_of_two_workers_has_its_share_and_loads_are_true() -> None:
    stuck = Stuck()
    agents = [Agent(Scripted(stuck, repeat=True), name="a") for _ in range(2)]
    async with (
        stage() as one,
        one.worker(agents[0], name="1", capacity=2),
        one.worker(agents[1], name="2", capacity=2),
    ):
        running = [await one.dispatcher.start(job()) for _ in range(4)]
        load = one.dispatcher.load()
        assert (load.running, load.capacity, load.queued) == (4, 4, 0)
        assert [worker.running for worker in load.workers] == [2, 2]
        waiting = asyncio.create_task(one.dispatcher.start(job()))
        reading = [asyncio.create_task(all_of(aiter(turn))) for turn in running]
        stuck.go.set()
        for events in reading:
            assert (await within(events))[-1].text == "at last"
        assert (await all_of(aiter(await within(waiting))))[-1].text == "at last"
        assert one.dispatcher.load().running == 0


async def test_a_conversation_stays_with_its_worker_by_the_consistent_hash() -> None:
    async with (
        stage(route="consistent_hash") as one,
        one.worker(naming("1"), name="1"),
        one.worker(naming("2"), name="2"),
    ):
        said = {}
        for n in range(16):
            asked = [job(conversation=f"c-{n}") for _ in range(2)]
            turns = [await one.dispatcher.start(each) for each in asked]
            said[n] = {(await all_of(aiter(turn)))[-1].text for turn in turns}
        assert all(len(names) == 1 for names in said.values())
        assert set.union(*said.values()) == {"1", "2"}


@pytest.mark.rule("R-STREAM-6")
async def test_a_slow_client_bounds_what_a_worker_makes() -> None:
    made = 0

    def deltas() -> Any:
        nonlocal made
        for n in range(100_000):
            made = n + 1
            yield TextDelta("x" * 1_000)

    agent = Agent(Scripted(Say(deltas=deltas())), name="a")
    async with stage() as one, one.worker(agent):
        call = one.stub.Run(agents_pb2.Start(text="x"))
        stream = aiter(call)
        await within(anext(stream))
        before = -1
        async with asyncio.timeout(30):
            while made != before or not made:  # until nothing moves any more
                before = made
                await asyncio.sleep(0.3)
        assert made < 20_000  # most of it waits in the client's transport
        assert one.dispatcher.load().running == 1
        for _ in range(made):
            assert (await within(anext(stream))).type != "turn_ended"
        call.cancel()


async def test_a_job_that_the_worker_cannot_run_is_refused_with_the_workers_words() -> None:
    async with stage() as one, one.worker(echoing()):
        with pytest.raises(Refused, match="No turn of conversation 'none' waits") as refused:
            await one.dispatcher.start(job("echo", kind="resume", conversation="none"))
        assert refused.value.code == "conflict"
        assert one.dispatcher.load().running == 0


async def test_a_worker_does_not_run_the_same_job_twice() -> None:
    asked = job()
    async with stage() as one, one.worker(naming("x")):
        assert (await all_of(aiter(await one.dispatcher.start(asked))))[-1].text == "x"
        with pytest.raises(Refused, match="has begun here before; it runs once") as refused:
            await one.dispatcher.start(asked)
        assert refused.value.code == "conflict"


async def test_an_agent_without_a_memory_gets_the_workers_store() -> None:
    store = InMemory()
    async with stage() as one, one.worker(naming("x"), store=store):
        await all_of(aiter(await one.dispatcher.start(job(conversation="c", owner="ann"))))
    roles = [entry.message.role for entry in await store.tail("c", owner="ann")]
    assert roles == ["user", "assistant"]


async def test_leaving_ends_when_the_turns_have_and_the_agent_is_gone_then() -> None:
    stuck = Stuck()
    agent = Agent(Scripted(stuck), name="a")
    async with stage() as one, one.worker(agent) as worker:
        events = asyncio.create_task(all_of(aiter(await one.dispatcher.start(job()))))
        leaving = asyncio.create_task(worker.leave(30))
        await within(stuck.asked.wait())
        assert not leaving.done()
        stuck.go.set()
        assert (await within(events))[-1].text == "at last"
        await within(leaving)
        await within(one.until_gone())
        with pytest.raises(Refused, match="No worker is attached"):
            await one.dispatcher.start(job())


async def test_leaving_cancels_what_takes_longer_than_its_grace() -> None:
    agent = Agent(Scripted(Stuck()), name="a")
    async with stage() as one, one.worker(agent) as worker:
        events = asyncio.create_task(all_of(aiter(await one.dispatcher.start(job()))))
        await within(worker.leave(0.05))
        assert (await within(events))[-1].status == "cancelled"


async def test_a_worker_that_cannot_reach_a_gateway_can_still_be_told_to_leave() -> None:
    worker = Worker(naming("x"), "127.0.0.1:9")
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0.05)
    await within(worker.leave(0))
    await within(running)
    await worker.close()


async def test_a_detached_turn_outlives_the_gateway_and_takes_its_place_at_the_next() -> None:
    stuck, store = Stuck(), InMemory()
    agent = Agent(Scripted(stuck, repeat=True), advisors=[Memory(store)], name="a")
    async with stage() as one, one.worker(agent, capacity=3) as worker:
        await one.run_detached("c")
        await within(stuck.asked.wait())
        port = one.server.port
        await one.server.stop()
        dispatcher = Grpc()
        again = GrpcServer(Gateway(dispatcher), fleet=dispatcher.fleet, port=port, heartbeat=0.05)
        await again.start()
        try:
            await within(dispatcher.fleet.until(1))
            assert dispatcher.load().workers[0].name == worker.name
            assert dispatcher.load().running == 1
            waiting = [await dispatcher.start(job()) for _ in range(2)]
            third = asyncio.create_task(dispatcher.start(job()))
            await asyncio.sleep(0.1)
            assert not third.done()
            stuck.go.set()
            await within(third)
            assert len(waiting) == 2
        finally:
            await dispatcher.close()
            await again.stop()
    assert [entry.message.text for entry in await store.tail("c")] == ["Hello", "at last"]
    assert not stuck.stopped.is_set()


async def refusal(one: Any, *messages: pb.FromWorker) -> aio.AioRpcError:
    """How the gateway ends a stream that says this."""
    async with aio.insecure_channel(one.address) as channel:
        stub: Any = WorkersStub(channel)
        call = stub.Attach()
        for message in messages:
            await call.write(message)
        with pytest.raises(aio.AioRpcError) as error:
            await all_of(aiter(call))
    return error.value


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([pb.FromWorker(heartbeat=pb.Heartbeat())], "says hello first"),
        ([pb.FromWorker(hello=hello(protocol=9))], "speaks version 9"),
        ([pb.FromWorker(hello=hello()), pb.FromWorker()], "sent nothing where that is not due"),
    ],
)
async def test_a_stream_that_breaks_the_protocol_is_ended_with_the_reason(
    messages: list[pb.FromWorker], said: str
) -> None:
    async with stage() as one:
        error = await refusal(one, *messages)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert said in (error.details() or "")
        assert one.dispatcher.load().workers == ()


async def test_a_worker_that_is_silent_for_too_long_is_taken_for_dead() -> None:
    async with stage(heartbeat=0.05) as one:
        error = await refusal(one, pb.FromWorker(hello=hello()))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "silent for too long" in (error.details() or "")
        async with one.worker(naming("x")):
            await asyncio.sleep(0.3)  # the time itself: six heartbeats
            assert len(one.dispatcher.load().workers) == 1


async def test_an_event_that_is_too_large_ends_its_turn_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.grpc.assignment.LARGEST", 5_000)

    def says(request: ChatRequest) -> Say:
        return Say(text="x" * (10_000 if request.messages[-1].text == "large" else 10))

    async with stage() as one, one.worker(Agent(Scripted(says, repeat=True), name="a")):
        large, small = await asyncio.gather(one.run("large"), one.run("small"))
        assert text_of(small) == "x" * 10
        end = event_of(large[-1])
        assert (end.status, end.text) == ("failed", "")
        assert "could not be sent" in end.reason


async def test_events_are_read_as_they_come_and_not_at_the_end() -> None:
    stuck = Stuck()

    class Halting:
        name, provider = "halting", "test"

        async def generate(self, request: ChatRequest, send: Any) -> None:
            await send(TextDelta("first"))
            await stuck(request)

        async def close(self) -> None:
            pass

    model: Any = Halting()
    async with stage() as one, one.worker(Agent(model, name="a")):
        stream = aiter(await one.dispatcher.start(job()))
        async with asyncio.timeout(10):
            while type(event := await anext(stream)) is not type(chunk(1)):
                pass
        assert event.text == "first"
        stuck.go.set()
        await all_of(stream)


async def test_leaving_does_not_wait_for_a_reader_that_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.grpc.worker._LAST", 0.1)
    agent = Agent(Scripted(Say(text=["x"] * 2_000)), name="a")
    async with stage() as one, one.worker(agent) as worker:
        turn = await one.dispatcher.start(job())
        await within(worker.leave(0.05))
        await within(one.until_gone())
        end = (await all_of(aiter(turn)))[-1]
        assert (end.status, end.error) == ("failed", "WorkerLost")


async def test_a_worker_tries_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, tries, longest = Worker(naming("x"), "127.0.0.1:9"), 0, 0.0

    async def attach(stub: Any) -> str:
        nonlocal tries
        tries += 1
        if tries > 1_100:
            await worker.close()
        return "Nobody is there"

    def uniform(low: float, high: float) -> float:
        nonlocal longest
        longest = max(longest, high)
        return 0.0

    monkeypatch.setattr(worker, "_attach", attach)
    monkeypatch.setattr("retinue.serve.grpc.worker.random.uniform", uniform)
    monkeypatch.setattr("retinue.serve.grpc.worker.log.warning", lambda *_: None)
    await within(worker.run())
    assert longest == 10.0


async def test_a_worker_whose_key_is_withdrawn_ends_what_it_has_gets_no_more_and_is_told(
    tmp_path: Path,
) -> None:
    key, kept = new_key("workers", ["work"])
    keys, stuck = tmp_path / "keys", Stuck()
    keys.write_bytes(msgspec.json.encode(kept) + b"\n")
    agent = Agent(Scripted(stuck, repeat=True), name="a")
    async with stage(gateway={"access": ApiKeys(keys)}, heartbeat=0.05) as one:
        worker = Worker(agent, one.address, token=f"{key}\n")
        running = asyncio.create_task(worker.run())
        await within(worker.attached.wait())
        events = asyncio.create_task(all_of(aiter(await one.dispatcher.start(job()))))
        retired = asyncio.Event()
        one.dispatcher.fleet.watch(retired.set)
        keys.write_text("# none\n")
        await within(retired.wait())
        assert one.dispatcher.load().workers[0].draining
        stuck.go.set()
        assert (await within(events))[-1].text == "at last"
        with pytest.raises(ConfigError, match="refused this worker's token"):
            await within(running)
        await worker.close()
