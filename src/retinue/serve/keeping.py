"""One turn of a gateway: its events in a bounded buffer, and its readers.

A pump takes the events from the dispatcher, numbers them, and keeps the last ones. Readers are
cursors into the buffer. One who comes back with the last number it saw gets the rest, without gap
or double; one who missed more than is kept gets a `Resync` first.

    attended   a slow reader slows the turn; when the last one leaves, it is cancelled
    detached   no reader slows it, and it ends by itself
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from retinue.chains.events import Event, TextChunk, ThinkingChunk, ToolArguments, TurnEnded
from retinue.errors import ConfigError, InternalError
from retinue.messages import Message
from retinue.serve.dispatch import Running
from retinue.serve.faults import fault_of, record
from retinue.serve.jobs import Job
from retinue.serve.picture import Picture
from retinue.serve.wire import Place, Resync, Sent, encode, numbered
from retinue.tools import PendingCall

BATCH: Final = 64
"""Events that a reader is handed at once, at most."""

Log = Callable[[Job, str], Awaitable[Sequence[Message]]]
"""Gives the stored messages of a turn: its job, and its id."""

Watch = Callable[["Kept", Event], None]
"""Hears every event, when it has come."""


class Keeping(Struct, frozen=True, kw_only=True):
    """How much is kept of turns.

    Attributes:
        events: events of one turn.
        bytes: about as many bytes of text of one turn.
        seconds: how long an ended turn is kept.
        turns: how many ended turns are kept.
        total_bytes: about as many bytes of all ended turns.
        linger: seconds that an attended turn waits for a reader who may come back.
    """

    events: int = 1_024
    bytes: int = 256 * 1024
    seconds: float = 300.0
    turns: int = 1_000
    total_bytes: int = 64 * 1024 * 1024
    linger: float = 0.0

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if isinstance(value, bool) or value < 0 or (value == 0 and name != "linger"):
                raise ConfigError(f"Keeping({name}={value!r}): give a number above 0.")


class Kept:
    """One turn of a gateway.

    Attributes:
        job: what was asked.
        turn: the id of the turn.
        stream: the name of this run of it; a turn that goes on after a pause has another.
        end: how it ended, or None while it runs.
        begun, ended: when, by the monotonic clock, in seconds.
    """

    def __init__(self, job: Job, running: Running, keeping: Keeping, log: Log) -> None:
        self.job = job
        self.turn = running.id
        self.stream = job.id
        self.end: TurnEnded | None = None
        self.begun = time.monotonic()
        self.ended = 0.0
        self._running: Running | None = running
        self._keeping = keeping
        self._log = log
        self._buffer: deque[Event] = deque()
        self._weights: deque[int] = deque()  # of the events in the buffer
        self._weight = 0  # of all of them
        self._picture = Picture()
        self._readers: set[Reader] = set()
        self._news = asyncio.Event()  # readers wait for it, and
        self._room = asyncio.Event()  # the pump for this; neither stays set: see `_pulse`
        self._leaving: asyncio.TimerHandle | None = None
        self._hurried = False

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self._buffer[-1].seq if self._buffer else 0

    @property
    def weight(self) -> int:
        """About how many bytes are kept."""
        return self._weight + self._picture.weight

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """What the turn waits for, where it has paused."""
        return self._picture.pending

    def behind(self, place: Place) -> int:
        """The number behind which a reader at this place goes on. A number of another run of the
        turn, before a pause or a restart, says nothing of this one."""
        return place.seq if place.stream in ("", self.stream) else 0

    def reader(self, after: int = 0) -> "Reader":
        """A reader who has seen the events up to a number; it counts from now on.

        A number that no event of this turn has yet is one of another stream, and says nothing.
        """
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        reader = Reader(self, after if 0 < after <= self.last else 0)
        self._readers.add(reader)
        return reader

    def cancel(self, reason: str) -> None:
        """Asks the turn to end."""
        if self.end is None and self._running is not None:
            self._running.cancel(reason)

    async def pump(self, running: Running, watch: Watch) -> None:
        """Takes the events until the turn has ended; then there is an end, whatever happened."""
        error: Exception = InternalError("The turn ended without saying how.")
        late = None  # no reader holds a turn, and its place, for longer than it may take
        if self.job.seconds is not None:
            late = asyncio.get_running_loop().call_later(self.job.seconds, self.hurry)
        try:
            async for event in running:
                self._put(event, watch)
                if self.end is None:
                    await self._make_room()
        except Exception as raised:
            error = raised
        finally:
            if late is not None:
                late.cancel()
        if self.end is None:
            record(error, f"Turn {self.turn}")
            self._put(self._lost(error), watch)
        self._running = None  # it holds all messages of the turn
        self.hurry()

    async def next(self, after: int) -> list[Sent]:
        """The events behind a number, when there are any; none when the turn has ended there."""
        while after >= self.last:
            if self.end is not None:
                return []
            await self._news.wait()
        if after + 1 < self._buffer[0].seq:
            return [await self._resync()]
        first = after + 1 - self._buffer[0].seq
        return list(islice(self._buffer, first, first + BATCH))

    def make_way(self) -> None:
        """A reader has moved on: there may be room for more events."""
        _pulse(self._room)

    def leave(self, reader: "Reader") -> None:
        """A reader has gone; the last one ends an attended turn."""
        if reader not in self._readers:
            return
        self._readers.remove(reader)
        self.make_way()
        if self._readers or self.job.detached or self.end is not None:
            return
        if self._keeping.linger:
            loop = asyncio.get_running_loop()
            self._leaving = loop.call_later(self._keeping.linger, self.cancel, _LEFT)
        else:
            self.cancel(_LEFT)

    def hurry(self) -> None:
        """Readers are waited for no longer: neither slow ones, nor one who may come back."""
        self._hurried = True
        if self._leaving is not None:
            self._leaving.cancel()
        self.make_way()

    def _put(self, event: Event, watch: Watch) -> None:
        event = numbered(event, self.last + 1)
        self._buffer.append(event)
        self._weights.append(_weight(event))
        self._weight += self._weights[-1]
        self._picture.add(event)
        if isinstance(event, TurnEnded) and not event.path:
            self.end = event
            self.ended = time.monotonic()
        watch(self, event)
        _pulse(self._news)

    async def _make_room(self) -> None:
        """Lets the oldest events go; in an attended turn, not before its readers have had them."""
        while self._over():
            if self._is_awaited(self._buffer[0].seq):
                await self._room.wait()
                continue
            self._buffer.popleft()
            self._weight -= self._weights.popleft()

    def _over(self) -> bool:
        size = len(self._buffer)
        return size > self._keeping.events or (size > 1 and self._weight > self._keeping.bytes)

    def _is_awaited(self, seq: int) -> bool:
        if self.job.detached or self._hurried:
            return False
        return any(reader.after < seq for reader in self._readers)

    async def _resync(self) -> Resync:
        while True:
            rounds = self._picture.rounds
            log = () if self.job.conversation is None else await self._log(self.job, self.turn)
            if rounds == self._picture.rounds:  # else a round has gone into the log meanwhile
                return self._picture.resync(self.turn, self.job.conversation, log)

    def _lost(self, error: Exception) -> TurnEnded:
        last = self._buffer[-1] if self._buffer else None
        at = (0, 0) if last is None else (last.round, last.attempt)
        return TurnEnded(
            self.last + 1,
            *at,
            (),
            self.turn,
            "failed",
            reason=fault_of(error).message,
            error=type(error).__name__,
        )


class Reader:
    """One who reads a turn. Close it, or use it in `async with`; it counts until then.

    Attributes:
        turn: the turn.
        after: the number of the last event that it was given.
    """

    __slots__ = ("after", "turn")

    def __init__(self, turn: Kept, after: int) -> None:
        self.turn = turn
        self.after = after

    def place(self, seq: int) -> Place:
        """What the reader would hand back after the event of this number."""
        return Place(self.turn.stream, seq)

    async def next(self) -> list[Sent]:
        """The next events, as many as are there when there are any; none after the last."""
        batch = await self.turn.next(self.after)
        if batch:
            self.after = batch[-1].seq
            self.turn.make_way()
        return batch

    async def events(self) -> AsyncGenerator[Sent]:
        """The events, one by one, to the end of the turn."""
        while batch := await self.next():
            for event in batch:
                yield event

    async def end(self) -> TurnEnded:
        """Reads to the end, and gives it."""
        while await self.next():
            pass
        if self.turn.end is None:
            raise InternalError("A turn was read to its end and has none.")
        return self.turn.end

    def close(self) -> None:
        """The reader leaves."""
        self.turn.leave(self)

    async def __aenter__(self) -> "Reader":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


_LEFT: Final = "The reader left."


def _pulse(bell: asyncio.Event) -> None:
    """Wakes those who wait now."""
    bell.set()
    bell.clear()


def _weight(event: Event) -> int:
    """About how many bytes an event holds."""
    match event:
        case TextChunk() | ThinkingChunk():
            held = len(event.text)
        case ToolArguments():
            held = len(event.fragment)
        case _:
            held = len(encode(event))
    return _OVERHEAD + held


_OVERHEAD: Final = 200
