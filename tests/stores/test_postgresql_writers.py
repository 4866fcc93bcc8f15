"""One writer per conversation of a PostgreSQL database: over objects, processes and connections."""

import asyncio
import multiprocessing
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import psycopg
import pytest

from retinue.errors import StoreError
from retinue.messages import user
from retinue.stores import PostgreSQL
from retinue.stores.sql.postgresql.locks import SessionLocks
from retinue.testing.writing import Writer, soon
from tests.stores import sessions
from tests.stores.conftest import Admin
from tests.stores.proxy import proxy
from tests.stores.shared import HOLD, Place, SharedStore, free
from tests.stores.test_writers import is_busy

pytestmark = [pytest.mark.rule("R-MEM-6", "R-MEM-7"), pytest.mark.behaviour("B-ME-7")]


@pytest.fixture
def place(server: str, schema: str) -> Place:
    script = "from retinue.stores import PostgreSQL; store = PostgreSQL(path, schema=sys.argv[2])"
    return Place(server, schema, partial(PostgreSQL, schema=schema), script)


class TestPostgreSQL(SharedStore):
    """What all such stores do."""


async def test_a_killed_process_holds_no_longer(place: Place, store: PostgreSQL) -> None:
    with place.children(HOLD, "") as (other,):
        assert await is_busy(store)
        other.kill()
        async with asyncio.timeout(5), store.writing("c"):
            pass


async def test_a_waiter_for_another_process_can_be_cancelled(
    place: Place, store: PostgreSQL
) -> None:
    with place.children(HOLD, ""):
        waiting = Writer(store, "here", [])
        assert await is_busy(store, "c")
        waiting.task.cancel()
        await asyncio.wait([waiting.task])
        assert waiting.task.cancelled()
    await soon(free(store))


async def test_a_turn_that_fails_leaves_the_conversation_to_other_processes(
    server: str, schema: str, store: PostgreSQL
) -> None:
    other = PostgreSQL(server, schema=schema)
    with pytest.raises(ZeroDivisionError):
        async with store.writing("c"):
            raise ZeroDivisionError
    await soon(free(other))
    await other.close()


async def test_two_names_of_one_server_keep_writers_apart(
    server: str, schema: str, store: PostgreSQL
) -> None:
    other = PostgreSQL(server.replace("127.0.0.1", "localhost"), schema=schema)
    async with store.writing("c"):
        assert await is_busy(other)
        waiting = Writer(other, "there", [])
        assert await is_busy(other)
    await waiting.finish()
    await other.close()


async def test_two_users_who_find_the_tables_by_different_paths_are_kept_apart(
    server: str, schema: str, admin: Admin
) -> None:
    for name in (schema, f"{schema}_of_ann"):
        admin.execute(f"CREATE SCHEMA {name}".encode())
    path = f"{server}?options=-csearch_path%3D"
    bob = PostgreSQL(path + schema)
    ann = PostgreSQL(f"{path}{schema}_of_ann,{schema}".replace("127.0.0.1", "localhost"))
    try:
        await bob.append("c", [user("hi")], turn="t")
        assert len(await ann.tail("c")) == 1
        async with bob.writing("c"):
            assert await is_busy(ann)
    finally:
        await bob.close()
        await ann.close()
        admin.execute(f"DROP SCHEMA {schema}_of_ann CASCADE".encode())


async def test_those_who_wait_keep_no_connection_and_no_call_waiting(
    server: str, schema: str, place: Place, admin: Admin
) -> None:
    store = PostgreSQL(f"{server}?application_name={schema}", schema=schema, pool=1)
    with place.children(HOLD, ""):
        waiting = [Writer(store, str(n), []) for n in range(20)]
        async with store.writing("another"):
            await soon(store.append("another", [user("hi")], turn="t"))
        assert sessions.count(admin, schema) == 2
    for writer in waiting:
        await writer.finish()
    await store.close()


async def test_closing_the_store_leaves_a_conversation_held(
    server: str, schema: str, admin: Admin
) -> None:
    store = PostgreSQL(f"{server}?application_name={schema}", schema=schema)
    other = PostgreSQL(server.replace("127.0.0.1", "localhost"), schema=schema)
    async with store.writing("c"):
        await store.close()
        assert await is_busy(other)
    await sessions.until(lambda: sessions.count(admin, schema) == 0)
    assert not await is_busy(other)
    await other.close()


async def test_a_holder_whose_connection_is_lost_is_told_and_holds_no_longer(
    server: str, schema: str, store: PostgreSQL
) -> None:
    async def write(there: PostgreSQL, cut: Callable[[], None]) -> None:
        async with there.writing("c"):
            await there.append("c", [user("hi")], turn="t")
            cut()
            async with asyncio.timeout(5), store.writing("c"):
                pass
            await there.append("c", [user("more")], turn="t")

    async with proxy(server) as between:
        there = PostgreSQL(between.url, schema=schema)
        with pytest.raises(StoreError, match="kept other turns from writing conversation 'c' was"):
            await write(there, between.cut)
        async with there.writing("c"):
            assert await is_busy(store)
            assert len(await there.tail("c")) == 2
        await there.close()


async def test_a_lock_that_went_while_its_connection_stayed_is_told_too(
    server: str, schema: str
) -> None:
    # As behind a pooler that gives every statement another session.
    opened: list[psycopg.Connection[Any]] = []

    def connect() -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(server, autocommit=True))
        return opened[0]

    locks = SessionLocks(connect, lambda _: None, StoreError, schema)
    assert await locks.take("c")
    opened[0].execute("SELECT pg_advisory_unlock_all()")
    with pytest.raises(StoreError):
        await locks.free("c")
    await locks.close()
    assert opened[0].closed


async def test_a_server_that_ends_idle_sessions_ends_none_that_holds_a_conversation(
    server: str, schema: str, store: PostgreSQL
) -> None:
    there = PostgreSQL(f"{server}?options=-cidle_session_timeout%3D100", schema=schema)
    async with there.writing("c"):
        await asyncio.sleep(0.4)
        assert await is_busy(store)
    await there.close()


async def test_an_error_in_the_turn_comes_before_a_lost_connection(
    server: str, schema: str
) -> None:
    async def write(there: PostgreSQL, cut: Callable[[], None]) -> None:
        async with there.writing("c"):
            cut()
            raise ZeroDivisionError

    async with proxy(server) as between:
        there = PostgreSQL(between.url, schema=schema)
        with pytest.raises(ZeroDivisionError):
            await write(there, between.cut)
        await there.close()


async def test_a_server_that_cannot_be_asked_lets_nobody_write() -> None:
    store = PostgreSQL("postgresql://ann@127.0.0.1:1/chats")
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be reached"):
            async with store.writing("c"):
                raise AssertionError("it was let in")
    await store.close()


def in_the_child(store: PostgreSQL, parent: Connection) -> None:
    async def work() -> None:
        parent.send(await is_busy(store, "parent's"))
        async with store.writing("c", wait=False):
            await store.append("c", [user("from the child")], turn="t")
        await store.close()
        parent.send("stored")

    asyncio.run(work())


def test_a_forked_child_uses_the_store_as_its_own(server: str, schema: str) -> None:
    store = PostgreSQL(server, schema=schema)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=in_the_child, args=(store, there))

    def heard() -> object:
        assert here.poll(60)
        return here.recv()

    async def run() -> list[str]:
        await store.append("c", [user("before the fork")], turn="t")
        async with store.writing("parent's"):
            process.start()
            # The child does not know that the conversation is held in its own process.
            assert await asyncio.to_thread(heard) is True
            assert await asyncio.to_thread(heard) == "stored"
            await asyncio.to_thread(process.join, 60)
            assert process.exitcode == 0
            other = PostgreSQL(server.replace("127.0.0.1", "localhost"), schema=schema)
            assert await is_busy(other, "parent's")
            await other.close()
        await store.append("c", [user("after the fork")], turn="t")
        return [entry.message.text for entry in await store.tail("c")]

    try:
        assert asyncio.run(run()) == ["before the fork", "from the child", "after the fork"]
    finally:
        asyncio.run(store.close())
        process.kill()
        process.join()
