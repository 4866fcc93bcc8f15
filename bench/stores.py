"""What the operations of the stores take, one store beside the other.

In time and not in CPU time, as most of it is spent in the database and on its disk. PostgreSQL and
Redis are there where RETINUE_POSTGRES and RETINUE_REDIS name a server, as for the tests.
"""

import contextlib
import os
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bench.works import Figures
from retinue.messages import Message, Text, ToolCall, ToolResult, assistant, tool_result, user
from retinue.stores import InMemory, PostgreSQL, Redis, SQLite, Store

STORED: Final = 1_000  # messages in the conversation before the first measurement
POSTGRES: Final = "RETINUE_POSTGRES"
REDIS: Final = "RETINUE_REDIS"
DOCUMENT: Final = b"x" * 4_096

OPERATIONS: Final = {
    "append": "append a turn of 4 messages",
    "tail": "tail of 50",
    "hold": "hold and release a pause",
    "writing": "enter and leave writing",
}


def a_turn() -> list[Message]:
    """A question, a call, its result and an answer."""
    call = ToolCall("call-1", "forecast", '{"city": "Oslo", "days": 5}')
    return [
        user("The forecast for Oslo, five days please."),
        assistant(calls=[call]),
        tool_result(ToolResult("call-1", "forecast", (Text("rain for 5 days"),))),
        assistant("Oslo has rain for the next five days."),
    ]


async def us_each(once: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Mean time of one call, in microseconds, over so many seconds at least, after a warm-up."""
    for _ in range(5):
        await once()
    began, count = time.perf_counter(), 0
    while count < 20 or time.perf_counter() - began < seconds:
        await once()
        count += 1
    return (time.perf_counter() - began) / count * 1e6


async def measured(
    store: Store, seconds: float = 0.5, filled: Callable[[], object] | None = None
) -> Figures:
    """All operations on one conversation, each for so long; `filled` is called before the first."""

    async def append() -> None:
        await store.append("c", a_turn(), turn="t")

    async def tail() -> None:
        assert len(await store.tail("c", limit=50)) == 50

    async def hold() -> None:
        await store.hold("c", "pause", DOCUMENT)
        assert await store.release("c", "pause")

    async def writing() -> None:
        async with store.writing("c"):
            pass

    for _ in range(STORED // 4):
        await append()
    if filled is not None:
        filled()
    works = {"append": append, "tail": tail, "hold": hold, "writing": writing}
    figures = {name: await us_each(work, seconds) for name, work in works.items()}
    await store.close()
    return figures


async def store_in_memory() -> Figures:
    """In this process."""
    return await measured(InMemory())


async def store_sqlite() -> Figures:
    """In a file."""
    with tempfile.TemporaryDirectory() as folder:
        return await measured(SQLite(Path(folder) / "bench.db"))


async def store_postgresql() -> Figures:
    """In a schema of the server that is gone afterwards."""
    async with _schema() as (url, name):
        return await measured(PostgreSQL(url, schema=name), filled=partial(_analyze, url, name))


async def store_redis() -> Figures:
    """Under a prefix of the server that is gone afterwards."""
    async with _prefix() as (url, name):
        return await measured(Redis(url, prefix=name))


def _analyze(url: str, schema: str) -> None:
    """What the server does by itself within a minute. Until then it goes by plans that it made for
    tables as good as empty, and an append takes the longer, the longer the conversation is."""
    import psycopg

    with psycopg.connect(url, autocommit=True, options=f"-c search_path={schema}") as connection:
        connection.execute("ANALYZE retinue_conversations, retinue_entries, retinue_pauses")


@asynccontextmanager
async def _schema() -> AsyncIterator[tuple[str, str]]:
    import psycopg

    url, name = os.environ[POSTGRES], f"bench{uuid.uuid4().hex}"
    try:
        yield url, name
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@asynccontextmanager
async def _prefix() -> AsyncIterator[tuple[str, str]]:
    import redis

    url, name = os.environ[REDIS], f"bench{uuid.uuid4().hex}:"
    try:
        yield url, name
    finally:
        with contextlib.closing(redis.Redis.from_url(url)) as client:
            for key in client.scan_iter(f"{name}*"):
                client.delete(key)


STORES: Final[dict[str, Callable[[], Awaitable[Figures]]]] = {
    each.__name__: each for each in (store_in_memory, store_sqlite, store_postgresql, store_redis)
}
TITLES: Final = dict(zip(STORES, ("in memory", "SQLite", "PostgreSQL", "Redis"), strict=True))


def at_hand() -> list[str]:
    """Those works that can be run here."""
    without = {
        work
        for work, variable in (("store_postgresql", POSTGRES), ("store_redis", REDIS))
        if not os.environ.get(variable)
    }
    return [work for work in STORES if work not in without]


def lines(medians: dict[str, Figures]) -> list[str]:
    """The table: an operation a line, a store a column."""
    there = [work for work in STORES if work in medians]
    head = f"{'Stores, time of a call':<34}" + "".join(f"{TITLES[work]:>14}" for work in there)
    rows = [
        f"{title:<34}" + "".join(f"{f'{medians[work][name]:,.0f} µs':>14}" for work in there)
        for name, title in OPERATIONS.items()
    ]
    return [head, *rows]
