"""The gateway's end of one worker's stream: what it has been given, and what comes back.

A link does no I/O. The service puts what it hears into `hear` and sends what `next` gives, so that
all of this is tested without a network.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final

import msgspec

from retinue.chains.events import Event
from retinue.errors import RetinueError
from retinue.serve import wire
from retinue.serve.cards import AgentCard
from retinue.serve.faults import CODES, Code, Refused
from retinue.serve.grpc.outbox import LARGEST
from retinue.serve.grpc.v1 import workers_pb2 as pb
from retinue.serve.jobs import Job

PROTOCOL: Final = 1
"""The version of the protocol between gateways and workers."""

CREDIT: Final = 256
"""Events of a turn that may be on their way to a reader before its worker must wait."""


class WorkerLost(RetinueError):
    """The worker that ran a turn is gone."""


class Link:
    """One worker.

    Args:
        hello: how it introduced itself.
        freed: called whenever a place that was taken is free again, or the worker is leaving.

    Attributes:
        name: what it is called.
        instance: which process it is.
        capacity: the turns that it can hold.
        agents: what it serves.
        taken: places that are taken by turns of this gateway.
        dispatches: what it has been given and has not ended, by id.
        leaving: whether it takes no more.
        left: whether it has said so itself, and was not lost.

    Raises:
        Refused: it speaks another version of the protocol, or what it says cannot be.
    """

    def __init__(self, hello: pb.Hello, freed: "Callable[[Link], None]") -> None:
        if hello.protocol != PROTOCOL:
            raise Refused(
                "invalid",
                f"This worker speaks version {hello.protocol} of the protocol, and this gateway"
                f" version {PROTOCOL}; run the same version of retinue on both.",
            )
        if not (hello.instance and hello.capacity and hello.agents):
            raise Refused("invalid", "A worker needs an instance, a capacity and an agent.")
        self.name = hello.name or hello.instance
        self.instance = hello.instance
        self.capacity = hello.capacity
        self.agents: Mapping[str, AgentCard] = {one.name: _card(one) for one in hello.agents}
        self.taken = 0
        self.leaving = self.left = False
        self._orphans = hello.orphans
        self._freed = freed
        self.dispatches: dict[str, Dispatched] = {}
        self._outbox: deque[pb.ToWorker] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    def __repr__(self) -> str:
        return f"Link({self.name!r}, {self.running} of {self.capacity})"

    @property
    def running(self) -> int:
        """The turns that it holds, those of a gateway that it has lost included."""
        return self.taken + self._orphans

    def dispatch(self, id: str, job: Job, turn: str) -> "Dispatched":
        """Gives the worker a job, on a place that was taken for it.

        Args:
            id: the name of this dispatch.
            job: what is to be run.
            turn: the id of the turn, if a worker that is gone may have begun it, or "".

        Raises:
            TypeError, ValueError: the job holds what JSON cannot; its place is free again.
            Refused: it is too large for a message; so too.
        """
        try:
            given = pb.Dispatch(id=id, job=_written(job), turn=turn, credit=CREDIT)
        except BaseException:
            self.taken -= 1
            self._freed(self)
            raise
        one = self.dispatches[id] = Dispatched(self, id)
        if self._closed:  # it was lost between the two
            self._end(one, lost=True)
        else:
            self._send(pb.ToWorker(dispatch=given))
        return one

    def stop(self, id: str, reason: str) -> None:
        """Asks the worker to end a turn."""
        if id in self.dispatches:
            self._send(pb.ToWorker(stop=pb.Stop(dispatch=id, reason=reason)))

    def grant(self, id: str, events: int) -> None:
        """Lets the worker send more events of a turn."""
        if id in self.dispatches:
            self._send(pb.ToWorker(credit=pb.Credit(dispatch=id, events=events)))

    def hear(self, message: pb.FromWorker) -> None:
        """Takes what the worker sent.

        Raises:
            Refused: it breaks the protocol; the stream must end.
        """
        kind = message.WhichOneof("message")
        if kind == "events":
            for batch in message.events.batches:
                self._take(batch)
        elif kind == "accepted":
            self._known(message.accepted.dispatch).accept(message.accepted.turn)
        elif kind == "declined":
            self._declined(message.declined)
        elif kind == "heartbeat":
            fewer = message.heartbeat.orphans < self._orphans
            self._orphans = message.heartbeat.orphans
            if fewer:
                self._freed(self)
        elif kind == "leaving":
            self.left = True
            self.retire()
        else:
            raise Refused("invalid", f"A worker sent {kind or 'nothing'} where that is not due.")

    async def next(self) -> pb.ToWorker | None:
        """The next message for the worker, when there is one; None when the stream is over."""
        while not self._outbox:
            if self._closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._outbox.popleft()

    def retire(self) -> None:
        """It takes no more turns; those that it has go on."""
        self.leaving = True
        self._freed(self)

    def close(self) -> None:
        """The stream is over; turns that have not ended are lost."""
        self._closed = True
        self.leaving = True
        self._wake.set()
        for one in [*self.dispatches.values()]:
            self._end(one, lost=True)

    def _take(self, batch: pb.Batch) -> None:
        one = self._known(batch.dispatch)
        one.receive(batch.events)
        if batch.ended:
            self._end(one)

    def _declined(self, said: pb.Declined) -> None:
        one = self._known(said.dispatch)
        # The dispatch and its leaving have crossed: nothing was done, and another may do it.
        crossed = self.left and said.code == "unavailable"
        if not crossed:
            code = _CODES.get(said.code, "internal")
            one.decline(Refused(code, said.message, retry_after=said.retry_after_seconds or None))
        self._end(one, lost=crossed)

    def _known(self, id: str) -> "Dispatched":
        one = self.dispatches.get(id)
        if one is None:
            raise Refused("invalid", f"A worker spoke of the dispatch {id[:80]!r}, which is none.")
        return one

    def _end(self, one: "Dispatched", *, lost: bool = False) -> None:
        del self.dispatches[one.id]
        one.end(WorkerLost(f"The worker {self.name!r} was lost.") if lost else None)
        self.taken -= 1
        self._freed(self)

    def _send(self, message: pb.ToWorker) -> None:
        self._outbox.append(message)
        self._wake.set()


class Dispatched:
    """One job on one worker.

    Attributes:
        id: the name of the dispatch.
        worker: the name of the worker.
        accepted: the id of the turn, once the worker has taken it.
    """

    def __init__(self, link: Link, id: str) -> None:
        self.id = id
        self.worker = link.name
        self.accepted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._link = link
        self._events: deque[bytes] = deque()
        self._credit = CREDIT
        self._eaten = 0
        self._wake: asyncio.Future[None] | None = None
        self._over = self._left = False
        self._error: Exception | None = None

    async def events(self) -> AsyncIterator[Event]:
        """The events.

        Raises:
            WorkerLost: the worker was gone before the last one.
            FormatError: it sent what is none.
        """
        while True:
            while self._events:
                data = self._events.popleft()
                self._eat(1)
                event = wire.decode(data)
                if isinstance(event, wire.Resync):
                    raise Refused("internal", "A worker sent a resync.")
                yield event
            if self._over:
                break
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        if self._error is not None:
            raise self._error

    def stop(self, reason: str) -> None:
        """Asks the worker to end the turn; its last events still come."""
        self._link.stop(self.id, reason)

    def leave(self, why: str | None) -> None:
        """Nobody reads any more, and what still comes is dropped.

        Args:
            why: what the worker is told, so that the turn ends; None if it has ended.
        """
        if self._over or self._left:
            return
        self._left = True
        if why is not None:
            self.stop(why)
        self._eat(len(self._events))
        self._events.clear()

    def give_up(self, why: str) -> None:
        """The worker does not end it; whoever reads it waits no longer, and gets WorkerLost."""
        if not self._over:
            self.leave(None)
            self.end(WorkerLost(why))

    def accept(self, turn: str) -> None:
        """The worker has taken it."""
        if not self.accepted.done():
            self.accepted.set_result(turn)

    def decline(self, why: Refused) -> None:
        """The worker has not taken it."""
        if not self.accepted.done():
            self.accepted.set_exception(why)
            self.accepted.exception()  # seen: whoever placed it may have left

    def receive(self, events: Sequence[bytes]) -> None:
        """Events have come.

        Raises:
            Refused: they are more than there was credit for.
        """
        self._credit -= len(events)
        if self._credit < 0:
            raise Refused("invalid", "A worker sent more events than it had credit for.")
        if self._left:
            self._eat(len(events))
            return
        self._events.extend(events)
        self._rouse()

    def end(self, error: Exception | None) -> None:
        """The worker is done with it, or gone."""
        if self._over:  # it was given up before
            return
        self._over, self._error = True, error
        if not self.accepted.done():
            self.accepted.set_exception(error or Refused("internal", "A worker sent no answer."))
            self.accepted.exception()
        self._rouse()

    def _eat(self, count: int) -> None:
        self._eaten += count
        if self._eaten >= CREDIT // 2:
            self._link.grant(self.id, self._eaten)
            self._credit += self._eaten
            self._eaten = 0

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _written(job: Job) -> bytes:
    data = job.dump()
    if len(data) > LARGEST:  # sending it would break the stream, and every turn on it
        raise Refused("too_large", f"The request is over {LARGEST // 1024**2} MB for a worker.")
    return data


_CODES: Final[dict[str, Code]] = {code: code for code in CODES}


def _card(agent: pb.Agent) -> AgentCard:
    try:
        return msgspec.json.decode(agent.card, type=AgentCard)
    except msgspec.MsgspecError as error:
        raise Refused("invalid", f"The card of agent {agent.name!r} is none: {error}.") from error
