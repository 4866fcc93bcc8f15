"""The dispatcher whose agents run on workers that have dialled in."""

import asyncio
from collections.abc import Mapping

from retinue.errors import ConfigError
from retinue.serve.cards import AgentCard
from retinue.serve.dispatch import Load
from retinue.serve.faults import Refused
from retinue.serve.grpc.fleet import Fleet
from retinue.serve.grpc.routing import Route, RouteName, route_of
from retinue.serve.grpc.running import OnLoss, RemoteTurn
from retinue.serve.jobs import Job


class Grpc:
    """Runs turns on workers.

    Args:
        route: how a worker is chosen among those that have a free place: "least_loaded",
            "round_robin", "random" or "consistent_hash" (of the conversation), or a function.
        queue: jobs that may wait for a place; past it they are refused as `unavailable`.
        patience: seconds that a job may wait for one.
        on_loss: what becomes of a turn whose worker is lost after its first event. "continue": its
            reader is told that the open attempt is discarded, and another worker goes on by the
            log; calls that have a result there do not run again. "fail": it ends as failed. A turn
            without a conversation has no log, so it fails.

    Attributes:
        fleet: the workers.

    Raises:
        ConfigError: a value cannot be one.
    """

    def __init__(
        self,
        *,
        route: RouteName | Route = "least_loaded",
        queue: int = 1_000,
        patience: float = 30.0,
        on_loss: OnLoss = "continue",
    ) -> None:
        if on_loss not in ("continue", "fail"):
            raise ConfigError(f"Grpc(on_loss={on_loss!r}): give 'continue' or 'fail'.")
        self.fleet = Fleet(route_of(route), queue=queue, patience=patience)
        self._on_loss: OnLoss = on_loss
        self._turns: dict[str, RemoteTurn] = {}
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    def agents(self) -> Mapping[str, AgentCard]:
        """See `Dispatcher.agents`."""
        return self.fleet.agents()

    async def start(self, job: Job) -> RemoteTurn:
        """See `Dispatcher.start`. Waits until a worker has taken the job.

        Raises:
            Refused: besides, the queue is full, or the wait was too long (`unavailable`).
            WorkerLost: every worker that it was given to died.
        """
        if self._draining:
            raise Refused("unavailable", "The server is shutting down; ask another one.")
        if job.id in self._turns:
            raise Refused("conflict", f"The job {job.id!r} is running already.")
        turn = self._turns[job.id] = RemoteTurn(job, self.fleet, self._on_loss, self._ended)
        self._idle.clear()
        await turn.begin()
        return turn

    def load(self) -> Load:
        """See `Dispatcher.load`."""
        workers = self.fleet.loads()
        return Load(
            sum(worker.running for worker in workers),
            queued=self.fleet.queued,
            capacity=self.fleet.capacity,
            draining=self._draining,
            workers=workers,
        )

    async def drain(self, seconds: float) -> None:
        """See `Dispatcher.drain`."""
        self._draining = True
        self.fleet.refuse_waiting("The server is shutting down; ask another one.")
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._cancel_all()
            await self._idle.wait()

    async def close(self) -> None:
        """See `Dispatcher.close`. The workers' streams end; they try to attach elsewhere, or to
        the gateway that comes after this one."""
        self._draining = True
        self._cancel_all()
        self.fleet.close()

    def _cancel_all(self) -> None:
        for turn in [*self._turns.values()]:
            turn.cancel("The server is shutting down.")

    def _ended(self, turn: RemoteTurn) -> None:
        self._turns.pop(turn.job.id, None)
        if not self._turns:
            self._idle.set()
