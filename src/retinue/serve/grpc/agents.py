"""The service that clients speak with: the gateway as gRPC shows it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import msgspec
from grpc import aio

from retinue.serve.access import Caller
from retinue.serve.bounds import STALLED
from retinue.serve.faults import Refused
from retinue.serve.gateway import Gateway
from retinue.serve.grpc.asking import started
from retinue.serve.grpc.codes import refusing
from retinue.serve.grpc.talk import Talk, shown
from retinue.serve.grpc.v1 import agents_pb2 as pb


class Agents:
    """The service `retinue.v1.Agents`.

    Its methods write their events themselves. A generator in their place would not be told at once
    that its client has left.

    Args:
        gateway: who runs the turns.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def Run(
        self, request: pb.Start, context: "aio.ServicerContext[pb.Start, pb.Event]"
    ) -> None:
        """One turn, from its first event to its last."""
        async with refusing(context, "Run"):
            caller = self._admit(context)
            job = started(self._gateway, request, remaining=_remaining(context))
            async with await self._gateway.start(caller, job) as reader:
                turn, stream = reader.turn.turn, reader.turn.stream
                while batch := await reader.next():
                    for event in batch:
                        await _write(context, shown(event, turn, stream, request.request_id))

    async def Converse(
        self,
        request_iterator: AsyncIterator[pb.ClientMessage],
        context: "aio.ServicerContext[pb.ClientMessage, pb.Event]",
    ) -> None:
        """Any number of turns."""
        async with refusing(context, "Converse"):
            talk = Talk(self._gateway, self._admit(context), lambda: self._admit(context))
            async with aclosing(talk.run(request_iterator)) as events:
                async for event in events:
                    await _write(context, event)

    async def ListAgents(
        self,
        request: pb.ListAgentsRequest,
        context: "aio.ServicerContext[pb.ListAgentsRequest, pb.ListAgentsResponse]",
    ) -> pb.ListAgentsResponse:
        """What each agent declares of itself."""
        async with refusing(context, "ListAgents"):
            self._admit(context)
        return pb.ListAgentsResponse(
            agents=[
                pb.AgentInfo(name=name, card_json=msgspec.json.encode(card).decode())
                for name, card in self._gateway.agents().items()
            ]
        )

    def _admit(self, context: "aio.ServicerContext[Any, Any]") -> Caller:
        return self._gateway.admit(credential_of(context), "turns")


async def _write(context: "aio.ServicerContext[Any, pb.Event]", event: pb.Event) -> None:
    try:
        async with asyncio.timeout(STALLED):
            await context.write(event)
    except TimeoutError:
        said = f"The client took no event for {STALLED:g} seconds, and is given up."
        raise Refused("too_slow", said) from None


def _remaining(context: "aio.ServicerContext[Any, Any]") -> float | None:
    """Seconds until the client's deadline, or None."""
    left = cast("float | None", context.time_remaining())  # its annotation leaves None out
    return None if left is None else max(0.001, left)


def credential_of(context: "aio.ServicerContext[Any, Any]") -> str | None:
    """The key or token of a call, or None."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization" and isinstance(value, str):
            scheme, _, credential = value.partition(" ")
            return credential.strip() if scheme.lower() == "bearer" else ""
    return None
