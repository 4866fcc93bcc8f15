"""One `Converse` stream: many turns at once, each told by a task of its own."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import chain
from typing import Final

from retinue.serve.access import Caller
from retinue.serve.faults import Refused, fault_of, record
from retinue.serve.gateway import Gateway
from retinue.serve.grpc.asking import answering, started
from retinue.serve.grpc.codes import number_of
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.keeping import Reader
from retinue.serve.wire import Place, Sent, encode

MOST: Final = 1_000
"""Turns that one stream may be told of at once."""

_WAITING: Final = 16  # events of all turns that wait for the transport
_CANCELLED: Final = "The client cancelled the turn."


class _Window:
    """Events of one turn that a client has not acknowledged; a size of 0 is no bound."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._acked = 0
        self._sent: deque[int] = deque()
        self._moved = asyncio.Event()

    async def room(self, seq: int) -> None:
        """Waits until an event may go, and counts it."""
        while self._size and len(self._sent) >= self._size:
            self._moved.clear()
            await self._moved.wait()
        if self._size and seq > self._acked:
            self._sent.append(seq)

    def open(self) -> None:
        """No more acknowledgements will come, so nothing waits for them."""
        self._size = 0
        self._moved.set()

    def ack(self, seq: int) -> None:
        """The client has dealt with the events up to this one."""
        self._acked = max(self._acked, seq)
        while self._sent and self._sent[0] <= seq:
            self._sent.popleft()
        self._moved.set()


class Talk:
    """One stream.

    Args:
        gateway: who runs the turns.
        caller: whose stream it is.
        admit: lets the client in again, for each turn: its rate is counted, and its key may have
            been withdrawn.
    """

    def __init__(self, gateway: Gateway, caller: Caller, admit: Callable[[], Caller]) -> None:
        self._gateway = gateway
        self._caller = caller
        self._admit = admit
        self._events: asyncio.Queue[pb.Event | None] = asyncio.Queue(_WAITING)
        self._telling: set[asyncio.Task[None]] = set()
        self._windows: dict[str, set[_Window]] = {}  # by turn, which may be told more than once
        self._deaf = False

    async def run(self, messages: AsyncIterator[pb.ClientMessage]) -> AsyncGenerator[pb.Event]:
        """Serves the stream until the client has closed its side and its turns have ended, or it
        has left."""
        hearing = asyncio.create_task(self._hear(messages))
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            tasks = {hearing, *self._telling}
            for task in tasks:
                task.cancel()  # their readers leave, which ends attended turns
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hear(self, messages: AsyncIterator[pb.ClientMessage]) -> None:
        try:
            async for message in messages:
                await self._take(message)
        except Exception as error:
            record(error, "Converse")
        self._deaf = True
        for window in chain.from_iterable(self._windows.values()):
            window.open()
        while self._telling:
            await asyncio.wait(self._telling)
        await self._events.put(None)

    async def _take(self, message: pb.ClientMessage) -> None:
        match message.WhichOneof("message"):
            case "start":
                start = message.start
                await self._tell(start.request_id, start.window, lambda: self._start(start))
            case "answer":
                answer = message.answer
                await self._tell(answer.request_id, answer.window, lambda: self._answer(answer))
            case "follow":
                follow = message.follow
                await self._tell(follow.request_id, follow.window, lambda: self._follow(follow))
            case "cancel":
                await self._cancel(message.cancel.turn)
            case "ack":
                self._ack(message.ack)
            case _:
                error = Refused("invalid", "This message says nothing that is known here.")
                await self._refuse(error)

    async def _tell(
        self, request_id: str, window: int, read: Callable[[], Awaitable[Reader]]
    ) -> None:
        if len(self._telling) >= MOST:
            error = Refused("too_many", f"One stream tells {MOST} turns at once; open another.")
            await self._refuse(error, request_id)
            return
        task = asyncio.create_task(self._told(request_id, window, read))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _told(
        self, request_id: str, size: int, read: Callable[[], Awaitable[Reader]]
    ) -> None:
        """Tells one turn from where its reader begins, or why it is not told any further."""
        turn = ""
        try:
            async with await read() as reader:
                turn, stream = reader.turn.turn, reader.turn.stream
                with self._window(turn, size) as window:
                    while batch := await reader.next():
                        for event in batch:
                            await window.room(event.seq)
                            await self._events.put(shown(event, turn, stream, request_id))
        except Exception as error:
            record(error, "Converse")
            await self._refuse(error, request_id, turn)

    @contextmanager
    def _window(self, turn: str, size: int) -> Generator[_Window]:
        window = _Window(0 if self._deaf else size)
        beside = self._windows.setdefault(turn, set())
        beside.add(window)
        try:
            yield window
        finally:
            beside.discard(window)
            if not beside:
                del self._windows[turn]

    async def _start(self, start: pb.Start) -> Reader:
        caller = self._admit()
        return await self._gateway.start(caller, started(self._gateway, start))

    async def _answer(self, answer: pb.Answer) -> Reader:
        caller = self._admit()
        return await self._gateway.start(caller, answering(self._gateway, answer))

    async def _follow(self, follow: pb.Follow) -> Reader:
        place = Place(follow.stream, follow.after)
        turn = self._gateway.find(self._admit(), follow.turn, place.stream)
        return turn.reader(turn.behind(place))

    async def _cancel(self, turn: str) -> None:
        try:
            self._gateway.find(self._caller, turn).cancel(_CANCELLED)
        except Refused as error:
            await self._refuse(error, turn=turn)

    def _ack(self, ack: pb.Ack) -> None:
        for window in self._windows.get(ack.turn, ()):  # none: its last events have been sent
            window.ack(ack.seq)

    async def _refuse(self, error: Exception, request_id: str = "", turn: str = "") -> None:
        fault = fault_of(error)
        refused = pb.Refused(
            code=number_of(fault),
            message=fault.message,
            retry_after_seconds=fault.retry_after or 0.0,
        )
        await self._events.put(
            pb.Event(request_id=request_id, turn=turn, type="refused", refused=refused)
        )


def shown(event: Sent, turn: str, stream: str, request_id: str) -> pb.Event:
    """An event as it is sent."""
    return pb.Event(
        request_id=request_id,
        turn=turn,
        stream=stream,
        seq=event.seq,
        type=str(type(event).__struct_config__.tag),
        json=encode(event).decode(),
    )
