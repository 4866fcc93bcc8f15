"""One dispatch on its worker, without a stream."""

import asyncio
from typing import Any

from retinue import Agent
from retinue.advisors import Memory
from retinue.chains.events import TurnEnded
from retinue.messages import Message, ToolCall
from retinue.models.scripted import Scripted
from retinue.serve import wire
from retinue.serve.dispatch import InProcess
from retinue.serve.grpc.assignment import Assignment
from retinue.serve.grpc.outbox import Outbox
from retinue.serve.grpc.v1 import workers_pb2 as pb
from retinue.serve.jobs import Job
from retinue.stores import InMemory
from tests.serve.grpc.stage import job
from tests.serve.scenes import Stuck, within


class Begun:
    """An assignment that is handed to a worker without a stream."""

    def __init__(self, agents: InProcess, dispatch: pb.Dispatch, begun: Any = None) -> None:
        self.outbox = Outbox()
        self.assignment = Assignment(dispatch, agents, self.outbox, {} if begun is None else begun)
        self.running = asyncio.create_task(self.assignment.run())

    async def said(self) -> pb.FromWorker:
        """The first that is said of it."""
        message = await within(self.outbox.next())
        assert message is not None
        return message


async def test_a_turn_that_is_stopped_before_it_has_begun_is_cancelled_when_it_does() -> None:
    class Slow(InProcess):
        go = asyncio.Event()

        async def start(self, job: Job) -> Any:
            await self.go.wait()
            return await super().start(job)

    agents = Slow(Agent(Scripted(Stuck()), name="a"))
    one = Begun(agents, pb.Dispatch(id="d", job=job().dump(), credit=100))
    await asyncio.sleep(0)
    one.assignment.stop("Not wanted.")
    agents.go.set()
    await within(one.running)
    accepted, said = await one.said(), await one.said()
    assert accepted.WhichOneof("message") == "accepted"
    end = wire.decode(said.events.batches[0].events[-1])
    assert isinstance(end, TurnEnded)
    assert (end.status, end.reason) == ("cancelled", "Not wanted.")


async def test_a_turn_without_a_log_is_run_anew_where_it_was_begun_when_that_is_over() -> None:
    asked, over = job(), asyncio.Event()
    dispatch = pb.Dispatch(id="d", job=asked.dump(), turn=asked.id, credit=100)
    one = Begun(InProcess(Agent(Scripted("x"), name="a")), dispatch, {asked.id: over})
    await asyncio.sleep(0.01)
    assert not one.running.done()
    over.set()
    assert (await one.said()).accepted.turn == asked.id
    end = wire.decode((await one.said()).events.batches[0].events[-1])
    assert isinstance(end, TurnEnded)
    assert end.text == "x"


async def test_a_turn_that_waits_for_its_log_when_the_gateway_is_lost_does_not_begin() -> None:
    asked, store = job(conversation="c", detached=True), InMemory()
    agents = InProcess(Agent(Scripted("x"), advisors=[Memory(store)], name="a"))
    cut_off = Message("assistant", (ToolCall("c1", "pay", "{}"),))
    await store.append("c", [*asked.messages, cut_off], turn=asked.id)
    async with store.writing("c"):
        dispatch = pb.Dispatch(id="d", job=asked.dump(), turn=asked.id, credit=100)
        one = Begun(agents, dispatch)
        await asyncio.sleep(0.01)
        one.assignment.orphan()
    await within(one.running)
    said = [entry.message for entry in await store.tail("c")]
    assert said == [*asked.messages, cut_off]  # so whoever has the turn now can go on with it


async def test_the_wait_for_another_worker_counts_to_the_time_of_the_turn() -> None:
    class Watched(InProcess):
        seconds = 0.0

        async def start(self, job: Job) -> Any:
            self.seconds = job.seconds or 0.0
            return await super().start(job)

    asked, store = job(conversation="c", seconds=50.0), InMemory()
    agents = Watched(Agent(Scripted("x"), advisors=[Memory(store)], name="a"))
    async with store.writing("c"):
        dispatch = pb.Dispatch(id="d", job=asked.dump(), turn=asked.id, credit=100)
        one = Begun(agents, dispatch)
        await asyncio.sleep(0.05)
    await within(one.running)
    assert 0 < agents.seconds <= 49.96
