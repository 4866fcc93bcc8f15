"""One stream of a worker to its gateway, from hello to its end."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec
from grpc import aio

from retinue.serve.dispatch import InProcess
from retinue.serve.faults import log
from retinue.serve.grpc.assignment import Assignment
from retinue.serve.grpc.link import PROTOCOL
from retinue.serve.grpc.outbox import Outbox
from retinue.serve.grpc.v1 import workers_pb2 as pb

if TYPE_CHECKING:
    Call = aio.StreamStreamCall[pb.FromWorker, pb.ToWorker]


class Attachment:
    """One stream. When it is over, the turns that it gave are orphans.

    Args:
        agents: who runs the turns.
        name: what the worker is called.
        instance: which process it is.
        capacity: turns that it can hold.
        orphans: turns of earlier streams that it still holds; those of this one are added.
        begun: jobs that the worker has begun, by id, as for `Assignment`.
    """

    def __init__(
        self,
        agents: InProcess,
        *,
        name: str,
        instance: str,
        capacity: int,
        orphans: "set[asyncio.Task[None]]",
        begun: dict[str, asyncio.Event],
    ) -> None:
        self._agents = agents
        self._hello = pb.Hello(
            protocol=PROTOCOL,
            name=name,
            instance=instance,
            capacity=capacity,
            orphans=len(orphans),
            agents=[
                pb.Agent(name=name, card=msgspec.json.encode(card))
                for name, card in agents.agents().items()
            ],
        )
        self._orphans = orphans
        self._begun = begun
        self._outbox = Outbox()
        self._running: dict[str, tuple[Assignment, asyncio.Task[None]]] = {}

    async def run(self, call: "Call", welcomed: asyncio.Event) -> None:
        """Serves the stream until it is over.

        Args:
            call: the stream; nothing has been sent on it.
            welcomed: set when the gateway has taken the worker.

        Raises:
            AioRpcError: the gateway refused it, or is gone.
        """
        await call.write(pb.FromWorker(hello=self._hello))
        messages = aiter(call)
        first = await anext(messages, None)
        if first is None:
            return
        beat = first.welcome.heartbeat_seconds
        welcomed.set()
        helpers = [
            asyncio.create_task(self._write(call)),
            asyncio.create_task(self._beat(beat)),
        ]
        try:
            async for message in messages:
                self._hear(message)
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            self._abandon()
            call.cancel()

    def leave(self) -> None:
        """Takes no more turns."""
        self._outbox.answer(pb.FromWorker(leaving=pb.Leaving()))

    async def idle(self) -> None:
        """Waits until the turns that it has are over."""
        while self._running:
            await asyncio.wait([task for _, task in self._running.values()])

    def end(self) -> None:
        """The stream ends when what was made for it has been sent."""
        self._outbox.close()

    def _hear(self, message: pb.ToWorker) -> None:
        match message.WhichOneof("message"):
            case "dispatch":
                self._take(message.dispatch)
            case "stop":
                if message.stop.dispatch in self._running:
                    self._running[message.stop.dispatch][0].stop(message.stop.reason)
            case "credit":
                if message.credit.dispatch in self._running:
                    self._running[message.credit.dispatch][0].grant(message.credit.events)
            case other:
                log.warning("The gateway sent %s, which this worker does not know.", other)

    def _take(self, dispatch: pb.Dispatch) -> None:
        if dispatch.id in self._running:
            log.warning("The dispatch %s came twice; it was taken once.", dispatch.id)
            return
        assignment = Assignment(dispatch, self._agents, self._outbox, self._begun)
        task = asyncio.create_task(assignment.run(), name=f"dispatch {dispatch.id}")
        self._running[dispatch.id] = assignment, task
        task.add_done_callback(lambda _: self._running.pop(dispatch.id, None))

    def _abandon(self) -> None:
        for assignment, task in self._running.values():
            assignment.orphan()
            self._orphans.add(task)
            task.add_done_callback(self._orphans.discard)

    async def _write(self, call: "Call") -> None:
        with contextlib.suppress(aio.AioRpcError, asyncio.InvalidStateError):  # reading tells it
            while (message := await self._outbox.next()) is not None:
                await call.write(message)
            await call.done_writing()

    async def _beat(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            beat = pb.Heartbeat(orphans=len(self._orphans))
            self._outbox.answer(pb.FromWorker(heartbeat=beat))
