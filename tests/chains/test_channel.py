"""The buffer between a turn and its reader: bounded, numbered, and let go by either side."""

import asyncio

import pytest

from retinue.chains.channel import LIMIT, Channel
from retinue.chains.events import Event, TextChunk

BOUND = 5.0


def chunk(channel: Channel) -> TextChunk:
    return TextChunk(channel.seq + 1, 1, 1, (), "x")


async def read(channel: Channel) -> list[Event]:
    events: list[Event] = []
    while (event := await channel.get()) is not None:
        events.append(event)
    return events


async def filled(limit: int = 4) -> Channel:
    channel = Channel(limit)
    while not channel.full:
        channel.put(chunk(channel))
    return channel


async def test_events_come_out_in_the_order_they_went_in() -> None:
    channel = Channel()
    for _ in range(3):
        channel.put(chunk(channel))
    channel.close()
    assert [event.seq for event in await read(channel)] == [1, 2, 3]


async def test_a_reader_that_waits_is_woken_by_the_next_event_and_by_the_end() -> None:
    channel = Channel()
    async with asyncio.timeout(BOUND):
        reader = asyncio.create_task(read(channel))
        await asyncio.sleep(0)
        channel.put(chunk(channel))
        await asyncio.sleep(0)
        channel.close()
        assert len(await reader) == 1


@pytest.mark.rule("R-STREAM-6")
async def test_a_full_buffer_makes_the_producer_wait_until_the_reader_has_caught_up() -> None:
    channel = await filled()
    producer = asyncio.create_task(channel.drain())
    await asyncio.sleep(0)
    assert not producer.done()
    for _ in range(4):
        await channel.get()
    more = asyncio.create_task(channel.get())
    async with asyncio.timeout(BOUND):
        await producer
    assert not channel.full
    channel.close()
    assert await more is None


@pytest.mark.rule("R-STREAM-6")
async def test_a_producer_that_finds_room_does_not_wait() -> None:
    async with asyncio.timeout(BOUND):
        await Channel().drain()


@pytest.mark.rule("R-STREAM-6")
async def test_a_reader_that_leaves_lets_all_producers_go_on() -> None:
    channel = await filled()
    producers = [asyncio.create_task(channel.drain()) for _ in range(3)]
    await asyncio.sleep(0)
    channel.abandon()
    async with asyncio.timeout(BOUND):
        await asyncio.gather(*producers)
        for _ in range(2 * LIMIT):
            channel.put(chunk(channel))
            await channel.drain()
    channel.close()
    assert await read(channel) == []


async def test_numbers_go_on_where_nobody_reads() -> None:
    channel = Channel()
    channel.abandon()
    for _ in range(3):
        channel.put(chunk(channel))
    assert channel.seq == 3


@pytest.mark.rule("R-STREAM-1")
async def test_what_comes_after_the_end_is_not_delivered() -> None:
    channel = Channel()
    channel.put(chunk(channel))
    channel.close()
    channel.put(chunk(channel))
    assert [event.seq for event in await read(channel)] == [1]


@pytest.mark.rule("R-STREAM-6")
async def test_the_end_lets_producers_go_that_still_wait() -> None:
    channel = await filled()
    producer = asyncio.create_task(channel.drain())
    await asyncio.sleep(0)
    channel.close()
    async with asyncio.timeout(BOUND):
        await producer
    assert len(await read(channel)) == 4


async def test_a_producer_that_is_cancelled_while_it_waits_leaves_the_channel_in_order() -> None:
    channel = await filled()
    producer = asyncio.create_task(channel.drain())
    await asyncio.sleep(0)
    producer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await producer
    channel.close()
    assert len(await read(channel)) == 4


async def test_a_reader_that_is_cancelled_while_it_waits_may_be_followed_by_another() -> None:
    channel = Channel()
    reader = asyncio.create_task(read(channel))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    channel.put(chunk(channel))
    channel.close()
    assert len(await read(channel)) == 1
