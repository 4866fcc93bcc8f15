"""The workers that are attached, and the jobs that wait for a place on one of them.

A place is taken the moment it is given, so the counts are true at every moment and no worker is
given more than it can hold. Jobs wait in the order in which they came, in a queue with a bound.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from retinue.errors import ConfigError
from retinue.serve.cards import AgentCard, unknown_agent
from retinue.serve.dispatch import WorkerLoad
from retinue.serve.faults import Refused
from retinue.serve.grpc.link import Link
from retinue.serve.grpc.routing import Route
from retinue.serve.jobs import Job


class _Waiting(Struct, eq=False):
    """A job that waits for a place."""

    job: Job
    place: asyncio.Future[Link]


class Fleet:
    """Workers and waiting jobs.

    Args:
        route: how one of several free workers is chosen.
        queue: how many jobs may wait for a place.
        patience: seconds that one may wait.

    Raises:
        ConfigError: a value cannot be one.
    """

    def __init__(self, route: Route, *, queue: int, patience: float) -> None:
        if isinstance(queue, bool) or queue < 0:
            raise ConfigError(f"Grpc(queue={queue!r}): give a whole number, 0 for no queue.")
        if not patience > 0:
            raise ConfigError(f"Grpc(patience={patience!r}): give seconds above 0.")
        self._route = route
        self._limit = queue
        self._patience = patience
        self._links: dict[str, Link] = {}
        self._waiting: list[_Waiting] = []
        self._known: dict[str, AgentCard] = {}
        self._come = asyncio.Event()
        self._watches: list[Callable[[], None]] = []

    def __iter__(self) -> Iterator[Link]:
        return iter([*self._links.values()])

    @property
    def queued(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    @property
    def capacity(self) -> int:
        """How many turns all workers together can hold."""
        return sum(link.capacity for link in self._links.values() if not link.leaving)

    def agents(self) -> Mapping[str, AgentCard]:
        """The agents that can be asked for. One whose workers are lost is among them, for they may
        come back; one whose last worker has left is not."""
        return self._known

    def loads(self) -> tuple[WorkerLoad, ...]:
        """What each worker has to do."""
        return tuple(
            WorkerLoad(link.name, (*link.agents,), link.running, link.capacity, link.leaving)
            for link in self._links.values()
        )

    def add(self, link: Link) -> None:
        """A worker has attached. If it was attached before, that stream is broken, and lost."""
        before = self._links.get(link.instance)
        if before is not None:
            self.remove(before)
            before.close()
        self._links[link.instance] = link
        self._known.update(link.agents)
        self._settle()
        self._changed()

    def remove(self, link: Link) -> None:
        """A worker is gone."""
        if self._links.get(link.instance) is not link:
            return
        del self._links[link.instance]
        if link.left:
            served = {name for other in self._links.values() for name in other.agents}
            for name in link.agents.keys() - served:
                del self._known[name]
        self._changed()

    def watch(self, changed: Callable[[], None]) -> None:
        """Tells somebody whenever a worker has come, is leaving, or is gone."""
        self._watches.append(changed)

    async def until(self, workers: int = 1) -> None:
        """Waits until there are so many workers, or more."""
        while len(self._links) < workers:
            self._come.clear()
            await self._come.wait()

    async def place(self, job: Job, *, again: bool = False) -> Link:
        """A worker for the job. A place on it is taken; `Link.dispatch` uses it.

        Args:
            job: what is to be run.
            again: whether its worker was lost: it comes before jobs that have not begun, and is
                queued past the bound too.

        Raises:
            Refused: no worker serves its agent, or the queue is full, or the wait was too long.
        """
        self._check_agent(job)
        link = None if self._others_wait(job) and not again else self._free(job)
        if link is not None:
            link.taken += 1
            return link
        if len(self._waiting) >= self._limit and not again:
            raise Refused(
                "unavailable",
                f"All places are taken and {self._limit} jobs wait already; try again later.",
                retry_after=1.0,
            )
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._waiting.insert(0 if again else len(self._waiting), waiting)
        try:
            async with asyncio.timeout(self._patience):
                return await waiting.place
        except TimeoutError:
            self._give_up(waiting)
            raise Refused(
                "unavailable",
                f"No worker had a place within {self._patience:g} seconds; try again later.",
                retry_after=1.0,
            ) from None
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise

    def _give_up(self, waiting: "_Waiting") -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            return
        place = waiting.place
        if place.done() and not place.cancelled() and place.exception() is None:
            place.result().taken -= 1  # it came at the same moment
            self._settle()

    def freed(self, link: Link) -> None:
        """A worker has a free place again, or is leaving."""
        self._settle()
        if link.leaving:
            self._changed()

    def refuse_waiting(self, reason: str) -> None:
        """Nobody need wait any more."""
        for waiting in self._waiting:
            if not waiting.place.done():
                waiting.place.set_exception(Refused("unavailable", reason))
        self._waiting.clear()

    def close(self) -> None:
        """Ends the streams of all workers."""
        self.refuse_waiting("The server is shutting down; ask another one.")
        for link in [*self._links.values()]:
            link.close()
            self.remove(link)

    def _settle(self) -> None:
        """Gives free places to jobs that wait, in their order."""
        for waiting in [*self._waiting]:
            link = self._free(waiting.job)
            if link is not None and not waiting.place.done():
                self._waiting.remove(waiting)
                link.taken += 1
                waiting.place.set_result(link)

    def _free(self, job: Job) -> Link | None:
        able = [
            link
            for link in self._links.values()
            if job.agent in link.agents and not link.leaving and link.running < link.capacity
        ]
        return self._route(able, job) if able else None

    def _others_wait(self, job: Job) -> bool:
        return any(waiting.job.agent == job.agent for waiting in self._waiting)

    def _changed(self) -> None:
        self._come.set()
        for watch in self._watches:
            watch()

    def _check_agent(self, job: Job) -> None:
        if job.agent in self._known:
            return
        if not self._known:
            raise Refused("unavailable", "No worker is attached; try again later.", retry_after=1.0)
        raise unknown_agent(job.agent, self._known)
