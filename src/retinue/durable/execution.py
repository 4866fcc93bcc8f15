"""One run of a durable turn in this process, and its steps. It knows no engine.

The engine runs a turn again from its beginning when another process takes it over, and gives the
recorded outcome of each step instead of doing it. So everything between the steps must come out as
it did: the names of messages do, since they count on from the last step (`Names`). What happens in
a step is its own: names drawn there are random, and model calls there are no steps.
"""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextvars import ContextVar
from typing import Final, Protocol

from retinue.chains import Scope, Spent
from retinue.chains.log import Journal
from retinue.messages import Message
from retinue.messages.message import ids_from

Do = Callable[[], Awaitable[str]]


class Place(Protocol):
    """Where a step stands among those of its turn, as the engine counts them."""

    @property
    def number(self) -> int:
        """Its number, from 1."""
        ...

    async def run(self, name: str, do: Do) -> str:
        """What `do` gives, or gave when it was recorded.

        Raises:
            Lost: another process has the turn.
            Stopped: the turn was cancelled.
            TurnFailed: another step is recorded in this place.
        """
        ...


class Lost(BaseException):
    """Another process has taken the turn over; this one must do nothing more in it."""


class Stopped(BaseException):
    """The turn was cancelled."""


class Names:
    """Names for the messages of a turn: the same ones each time it is run.

    The first is that of the turn. Each step starts the count anew, so that what differs before it
    (a log that was healed the first time) does not shift the names behind it.
    """

    def __init__(self, turn: str) -> None:
        self._turn = turn
        self._begun = False
        self._step = 0
        self._count = itertools.count()

    def __call__(self) -> str:
        """The next name."""
        if not self._begun:
            self._begun = True
            return self._turn
        return f"{self._turn}.{self._step:x}.{next(self._count):x}"

    def after(self, step: int) -> None:
        """A step has ended; of several at once, the last one counts."""
        if step > self._step:
            self._step = step
            self._count = itertools.count()


class Execution:
    """One run of one turn.

    Attributes:
        id: the durable turn's.
        token: this run's own name.
        again: whether the turn was begun before, by another run.
        scope: the turn's, once it has begun.
        task: in which it runs.
    """

    def __init__(self, id: str, reserve: Callable[[], Place]) -> None:
        self.id = id
        self.token = secrets.token_hex(8)
        self.again = False
        self.scope: Scope | None = None
        self.task = asyncio.current_task()
        self.reserve = reserve
        self._names = Names(id)

    @contextlib.contextmanager
    def running(self) -> Generator[None]:
        """Inside, model calls and tool calls are steps of this run."""
        token = _current.set(self)
        try:
            with ids_from(self._names):
                yield
        finally:
            _current.reset(token)

    async def step(self, name: str, do: Do) -> str:
        """The next step in order."""
        place = self.reserve()
        text = await self.at(place, name, do)
        self.after(place)
        return text

    async def at(self, place: Place, name: str, do: Do) -> str:
        """The step of a place that was reserved."""

        async def alone() -> str:
            with outside():
                return await do()

        try:
            return await place.run(name, alone)
        except Lost:
            self.abandon()  # a layer may catch what is raised here
            raise
        except Stopped:
            if self.scope is None:
                raise
            self.scope.stopping.interrupt("cancelled", CANCELLED)
            raise

    def after(self, place: Place) -> None:
        """The step of this place has ended, and those before it."""
        self._names.after(place.number)

    def cancel(self) -> None:
        """The turn was cancelled: it ends so, and its log is closed."""
        if self.scope is not None:
            self.scope.stopping.halt("cancelled", CANCELLED)

    def abandon(self) -> None:
        """Another process goes on with the turn: from here on nothing of it is stored here."""
        if self.scope is not None:
            journals = self.scope.log.journals
            journals[:] = [Mute(journal) for journal in journals]


class Mute:
    """A journal that stores nothing more, and still lets its conversation go."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        """Nothing is stored."""

    async def revise(self, message: Message) -> None:
        """Nothing is stored."""

    async def pause(self, id: str, document: bytes) -> None:
        """Nothing is stored."""

    async def go_on(self) -> None:
        """Nothing is used up."""

    async def close(self) -> None:
        """Lets the conversation go."""
        await self._journal.close()


class Ledger(list[Spent]):
    """A turn's model calls. Those made inside a tool call are noted with it, too."""

    def append(self, one: Spent, /) -> None:
        """Adds a model call."""
        super().append(one)
        noted = _noted.get()
        if noted is not None:
            noted.append(one)


@contextlib.contextmanager
def outside() -> Generator[list[Spent]]:
    """Inside, nothing is a step; model calls that are charged to the turn are noted."""
    noted: list[Spent] = []
    tokens = _current.set(None), _noted.set(noted)
    try:
        with ids_from(None):
            yield noted
    finally:
        _current.reset(tokens[0])
        _noted.reset(tokens[1])


def current() -> Execution | None:
    """The run whose steps are made here, or None."""
    return _current.get()


CANCELLED: Final = "The turn was cancelled."
_current: Final[ContextVar[Execution | None]] = ContextVar("retinue_execution", default=None)
_noted: Final[ContextVar[list[Spent] | None]] = ContextVar("retinue_noted", default=None)
