"""One dispatch on its worker: it is run, and its events are sent as far as there is credit."""

import asyncio
from typing import Any, Final

from msgspec import structs

from retinue.chains.events import Event, TurnEnded
from retinue.serve import wire
from retinue.serve.dispatch import InProcess, Running
from retinue.serve.faults import Refused, fault_of, record
from retinue.serve.grpc.continuing import GRACE, Told, how_to_go_on
from retinue.serve.grpc.outbox import LARGEST, Outbox
from retinue.serve.grpc.v1 import workers_pb2 as pb
from retinue.serve.jobs import Job

_REMEMBERED: Final = 10_000
_TOO_LARGE: Final = f"An event was over {LARGEST // 1024**2} MB and could not be sent."


class Assignment:
    """One dispatch.

    Args:
        dispatch: what the gateway sent.
        agents: who runs it.
        outbox: where its answer and its events go.
        begun: the jobs that this worker has begun, by id; each begins once. The event is set when
            the job is over here.

    Attributes:
        orphaned: whether the gateway that gave it is lost; nothing is sent any more.
    """

    def __init__(
        self,
        dispatch: pb.Dispatch,
        agents: InProcess,
        outbox: Outbox,
        begun: dict[str, asyncio.Event],
    ) -> None:
        self.id = dispatch.id
        self.orphaned = False
        self._dispatch = dispatch
        self._agents = agents
        self._outbox = outbox
        self._begun = begun
        self._over = asyncio.Event()
        self._credit = dispatch.credit
        self._more = asyncio.Event()
        self._running: Running | None = None
        self._stopped: str | None = None
        self._detached = False

    async def run(self) -> None:
        """Runs it to its end. It does not raise: what goes wrong is told to the gateway."""
        try:
            running = await self._begin()
        except Exception as error:
            record(error, f"Dispatch {self.id}")
            self._decline(error)
            return
        accepted = pb.Accepted(dispatch=self.id, turn=running.id)
        self._outbox.answer(pb.FromWorker(accepted=accepted))
        self._running = running
        if self._stopped is not None:
            running.cancel(self._stopped)
        try:
            async for event in running:
                await self._send(event, running)
        except Exception as error:
            record(error, f"Turn {running.id}")
        finally:
            self._over.set()
            self._outbox.end(self.id)

    def stop(self, reason: str) -> None:
        """Ends the turn as cancelled."""
        if self._stopped is None:
            self._stopped = reason
            if self._running is not None:
                self._running.cancel(reason)

    def grant(self, events: int) -> None:
        """More events may be sent."""
        self._credit += events
        self._more.set()

    def orphan(self) -> None:
        """The gateway is lost: a turn that was not detached ends, another goes on unread."""
        self.orphaned = True
        self._more.set()
        if not self._detached:
            self.stop("The gateway was lost.")

    async def _begin(self) -> Running:
        job = Job.load(self._dispatch.job)
        self._detached = job.detached
        if self._dispatch.turn:
            found = await self._gone_on_with(job)
            if isinstance(found, Told):
                return found
            job = found
        elif job.id in self._begun:
            raise Refused("conflict", f"The job {job.id!r} has begun here before; it runs once.")
        if self.orphaned:  # so that whoever has the turn now finds its log as it is
            raise Refused("unavailable", "The gateway was lost before the turn began.")
        running = await self._agents.start(job)
        self._begun[job.id] = self._over
        if len(self._begun) > _REMEMBERED:
            del self._begun[next(iter(self._begun))]
        return running

    async def _gone_on_with(self, job: Job) -> Job | Told:
        """What becomes of a turn that may have begun elsewhere, or here on an earlier stream."""
        clock = asyncio.get_running_loop().time
        came = clock()
        await self._until_over_here(job.id)
        store = self._agents.store_of(job.agent)
        if job.conversation is None:  # there is no log: it begins anew
            found = job
        elif store is None:  # a memory that is not ours may know how far the turn came
            found = structs.replace(job, kind="recover")
        else:
            found = await how_to_go_on(job, self._dispatch.turn, store)
        if isinstance(found, Told) or found.seconds is None:
            return found
        return structs.replace(found, seconds=max(0.001, found.seconds - (clock() - came)))

    async def _until_over_here(self, job: str) -> None:
        over = self._begun.get(job)
        if over is None:
            return
        try:
            async with asyncio.timeout(GRACE):
                await over.wait()
        except TimeoutError:
            raise Refused(
                "unavailable", f"The turn still ran on its first worker after {GRACE:g} seconds."
            ) from None

    async def _send(self, event: Event, running: Running) -> None:
        data = wire.encode(event)
        if len(data) > LARGEST:
            running.cancel(_TOO_LARGE)
            if not isinstance(event, TurnEnded):
                return
            why: dict[str, Any] = {"status": "failed", "reason": _TOO_LARGE, "text": ""}
            event = structs.replace(event, **why, message=None)
            data = wire.encode(event)
        while self._credit <= 0 and not self.orphaned:
            self._more.clear()
            await self._more.wait()
        if not self.orphaned:
            self._credit -= 1
            self._outbox.add(self.id, data)

    def _decline(self, error: Exception) -> None:
        fault = fault_of(error)
        self._outbox.answer(
            pb.FromWorker(
                declined=pb.Declined(
                    dispatch=self.id,
                    code=fault.code,
                    message=fault.message,
                    retry_after_seconds=fault.retry_after or 0.0,
                )
            )
        )
