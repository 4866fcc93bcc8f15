"""The PostgreSQL store does what the contract says, on a real server, and what it costs there."""

import asyncio
import json
import sys
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from retinue.errors import MissingExtraError, StoreError
from retinue.messages import assistant, user
from retinue.stores import InMemory, PostgreSQL
from retinue.testing.stores import StoreContract
from tests.stores import sessions
from tests.stores.children import child
from tests.stores.conftest import Admin
from tests.stores.shared import texts
from tests.stores.test_agreement import Step, anything, append, looks, outcome

held = [
    pytest.mark.rule("R-MEM-1", "R-MEM-6", "R-MEM-7", "R-MEM-9"),
    pytest.mark.behaviour("B-ME-3", "B-ME-7", "B-ME-8", "B-ME-9", "B-ME-10"),
]


class TestPostgreSQL(StoreContract):
    pytestmark = held

    @pytest.fixture
    def store(self, store: PostgreSQL) -> PostgreSQL:
        return store


@pytest.mark.rule("R-MEM-1", "R-MEM-7", "R-MEM-9")
def test_any_series_of_calls_has_the_same_outcome_as_in_memory(
    server: str, schema: str, admin: Admin
) -> None:
    store = PostgreSQL(server, schema=schema)

    async def run(calls: list[Step]) -> None:
        memory = InMemory()
        for call in [*calls, *looks]:
            assert await outcome(memory, call) == await outcome(store, call)

    @settings(max_examples=60)
    @given(st.lists(append | anything, max_size=25))
    def agree(calls: list[Step]) -> None:
        admin.execute(f"TRUNCATE {schema}.retinue_conversations CASCADE".encode())
        asyncio.run(run(calls))

    asyncio.run(store.known("c", ["m"]))  # makes the tables
    try:
        agree()
    finally:
        asyncio.run(store.close())


async def test_ids_that_differ_only_where_escapes_could_meet_stay_apart(store: PostgreSQL) -> None:
    names = ["\x00", "\\000", "\\\\000", "\\", "\\\\", "a\x00000", "a\\", "\\\x00", "\\x00"]
    for name in names:
        await store.append(name, [user(name).with_(id=name)], turn=name, owner=name)
    for name in names:
        assert await store.known(name, names, owner=name) == {name}
        (summary,) = await store.conversations(owner=name)
        assert (summary.id, summary.owner, summary.title) == (name, name, name)


async def test_ids_that_do_not_compress_are_found(store: PostgreSQL) -> None:
    # An index row has room for 2,704 bytes, and repetitions shrink.
    name = "".join(chr(0x10000 + (n * 7_919) % 60_000) for n in range(1_000))
    message = user("hi").with_(id=name)
    await store.append(name, [message], turn=name, owner=name)
    assert await store.known(name, [name], owner=name) == {name}
    assert [s.id for s in await store.conversations(owner=name)] == [name]


async def test_a_thousand_appends_of_fifty_tasks_are_all_kept(store: PostgreSQL) -> None:
    async def write(name: str) -> None:
        for n in range(20):
            await store.append("c", [user(f"{n}?"), assistant(f"{n}!")], turn=name)

    await asyncio.gather(*(write(str(n)) for n in range(50)))
    log = [(entry.turn, entry.message.text) for entry in await store.tail("c")]
    assert len(log) == 2_000
    for name in map(str, range(50)):
        said = [text for turn, text in log if turn == name]
        assert said == [text for n in range(20) for text in (f"{n}?", f"{n}!")]
    assert all(turn == log[n + 1][0] for n, (turn, _) in enumerate(log) if n % 2 == 0)


async def test_calls_run_side_by_side_on_no_more_connections_than_the_pool_has(
    server: str, schema: str, admin: Admin
) -> None:
    store = PostgreSQL(f"{server}?application_name={schema}", schema=schema, pool=3)
    await asyncio.gather(*(store.append(str(n), [user("hi")], turn="t") for n in range(30)))
    assert sessions.count(admin, schema) == 3
    await store.close()
    await sessions.until(lambda: sessions.count(admin, schema) == 0)


async def test_closing_finishes_what_was_asked_for_and_leaves_no_connection(
    server: str, schema: str, admin: Admin
) -> None:
    store = PostgreSQL(f"{server}?application_name={schema}", schema=schema)
    work = [asyncio.create_task(store.append("c", [user(str(n))], turn="t")) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*work)
    await sessions.until(lambda: sessions.count(admin, schema) == 0)
    assert len(await store.tail("c")) == 50
    await store.close()


async def test_one_slow_call_does_not_keep_the_others_waiting(
    store: PostgreSQL, schema: str, server: str
) -> None:
    await store.append("slow", [user("hi")], turn="t")
    with psycopg.connect(server) as other:
        other.execute(f"SELECT * FROM {schema}.retinue_conversations FOR UPDATE".encode())
        slow = asyncio.create_task(store.append("slow", [user("more")], turn="t"))
        await store.append("quick", [user("hi")], turn="t")
        assert await texts(store, "quick") == ["hi"]
        assert not slow.done()
        other.rollback()
    await slow
    assert await texts(store, "slow") == ["hi", "more"]


@pytest.mark.rule("R-MEM-7")
async def test_a_script_that_ends_without_closing_leaves_what_it_stored(
    server: str, schema: str, store: PostgreSQL
) -> None:
    script = """
from retinue.stores import PostgreSQL
async def main():
    store = PostgreSQL(path, schema=sys.argv[2])
    async with store.writing("c"):
        await store.append("c", [user("hi")], turn="t")
asyncio.run(main())
print("alembic" in sys.modules)
"""
    with child(script, server, schema) as other:
        assert other.rest() == "False"
    assert await texts(store) == ["hi"]


async def test_two_schemas_of_a_database_are_two_stores(
    server: str, schema: str, store: PostgreSQL, admin: Admin
) -> None:
    other = PostgreSQL(server, schema=f"{schema} \"'%s")
    try:
        await store.append("c", [user("one")], turn="t")
        await other.append("c", [user("two")], turn="t")
        assert (await texts(store), await texts(other)) == (["one"], ["two"])
        async with store.writing("c"), other.writing("c", wait=False):
            pass
    finally:
        await other.close()
        admin.execute(f'DROP SCHEMA "{schema} ""\'%s" CASCADE'.encode())


async def test_without_a_schema_the_tables_are_where_the_user_looks_first(
    server: str, schema: str, admin: Admin
) -> None:
    admin.execute(f"CREATE SCHEMA {schema}".encode())
    named = PostgreSQL(server, schema=schema)
    found = PostgreSQL(f"{server}?options=-csearch_path%3D{schema}")
    try:
        await named.append("c", [user("hi")], turn="t")
        assert await texts(found) == ["hi"]
        async with named.writing("c"):
            with pytest.raises(StoreError, match="Another turn is writing"):
                async with found.writing("c", wait=False):
                    pass
    finally:
        await named.close()
        await found.close()


Plan = dict[str, Any]


def explained(admin: Admin, schema: str, asked: list[tuple[str, Any]]) -> list[Plan]:
    """How the server runs the statements, as it says when it has run them."""
    admin.execute(f"SET search_path TO {schema}".encode())
    plans: list[Plan] = []
    for statement, values in asked:
        text = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
        row = admin.execute(text.encode(), values).fetchone()
        assert row is not None
        plans.append(row[0][0]["Plan"])
    return plans


@pytest.mark.rule("R-MEM-4")
async def test_reading_costs_no_more_in_a_long_conversation(
    store: PostgreSQL, schema: str, admin: Admin
) -> None:
    asked: list[tuple[str, Any]] = []

    def watch(_c: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        asked.append((statement, values))

    for length in (100, 10_000):
        log = [user(str(n)).with_(id=str(n)) for n in range(length)]
        await store.append(f"of {length}", log, turn="t", owner="ann")
    admin.execute(f"ANALYZE {schema}.retinue_conversations, {schema}.retinue_entries".encode())
    pages: dict[int, int] = {}
    for length in (100, 10_000):
        asked.clear()
        event.listen(Engine, "before_cursor_execute", watch)
        try:
            assert len(await store.tail(f"of {length}", owner="ann", limit=40)) == 40
            assert len(await store.known(f"of {length}", ["1", "x"], owner="ann")) == 1
        finally:
            event.remove(Engine, "before_cursor_execute", watch)
        plans = explained(admin, schema, asked)
        assert len(plans) == 4
        of_entries = [plan for plan in plans if "retinue_entries" in json.dumps(plan)]
        assert len(of_entries) == 2
        for plan in of_entries:
            assert "Seq Scan" not in json.dumps(plan)
            assert "Sort" not in json.dumps(plan)
        pages[length] = sum(plan["Shared Hit Blocks"] for plan in of_entries)
    assert pages[10_000] <= 1.5 * pages[100] + 4


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[postgres\]'"):
        PostgreSQL("postgresql://127.0.0.1/chats")


def test_without_sqlalchemy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[postgres\]'"):
        PostgreSQL("postgresql://127.0.0.1/chats")


async def test_a_row_that_is_no_message_is_named(
    store: PostgreSQL, schema: str, admin: Admin
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(f"UPDATE {schema}.retinue_entries SET body = '{{'".encode())
    with pytest.raises(StoreError, match=r"'c' in PostgreSQL database .*backup"):
        await store.tail("c")
