"""A gateway with workers, over loopback; links without a network."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from grpc import aio

from retinue import Agent, user
from retinue.chains.events import Event, TextChunk
from retinue.serve import wire
from retinue.serve.cards import AgentCard
from retinue.serve.gateway import Gateway
from retinue.serve.grpc import Grpc, GrpcServer, Worker
from retinue.serve.grpc.fleet import Fleet
from retinue.serve.grpc.link import PROTOCOL, Link
from retinue.serve.grpc.v1 import agents_pb2
from retinue.serve.grpc.v1 import workers_pb2 as pb
from retinue.serve.grpc.v1.agents_pb2_grpc import AgentsStub
from retinue.serve.jobs import Job
from tests.serve.scenes import within


def job(agent: str = "a", text: str = "Hello", **options: Any) -> Job:
    """A job for an agent."""
    return Job(agent=agent, messages=(user(text),), **options)


def by_name(workers: Sequence[Any], asked: Job) -> Any:
    """The first by its name."""
    return min(workers, key=lambda one: one.name)


def hello(name: str = "w", *, agents: tuple[str, ...] = ("a",), **fields: Any) -> pb.Hello:
    """How a worker introduces itself."""
    cards = [
        pb.Agent(name=one, card=msgspec.json.encode(AgentCard(name=one, model="m:m")))
        for one in agents
    ]
    given: dict[str, Any] = {"protocol": PROTOCOL, "capacity": 1, "instance": name, **fields}
    return pb.Hello(name=name, agents=cards, **given)


def attached(fleet: Fleet, name: str = "w", **fields: Any) -> Link:
    """A worker that has attached, without a stream."""
    link = Link(hello(name, **fields), fleet.freed)
    fleet.add(link)
    return link


async def told(link: Link, kind: str) -> Any:
    """The next message for the worker, which must be of this kind."""
    message = await within(link.next())
    assert message.WhichOneof("message") == kind
    return getattr(message, kind)


def accept(link: Link, dispatch: str, turn: str = "t") -> None:
    """The worker takes a dispatch."""
    link.hear(pb.FromWorker(accepted=pb.Accepted(dispatch=dispatch, turn=turn)))


def send(link: Link, dispatch: str, *events: Event, ended: bool = False) -> None:
    """The worker sends events."""
    batch = pb.Batch(dispatch=dispatch, events=[wire.encode(one) for one in events], ended=ended)
    link.hear(pb.FromWorker(events=pb.Events(batches=[batch])))


def chunk(seq: int, text: str = "x") -> TextChunk:
    """A piece of text."""
    return TextChunk(seq, 1, 1, (), text)


class Stage:
    """A gateway that listens, and what has attached to it."""

    def __init__(self, dispatcher: Grpc, gateway: Gateway, server: GrpcServer) -> None:
        self.dispatcher = dispatcher
        self.gateway = gateway
        self.server = server
        self.stub: Any = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.server.port}"

    @asynccontextmanager
    async def worker(self, *agents: Agent, **options: Any) -> AsyncIterator[Worker]:
        """A worker of this process, attached until the end of the block."""
        worker = Worker({one.name: one for one in agents}, self.address, **options)
        running = asyncio.create_task(worker.run())
        try:
            await within(worker.attached.wait())
            yield worker
        finally:
            await within(worker.close())
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def until_gone(self) -> None:
        """Waits until there is no worker."""
        changed = asyncio.Event()
        self.dispatcher.fleet.watch(changed.set)
        while self.dispatcher.load().workers:
            changed.clear()
            await changed.wait()

    async def run(self, text: str = "Hello", **fields: Any) -> list[agents_pb2.Event]:
        """The events of a turn, by `Run`."""
        call = self.stub.Run(agents_pb2.Start(text=text, **fields))
        return await within(_all(call))

    async def run_detached(self, conversation: str) -> None:
        """Starts a turn that goes on by itself, and leaves."""
        start = agents_pb2.Start(text="Hello", conversation=conversation, detached=True)
        call = self.stub.Run(start)
        await within(anext(aiter(call)))
        call.cancel()


async def _all(call: Any) -> list[agents_pb2.Event]:
    return [event async for event in call]


def text_of(events: list[agents_pb2.Event]) -> str:
    """What was said in a turn, that ended well."""
    end: Any = msgspec.json.decode(events[-1].json)
    assert end["type"] == "turn_ended"
    assert end["status"] == "completed", end
    return end["text"]


def event_of(event: agents_pb2.Event) -> Any:
    """The event as its class."""
    return wire.decode(event.json)


@asynccontextmanager
async def stage(*, gateway: Any = None, **options: Any) -> AsyncIterator[Stage]:
    """A gateway that listens on loopback.

    Args:
        gateway: further arguments of the gateway.
        options: those of the dispatcher; `heartbeat` is the server's.
    """
    beat = {"heartbeat": options.pop("heartbeat")} if "heartbeat" in options else {}
    dispatcher = Grpc(**options)
    door = Gateway(dispatcher, **(gateway or {}))
    server = GrpcServer(door, fleet=dispatcher.fleet, **beat)
    await server.start()
    one = Stage(dispatcher, door, server)
    try:
        async with aio.insecure_channel(one.address) as channel:
            one.stub = AgentsStub(channel)
            yield one
    finally:
        await within(door.close())
        await within(server.stop())


class Client:
    """One `Converse` stream."""

    def __init__(self, stub: Any) -> None:
        self.call = stub.Converse()
        self._events = aiter(self.call)

    async def say(self, **message: Any) -> None:
        """Sends a message."""
        await self.call.write(agents_pb2.ClientMessage(**message))

    async def next(self) -> agents_pb2.Event:
        """The next event."""
        return await within(anext(self._events))

    async def until(self, kind: str, request_id: str = "") -> list[agents_pb2.Event]:
        """The events up to one of this kind."""
        seen: list[agents_pb2.Event] = []
        while (
            not seen or seen[-1].type != kind or (request_id and seen[-1].request_id != request_id)
        ):
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[agents_pb2.Event]:
        """What comes when the client says no more."""
        await self.call.done_writing()
        return [event async for event in self._events]


@asynccontextmanager
async def talking(one: Stage) -> AsyncIterator[Client]:
    """A `Converse` stream, until the end of the block."""
    client = Client(one.stub)
    yield client
    client.call.cancel()
