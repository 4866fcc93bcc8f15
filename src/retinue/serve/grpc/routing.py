"""Which worker gets a turn: a choice among those that serve its agent and have a free place.

Nothing here knows of streams or waits. A route sees workers as names with counts, so each is
tested without a worker.
"""

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, Literal, Protocol, TypeVar

from retinue.errors import ConfigError
from retinue.serve.jobs import Job

RouteName = Literal["least_loaded", "round_robin", "random", "consistent_hash"]


class Seat(Protocol):
    """A worker with a free place.

    Attributes:
        name: what it is called.
        instance: which process it is; unique among all workers.
        running: the turns that it holds.
        capacity: the turns that it can hold, above `running`.
    """

    @property
    def name(self) -> str: ...
    @property
    def instance(self) -> str: ...
    @property
    def running(self) -> int: ...
    @property
    def capacity(self) -> int: ...


S = TypeVar("S", bound=Seat)

Route = Callable[[Sequence[Any], Job], Any]
"""Takes the workers to choose from, one or more, in the order in which they attached."""


def least_loaded(workers: Sequence[S], job: Job) -> S:
    """The one with the smallest part of its places taken; of several, the one with most free."""
    return min(workers, key=lambda one: (one.running / one.capacity, one.running - one.capacity))


def at_random(workers: Sequence[S], job: Job) -> S:
    """Any."""
    return random.choice(workers)


def consistent_hash(workers: Sequence[S], job: Job) -> S:
    """The same one for the same conversation, as long as it is there and has a place.

    Each worker is weighed against the conversation, and the heaviest wins (rendezvous hashing), so
    a worker that comes or goes moves only its own share of the conversations. The name counts: a
    worker that is started again under its name gets the conversations it had.
    """
    key = f"{job.owner or ''}\0{job.conversation or job.id}".encode("utf-8", "surrogatepass")
    return max(workers, key=lambda one: (_weight(one.name.encode(), key), one.instance))


class RoundRobin:
    """Each in turn: the one whose last turn of an agent was longest ago."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._count = 0

    def __call__(self, workers: Sequence[S], job: Job) -> S:
        chosen = min(workers, key=lambda one: self._given.get(one.instance, 0))
        self._count += 1
        self._given[chosen.instance] = self._count
        if len(self._given) > _REMEMBERED:  # workers that are long gone
            del self._given[min(self._given, key=self._given.__getitem__)]
        return chosen


def route_of(name: RouteName | Route) -> Route:
    """The route of this name; a function is one itself.

    Raises:
        ConfigError: there is none.
    """
    if callable(name):
        return name
    if name == "round_robin":
        return RoundRobin()
    try:
        return _ROUTES[name]
    except KeyError:
        raise ConfigError(
            f"There is no route {name!r}; there are {', '.join((*_ROUTES, 'round_robin'))}."
        ) from None


_REMEMBERED: Final = 10_000
_ROUTES: Final[dict[str, Route]] = {
    "least_loaded": least_loaded,
    "random": at_random,
    "consistent_hash": consistent_hash,
}


def _weight(worker: bytes, key: bytes) -> bytes:
    return blake2b(key, key=blake2b(worker, digest_size=32).digest(), digest_size=8).digest()
