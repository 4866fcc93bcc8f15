"""What a worker sends together."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.serve.grpc.outbox import FULL, Outbox
from retinue.serve.grpc.v1 import workers_pb2 as pb
from tests.serve.scenes import within


async def drained(outbox: Outbox) -> list[pb.FromWorker]:
    outbox.close()
    sent: list[pb.FromWorker] = []
    while (message := await within(outbox.next())) is not None:
        sent.append(message)
    return sent


@given(st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=20)), max_size=50))
async def test_each_turn_has_all_its_events_in_order_and_one_end(
    events: list[tuple[str, bytes]],
) -> None:
    outbox = Outbox()
    for dispatch, data in events:
        outbox.add(dispatch, data)
    for dispatch in "abc":
        outbox.end(dispatch)
    batches = [b for message in await drained(outbox) for b in message.events.batches]
    for dispatch in "abc":
        own = [batch for batch in batches if batch.dispatch == dispatch]
        assert [e for batch in own for e in batch.events] == [d for n, d in events if n == dispatch]
        assert [batch.ended for batch in own] == [False] * (len(own) - 1) + [True]


async def test_events_that_have_come_meanwhile_go_in_one_message() -> None:
    outbox = Outbox()
    for dispatch in ("a", "b", "a"):
        outbox.add(dispatch, b"{}")
    (message,) = await drained(outbox)
    assert {b.dispatch: len(b.events) for b in message.events.batches} == {"a": 2, "b": 1}


async def test_a_large_turn_does_not_keep_the_others_waiting() -> None:
    outbox = Outbox()
    for _ in range(3):
        outbox.add("large", b"x" * FULL)
    outbox.add("small", b"{}")
    sent = await drained(outbox)
    order = [batch.dispatch for message in sent for batch in message.events.batches]
    assert order == ["large", "small", "large", "large"]


async def test_an_answer_goes_before_events_and_wakes_who_waits() -> None:
    outbox = Outbox()
    waiting = asyncio.create_task(outbox.next())
    outbox.add("a", b"{}")
    outbox.answer(pb.FromWorker(leaving=pb.Leaving()))
    first = await within(waiting)
    assert first is not None
    assert first.WhichOneof("message") == "leaving"


@pytest.mark.parametrize("events", [0, 1])
async def test_the_end_of_a_turn_comes_also_where_no_event_waits(events: int) -> None:
    outbox = Outbox()
    for _ in range(events):
        outbox.add("a", b"{}")
    if events:
        await outbox.next()
    outbox.end("a")
    (message,) = await drained(outbox)
    assert message.events.batches[0].ended
