"""A turn that runs on a worker, and on another one if the first is lost.

    worker lost before its answer, or before the first event    another worker begins the turn
    worker lost after it                                         what is open is taken back, and
                                                                 another worker goes on by the log

Another worker is told the id of the turn, since nobody knows how far the first one came. A turn
without a conversation has no log: before its first event it begins anew, after it it has failed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final, Literal

from msgspec import structs

from retinue.chains.events import Event, TurnEnded
from retinue.errors import RetinueError
from retinue.messages import new_id
from retinue.serve.faults import Refused, fault_of, log
from retinue.serve.grpc.fleet import Fleet
from retinue.serve.grpc.link import Dispatched, WorkerLost
from retinue.serve.grpc.seam import LOST, Seam
from retinue.serve.jobs import Job

OnLoss = Literal["continue", "fail"]

WORKERS: Final = 3
"""Workers that a turn is given to, one after another: it may be what kills them."""

STOPPING: Final = 10.0
"""Seconds that a worker has to end a turn that is cancelled; then its reader is told that it is."""


class RemoteTurn:
    """One turn. `begin` it, then iterate it.

    Args:
        job: what is to be run.
        fleet: the workers.
        on_loss: what happens where a worker is lost after the first event.
        over: called when nothing of it is left here.
    """

    def __init__(
        self, job: Job, fleet: Fleet, on_loss: OnLoss, over: "Callable[[RemoteTurn], None]"
    ) -> None:
        self.job = job
        self._fleet = fleet
        self._on_loss = on_loss
        self._over = over
        self._seam = Seam()
        self._turn = ""
        self._workers = 0
        self._ended = False
        self._dispatched: Dispatched | None = None
        self._dispatching: asyncio.Task[None] | None = None
        self._stopped: str | None = None
        self._giving_up: asyncio.TimerHandle | None = None
        clock = asyncio.get_running_loop().time
        self._clock = clock
        self._deadline = None if job.seconds is None else clock() + job.seconds

    @property
    def id(self) -> str:
        """The id of the turn."""
        return self._turn

    async def begin(self) -> None:
        """Gives the job to a worker that takes it.

        Raises:
            Refused: no worker had a place, or the worker refused it.
            WorkerLost: every worker that it was given to died.
        """
        try:
            while True:
                try:
                    await self._dispatch()
                    return
                except WorkerLost:
                    if self._workers >= WORKERS:
                        raise
        except asyncio.CancelledError:
            self._leave()
            if self._stopped is None or _is_cancelled():
                raise
            raise Refused("unavailable", self._stopped) from None
        except BaseException:
            self._leave()
            raise

    async def __aiter__(self) -> AsyncGenerator[Event]:
        try:
            while self._dispatched is not None:
                lost: WorkerLost | None = None
                try:
                    async for event in self._dispatched.events():
                        shown = self._seam.take(event)
                        if shown is not None:
                            self._ended = isinstance(shown, TurnEnded)
                            yield shown
                            if self._ended:
                                return
                except WorkerLost as error:
                    lost = error
                if lost is None:
                    yield self._fail("The worker ended the turn without saying how.")
                    return
                async for event in self._move(lost):
                    yield event
                    if isinstance(event, TurnEnded):
                        return
        finally:
            self._leave()

    def cancel(self, reason: str) -> None:
        """Asks the turn to end as cancelled."""
        if self._stopped is None:
            self._stopped = reason
            if self._dispatching is not None and self._dispatching.cancel():
                return
            if self._dispatched is not None:
                self._dispatched.stop(reason)
                said = f"The worker did not end the turn within {STOPPING:g} seconds."
                self._giving_up = asyncio.get_running_loop().call_later(
                    STOPPING, self._dispatched.give_up, said
                )

    async def _move(self, lost: WorkerLost) -> AsyncGenerator[Event]:
        """Finds another worker. Gives what the reader is told; with an end, none was found."""
        log.warning("Turn %s: %s", self._turn, lost)
        why_not = self._why_it_ends(lost)
        if why_not is None and self._seam.seq:
            for event in self._seam.lose(f"{lost} Another worker goes on."):
                yield event
        while why_not is None:
            try:
                await self._dispatch()
                return
            except asyncio.CancelledError:
                if self._stopped is None or _is_cancelled():
                    raise
                why_not = self._why_it_ends(lost)
            except WorkerLost as again:
                lost = again
                why_not = self._why_it_ends(lost)
            except RetinueError as error:
                why_not = self._fail(f"{lost} {fault_of(error).message}")
        yield why_not

    def _why_it_ends(self, lost: WorkerLost) -> TurnEnded | None:
        """How the turn ends with its worker; None if another one may go on."""
        seen = self._seam.seq > 0
        if self._stopped is not None:
            return self._seam.end(self._turn, "cancelled", self._stopped)
        if seen and self._on_loss == "fail":
            return self._fail(f"{lost} What it had stored is in its conversation.")
        if seen and self.job.conversation is None:
            return self._fail(f"{lost} The turn has no conversation, so no other can go on.")
        if self._workers >= WORKERS:
            return self._fail(f"{lost} It was the last of {WORKERS} that were tried.")
        return None

    def _fail(self, reason: str) -> TurnEnded:
        return self._seam.end(self._turn, "failed", reason, LOST)

    async def _dispatch(self) -> None:
        task = self._dispatching = asyncio.ensure_future(self._dispatch_once())
        if self._stopped is not None:  # as the worker before it was lost
            task.cancel()
        try:
            await task
        finally:
            task.cancel()
            self._dispatching = None

    async def _dispatch_once(self) -> None:
        again = self._workers > 0
        link = await self._fleet.place(self._remaining(), again=again)
        self._workers += 1
        begun = self._turn or self.job.id if again else ""
        one = link.dispatch(new_id(), self._remaining(), begun)
        self._dispatched = one
        self._turn = await one.accepted

    def _remaining(self) -> Job:
        """The job with the time that is left of it."""
        if self._deadline is None:
            return self.job
        return structs.replace(self.job, seconds=max(0.001, self._deadline - self._clock()))

    def _leave(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
        one, self._dispatched = self._dispatched, None
        if one is not None:
            one.leave(None if self._ended else "The reader left.")
        self._over(self)


def _is_cancelled() -> bool:
    """Whether it is the present task that was cancelled, and not one that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
