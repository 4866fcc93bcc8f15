"""One `Converse` stream, without a network: who is waited for, and who is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from retinue import Agent
from retinue.models.scripted import Say, Scripted
from retinue.serve.dispatch import InProcess
from retinue.serve.gateway import Gateway
from retinue.serve.grpc.talk import Talk
from retinue.serve.grpc.v1 import agents_pb2 as pb
from retinue.serve.keeping import Keeping
from tests.serve.scenes import Stuck, within


class Stream:
    """A stream on which a client speaks when it likes."""

    def __init__(self, agent: Agent, **options: Any) -> None:
        self.gateway = Gateway(InProcess(agent), **options)
        self.said: asyncio.Queue[pb.ClientMessage | None] = asyncio.Queue()
        caller = self.gateway.admit(None, "turns")
        self.talk = Talk(self.gateway, caller, lambda: caller)
        self.events = self.talk.run(self._heard())

    async def _heard(self) -> AsyncIterator[pb.ClientMessage]:
        while (message := await self.said.get()) is not None:
            yield message

    def say(self, **message: Any) -> None:
        """The client sends a message."""
        self.said.put_nowait(pb.ClientMessage(**message))

    async def next(self) -> pb.Event:
        """The next event."""
        return await within(anext(self.events))


def talkative() -> Agent:
    return Agent(Scripted(lambda request: Say(text=["x"] * 500), repeat=True), name="a")


async def test_a_client_that_leaves_while_events_wait_for_it_ends_the_stream_at_once() -> None:
    stream = Stream(talkative())
    stream.say(start=pb.Start(text="x"))

    async def write() -> None:
        async with aclosing(stream.events) as events:
            async for _ in events:
                await asyncio.Event().wait()  # the client takes nothing more

    writing = asyncio.create_task(write())
    async with asyncio.timeout(10):
        while not stream.talk._events.full():  # noqa: ASYNC110  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)
    writing.cancel()
    await within(asyncio.wait({writing}))
    await within(stream.gateway.drain(10))  # its turn has ended too


async def test_a_turn_that_is_told_twice_waits_for_acknowledgements_once() -> None:
    stream = Stream(talkative())
    for _ in range(2):
        stream.say(start=pb.Start(text="x", request_id="r", window=1))
    ended, acknowledged = 0, 0
    while ended < 2:
        event = await stream.next()
        ended += event.type == "turn_ended"
        acknowledged += 1
        stream.say(ack=pb.Ack(turn=event.turn, seq=event.seq))
    assert acknowledged > 1_000
    await stream.events.aclose()
    await stream.gateway.close()


async def test_a_client_that_acknowledges_nothing_holds_its_turn_no_longer_than_that_may_take() -> (
    None
):
    stream = Stream(talkative(), keeping=Keeping(events=2))
    stream.say(start=pb.Start(text="x", window=1, timeout_seconds=0.2))
    await stream.next()
    assert stream.gateway.load().running == 1
    await within(stream.gateway.drain(60))
    stream.said.put_nowait(None)  # it says no more, so what is left is told
    assert [event.type async for event in stream.events][-2:] == ["resync", "turn_ended"]
    await stream.events.aclose()
    await stream.gateway.close()


async def test_past_its_turns_a_stream_refuses_and_holds_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("retinue.serve.grpc.talk.MOST", 2)
    stuck = Stuck()
    stream = Stream(Agent(Scripted(stuck, repeat=True), name="a"))
    for n in range(50):
        stream.say(start=pb.Start(text="x", request_id=str(n)))
    refused = list[str]()
    while len(refused) < 48:
        event = await stream.next()
        if event.type == "refused":
            refused.append(event.refused.message)
        assert stream.gateway.load().running <= 2
    assert "tells 2 turns at once" in refused[0]
    await stream.events.aclose()
    await stream.gateway.close()


async def test_a_stream_whose_client_breaks_off_ends_when_its_turns_have() -> None:
    stream = Stream(talkative())
    stream.say(start=pb.Start(text="x"))
    stream.said.put_nowait("nonsense")  # pyright: ignore[reportArgumentType]
    events = [event async for event in stream.events]
    assert events[-1].type == "turn_ended"
    await stream.gateway.close()
