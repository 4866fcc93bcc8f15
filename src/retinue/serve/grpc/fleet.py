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
    again: bool  # whether a worker that was lost may have begun it
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
            self.lose(before)
        self._links[link.instance] = link
        self._known.update(link.agents)
        self._settle()
        self._changed()

    def lose(self, link: Link) -> None:
        """A worker is gone: it gets no more, and what it has not ended is lost."""
        if self._links.get(link.instance) is link:
            del self._links[link.instance]
            if link.left:
                served = {name for other in self._links.values() for name in other.agents}
                for name in link.agents.keys() - served:
                    del self._known[name]
            self._changed()
        link.close()

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
            Refused: no worker serves its agent, or the queue is full, or the wait was too long: the
                patience is over, or the time of the job.
        """
        self._check_agent(job)
        link = None if self._others_wait(job) and not again else self._free(job)
        if link is not None:
            link.taken += 1
            return link
        if len(self._waiting) >= self._limit and not again:
            said = f"and {self._limit} jobs wait already" if self._limit else "and none may wait"
            raise Refused(
                "unavailable", f"All places are taken {said}; try again later.", retry_after=1.0
            )
        waiting = _Waiting(job, again, asyncio.get_running_loop().create_future())
        behind = sum(one.again for one in self._waiting) if again else len(self._waiting)
        self._waiting.insert(behind, waiting)
        seconds = self._patience if job.seconds is None else min(self._patience, job.seconds)
        try:
            async with asyncio.timeout(seconds):
                return await waiting.place
        except TimeoutError:
            self._give_up(waiting)
            raise Refused(
                "unavailable",
                f"No worker had a place within {seconds:g} seconds; try again later.",
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

    def refuse_waiting(self, reason: str, *, begun: bool = False) -> None:
        """Jobs that wait need wait no more.

        Args:
            reason: what is told.
            begun: whether those are meant too that may have begun elsewhere.
        """
        for waiting in [*self._waiting]:
            if begun or not waiting.again:
                self._waiting.remove(waiting)
                if not waiting.place.done():
                    waiting.place.set_exception(Refused("unavailable", reason))

    def close(self) -> None:
        """Ends the streams of all workers."""
        self.refuse_waiting("The server is shutting down; ask another one.", begun=True)
        for link in self:
            self.lose(link)

    def _settle(self) -> None:
        """Gives free places to jobs that wait, in their order."""
        full = set[str]()  # agents without a free place; so a long queue costs one look each
        for waiting in [*self._waiting]:
            if waiting.job.agent in full or waiting.place.done():
                continue
            try:
                link = self._free(waiting.job)
            except Exception as error:  # of a route that somebody else wrote
                self._waiting.remove(waiting)
                waiting.place.set_exception(error)
                continue
            if link is None:
                full.add(waiting.job.agent)
                continue
            self._waiting.remove(waiting)
            link.taken += 1
            waiting.place.set_result(link)

    def _free(self, job: Job) -> Link | None:
        able = [
            link
            for link in self._links.values()
            if job.agent in link.agents and not link.leaving and link.running < link.capacity
        ]
        if not able:
            return None
        link = self._route(able, job)
        if link not in able:
            raise ValueError(
                f"The route chose {link!r}, which is none of the workers it was given."
            )
        return link

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
