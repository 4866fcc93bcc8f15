"""Who runs the turns of a gateway: the protocol, and the dispatcher that runs them right here.

A dispatcher knows agents by name, takes jobs and gives events. It knows nothing of HTTP, of
clients that come back, or of whom a conversation belongs to beyond what the job says.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Final, Protocol

from msgspec import Struct, structs

from retinue.agent import Agent, Turn
from retinue.chains import events
from retinue.chains.events import Event
from retinue.errors import ConfigError
from retinue.serve.cards import (
    AgentCard,
    card_of,
    check_agents,
    keeping,
    served,
    stores_of,
    unknown_agent,
)
from retinue.serve.clienttools import check_tools, context_of
from retinue.serve.faults import Refused, fault_of, record
from retinue.serve.jobs import Job
from retinue.stores import Store
from retinue.stores.rules import check_store

CAPACITY: Final = 1_000
"""Turns that one process runs at once, unless it is told otherwise."""


class WorkerLoad(Struct, frozen=True, omit_defaults=True):
    """A worker and what it has to do. `capacity` None: it takes any number."""

    name: str
    agents: tuple[str, ...]
    running: int
    capacity: int | None = None
    draining: bool = False


class Load(Struct, frozen=True, omit_defaults=True):
    """How busy a dispatcher is.

    Attributes:
        running: turns that run.
        queued: jobs that wait for a place.
        capacity: turns that may run at once, or None for any number.
        draining: whether it takes no more jobs.
        workers: who runs them, where that is not this process.
    """

    running: int
    queued: int = 0
    capacity: int | None = None
    draining: bool = False
    workers: tuple[WorkerLoad, ...] = ()


class Running(Protocol):
    """A turn that was started. It is iterated once, by one reader.

    Attributes:
        id: the id of the turn.
    """

    @property
    def id(self) -> str: ...

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events. The last is a `TurnEnded`, whatever happens, but where iterating raises:
        then the dispatcher has lost the turn. A reader that is slow slows the turn; one that
        leaves ends it."""
        ...

    def cancel(self, reason: str) -> None:
        """Asks the turn to end as cancelled. Its events go on until it has."""
        ...


class Dispatcher(Protocol):
    """Runs jobs. All methods are called in one event loop."""

    def agents(self) -> Mapping[str, AgentCard]:
        """The agents that can be asked for now, by name."""
        ...

    async def start(self, job: Job) -> Running:
        """Starts a job, or refuses it with nothing done.

        Raises:
            Refused: no such agent (`not_found`), no place (`unavailable`), or it was taken before
                (`conflict`).
            RetinueError: what the job asks for cannot be, or is not there.
        """
        ...

    def load(self) -> Load:
        """How busy it is."""
        ...

    async def drain(self, seconds: float) -> None:
        """Takes no more jobs, and waits until the running ones have ended; those that have not
        after so many seconds are cancelled."""
        ...

    async def close(self) -> None:
        """Cancels what runs, and lets go of everything."""
        ...


class InProcess:
    """Runs turns in this process.

    Args:
        agents: the agents by name, or one under its own name.
        store: where agents that have no memory keep their conversations; by default they keep none.
        capacity: turns that run at once; a job past it is refused.
        close_agents: whether `close` closes the agents too.

    Raises:
        ConfigError: there is no agent, or a name or the capacity cannot be one.
    """

    def __init__(
        self,
        agents: Agent | Mapping[str, Agent],
        *,
        store: Store | None = None,
        capacity: int = CAPACITY,
        close_agents: bool = True,
    ) -> None:
        named = {agents.name: agents} if isinstance(agents, Agent) else dict(agents)
        check_agents(named)
        if store is not None:
            check_store("serve", store)
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"InProcess(capacity={capacity!r}): give a whole number above 0.")
        kept = {name: keeping(agent, store) for name, agent in named.items()}
        self._cards = {name: card_of(name, agent) for name, agent in kept.items()}
        self._agents = {name: served(agent) for name, agent in kept.items()}
        self._capacity = capacity
        self._close_agents = close_agents
        self._running: dict[str, _Run | None] = {}  # None while it is being started
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    def agents(self) -> Mapping[str, AgentCard]:
        """See `Dispatcher.agents`."""
        return self._cards

    def stores(self) -> tuple[Store, ...]:
        """The stores behind the agents' memories, each once."""
        return stores_of(self._agents.values())

    def store_of(self, agent: str) -> Store | None:
        """Where an agent keeps its conversations, or None."""
        found = stores_of([self._agents[agent]] if agent in self._agents else [])
        return found[0] if found else None

    async def start(self, job: Job) -> "_Run":
        """See `Dispatcher.start`."""
        agent = self._agents.get(job.agent)
        if agent is None:
            raise unknown_agent(job.agent, self._agents)
        self._check_open()
        if job.id in self._running:
            raise Refused("conflict", f"The job {job.id!r} is running already.")
        if len(self._running) >= self._capacity:
            raise Refused(
                "unavailable",
                f"All {self._capacity} places are taken; try again later.",
                retry_after=1.0,
            )
        self._running[job.id] = None
        self._idle.clear()
        try:
            turn = await turn_of(agent, job)
            self._check_open()
        except BaseException:
            self._ended(job.id)
            raise
        run = self._running[job.id] = _Run(turn, partial(self._ended, job.id))
        return run

    def load(self) -> Load:
        """See `Dispatcher.load`."""
        return Load(len(self._running), capacity=self._capacity, draining=self._draining)

    async def drain(self, seconds: float) -> None:
        """See `Dispatcher.drain`."""
        self._draining = True
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._cancel_all()
            await self._idle.wait()

    async def close(self) -> None:
        """See `Dispatcher.close`."""
        self._draining = True
        runs = [*self._running.values()]
        self._cancel_all()
        for run in runs:
            if run is not None:
                await run.stopped()  # before its store is closed
        if self._close_agents:
            for agent in self._agents.values():
                await agent.close()
            for store in self.stores():
                await store.close()

    def _cancel_all(self) -> None:
        for run in [*self._running.values()]:
            if run is not None:
                run.cancel("The server is shutting down.")

    def _check_open(self) -> None:
        if self._draining:
            raise Refused("unavailable", "The server is shutting down; ask another one.")

    def _ended(self, job: str) -> None:
        self._running.pop(job, None)
        if not self._running:
            self._idle.set()


class _Run:
    """A turn of this process."""

    def __init__(self, turn: Turn, ended: Callable[[], None]) -> None:
        self._turn = turn
        self._ended = ended
        self._read = False

    @property
    def id(self) -> str:
        return self._turn.id

    async def __aiter__(self) -> AsyncIterator[Event]:
        self._read = True
        turn = self._turn
        stream = turn.__aiter__()
        try:
            async for event in stream:
                if isinstance(event, events.TurnEnded) and event.status == "failed":
                    event = told(event, None if turn.outcome is None else turn.outcome.error)
                yield event
        except Exception as error:  # in the last event stands what of it is for clients
            record(error, f"Turn {turn.id}")
        finally:
            await stream.aclose()
            self._ended()

    def cancel(self, reason: str) -> None:
        self._turn.cancel(reason)
        if not self._read:
            self._ended()

    async def stopped(self) -> None:
        """The turn has stopped, if it was begun; its reader may have events left to read."""
        if self._read:
            with contextlib.suppress(Exception):  # the reader is told of it
                await self._turn.result()


async def turn_of(agent: Agent, job: Job) -> Turn:
    """The turn that a job asks for; it has not started.

    Raises:
        RetinueError: what the job asks for cannot be, or is not there.
    """
    check_tools(job.tools, agent.tools)
    context = {**job.context, **context_of(job.tools)}
    settings = job.choices.settings
    if job.kind == "run":
        turn = agent.stream(
            job.messages,
            conversation=job.conversation,
            owner=job.owner,
            context=context,
            settings=settings,
            output=job.output,
            final_only=job.final_only,
        )
        return turn.prepare(id=job.id, seconds=job.seconds, measure=job.measure)
    if job.conversation is None:
        raise ConfigError(f"A job to {job.kind} a turn needs its conversation.")
    if job.kind == "resume":
        turn = await agent.stream_resume(
            job.conversation,
            {name: given.answer for name, given in job.answers.items()},
            owner=job.owner,
            context=context,
            settings=settings,
            output=job.output,
        )
        return turn.prepare(seconds=job.seconds, measure=job.measure)
    found = await agent.stream_recover(
        job.conversation, owner=job.owner, context=context, settings=settings, output=job.output
    )
    if found is None:
        raise Refused("conflict", f"No turn of conversation {job.conversation!r} was cut off.")
    return found.prepare(seconds=job.seconds, measure=job.measure)


def told(event: events.TurnEnded, error: BaseException | None) -> events.TurnEnded:
    """The end of a failed turn as clients may see it."""
    if error is None:
        return event
    return structs.replace(event, reason=fault_of(error).message)
