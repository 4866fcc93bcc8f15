"""What a worker has to send: answers at once, events as many together as have come meanwhile.

A message for each event would spend more on gRPC than on the turn. While one message is being
written the next one fills, so a slow stream makes larger messages and a quiet one waits for none.
"""

import asyncio
from collections import deque
from typing import Final

from retinue.serve.grpc.v1 import workers_pb2 as pb

LARGEST: Final = 16 * 1024 * 1024
"""Bytes that one event, or one job, may have."""

FULL: Final = 1024 * 1024
"""Bytes after which a message takes no further event."""


class Outbox:
    """Messages of one worker, in the order in which they must go."""

    def __init__(self) -> None:
        self._answers: deque[pb.FromWorker] = deque()
        self._batches: dict[str, deque[bytes]] = {}
        self._ended: set[str] = set()
        self._wake = asyncio.Event()
        self._closed = False

    def answer(self, message: pb.FromWorker) -> None:
        """A message that goes before all events."""
        self._answers.append(message)
        self._wake.set()

    def add(self, dispatch: str, event: bytes) -> None:
        """An event of a turn."""
        batch = self._batches.get(dispatch)
        if batch is None:
            batch = self._batches[dispatch] = deque()
        batch.append(event)
        self._wake.set()

    def end(self, dispatch: str) -> None:
        """No more events of it will come."""
        self._batches.setdefault(dispatch, deque())
        self._ended.add(dispatch)
        self._wake.set()

    def close(self) -> None:
        """When what is here has been sent, there is no more."""
        self._closed = True
        self._wake.set()

    async def next(self) -> pb.FromWorker | None:
        """The next message, when there is something to send; None after the last."""
        while not (self._answers or self._batches):
            if self._closed:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._answers.popleft() if self._answers else self._gathered()

    def _gathered(self) -> pb.FromWorker:
        message = pb.FromWorker()
        room = FULL
        for dispatch in [*self._batches]:
            waiting = self._batches.pop(dispatch)
            batch = message.events.batches.add(dispatch=dispatch)
            while waiting and room > 0:
                event = waiting.popleft()
                room -= len(event)
                batch.events.append(event)
            if waiting:
                self._batches[dispatch] = waiting  # behind the others, so that each has its turn
            elif dispatch in self._ended:
                self._ended.discard(dispatch)
                batch.ended = True
            if room <= 0:
                break
        return message
