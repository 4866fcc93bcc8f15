"""The service that workers attach to: it moves messages between their streams and their links."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from grpc import aio

from retinue.serve.faults import Refused, log
from retinue.serve.grpc.codes import refusing
from retinue.serve.grpc.fleet import Fleet
from retinue.serve.grpc.link import Link
from retinue.serve.grpc.v1 import workers_pb2 as pb

HEARTBEAT: Final = 5.0
"""Seconds between the heartbeats of a worker; three without one, and it is taken for dead."""

Admit = Callable[["aio.ServicerContext[Any, Any]"], None]
"""Lets a worker in by the metadata of its call, or raises Refused."""


class Workers:
    """The service `retinue.v1.Workers`.

    Args:
        fleet: the workers that are attached.
        admit: who may attach.
        heartbeat: seconds between heartbeats.
    """

    def __init__(self, fleet: Fleet, admit: Admit, heartbeat: float = HEARTBEAT) -> None:
        self._fleet = fleet
        self._admit = admit
        self._heartbeat = heartbeat

    async def Attach(
        self,
        request_iterator: AsyncIterator[pb.FromWorker],
        context: "aio.ServicerContext[pb.FromWorker, pb.ToWorker]",
    ) -> None:
        """One worker, as long as it is attached."""
        async with refusing(context, "Attach"):
            self._admit(context)
            link = await self._welcome(request_iterator)
            log.info("Worker %s attached, for %s.", link.name, ", ".join(link.agents))
            hearing = asyncio.create_task(self._hear(link, request_iterator, context))
            try:
                welcome = pb.Welcome(heartbeat_seconds=self._heartbeat)
                await context.write(pb.ToWorker(welcome=welcome))
                while (message := await link.next()) is not None:
                    await context.write(message)
            finally:
                hearing.cancel()
                self._fleet.lose(link)
                log.info("Worker %s is gone.", link.name)
            with contextlib.suppress(asyncio.CancelledError):
                broken = await hearing
                if broken is not None:
                    raise broken

    async def _welcome(self, messages: AsyncIterator[pb.FromWorker]) -> Link:
        try:
            async with asyncio.timeout(3 * self._heartbeat):
                first = await anext(messages)
        except (TimeoutError, StopAsyncIteration):
            raise Refused("invalid", "A worker says hello first.") from None
        if first.WhichOneof("message") != "hello":
            raise Refused("invalid", "A worker says hello first.")
        link = Link(first.hello, self._fleet.freed)
        self._fleet.add(link)
        return link

    async def _hear(
        self,
        link: Link,
        messages: AsyncIterator[pb.FromWorker],
        context: "aio.ServicerContext[pb.FromWorker, pb.ToWorker]",
    ) -> Refused | None:
        """Takes what the worker sends until it is gone; gives why it was thrown out, if it was."""
        try:
            while True:
                async with asyncio.timeout(3 * self._heartbeat):
                    message = await anext(messages)
                link.hear(message)
                if message.WhichOneof("message") == "heartbeat":
                    self._look_again(link, context)
        except (StopAsyncIteration, aio.AioRpcError, aio.UsageError):
            return None
        except TimeoutError:
            return Refused("unavailable", "The worker was silent for too long.")
        except Refused as error:
            return error
        finally:
            self._fleet.lose(link)  # also where a write to it hangs

    def _look_again(
        self, link: Link, context: "aio.ServicerContext[pb.FromWorker, pb.ToWorker]"
    ) -> None:
        """A worker whose token was withdrawn, or is over, ends what it has and gets no more.

        Raises:
            Refused: it has ended that.
        """
        try:
            self._admit(context)
        except Refused as error:
            if not link.running:
                raise
            if not link.leaving:
                log.warning("Worker %s is given no more turns: %s", link.name, error)
                link.retire()
