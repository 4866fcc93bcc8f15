"""A PostgreSQL database that cannot be used: one sentence that names it and the way out."""

import asyncio
import re
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from retinue.errors import StoreError
from retinue.messages import user
from retinue.stores import PostgreSQL
from retinue.testing.writing import soon
from tests.stores import sessions
from tests.stores.conftest import Admin
from tests.stores.proxy import proxy, refusing


def changed(url: str, *, path: str | None = None, login: str | None = None) -> str:
    """The URL with another database or another user and password."""
    parts = urlsplit(url)
    if path is not None:
        parts = parts._replace(path=path)
    if login is not None:
        parts = parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}")
    return parts.geturl()


async def failure(url: str, **options: Any) -> str:
    """The sentence with which the store refuses to write."""
    store = PostgreSQL(url, **options)
    try:
        with pytest.raises(StoreError) as caught:
            await soon(store.append("c", [user("hi")], turn="t"))
        with pytest.raises(StoreError) as again:
            await soon(store.append("c", [user("hi")], turn="t"))
    finally:
        await store.close()
    sentence = str(caught.value)
    assert str(again.value) == sentence
    check(sentence, url)
    return sentence


def check(sentence: str, url: str) -> None:
    """It is one sentence, gives a way out, names the place, and keeps the password."""
    parts = urlsplit(url)
    assert "\n" not in sentence
    assert re.search(r"[;,] [^;]+\.$", sentence), f"no way out is given: {sentence}"
    assert f"database {parts.path[1:]} at {parts.hostname}:{parts.port}" in sentence
    assert not parts.password or parts.password not in sentence


@pytest.fixture
def ann(admin: Admin, schema: str) -> Iterator[str]:
    """The login of a user who may do nothing; its name is the schema's."""
    admin.execute(f"CREATE ROLE {schema} LOGIN PASSWORD 'pa55'".encode())
    yield f"{schema}:pa55"
    admin.execute(f"DROP OWNED BY {schema} CASCADE".encode())
    admin.execute(f"DROP ROLE {schema}".encode())


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def test_a_server_that_is_not_there(free_port: int) -> None:
    url = f"postgresql://ann:s3cret@127.0.0.1:{free_port}/chats"
    assert "cannot be reached (Connection refused); start the server" in await failure(url)


async def test_a_host_that_has_no_address() -> None:
    url = "postgresql://ann:s3cret@db.invalid:5432/chats"
    assert "cannot be reached (failed to resolve host 'db.invalid'" in await failure(url)


@pytest.mark.parametrize(
    ("code", "message", "sentence"),
    [
        ("57P03", "the database system is shutting down", "is stopping or starting"),
        ("57P03", "the database system is starting up", "is stopping or starting"),
        ("53300", "sorry, too many clients already", "no free connection; end others"),
        ("28000", 'no pg_hba.conf entry for host "10.0.0.1"', "does not let user ann in"),
        ("28000", 'role "ann" does not exist', "knows no user ann; make it"),
        ("42501", 'permission denied for database "chats"', "grant the user CONNECT"),
        ("3D000", "Datenbank »chats« existiert nicht", "(Datenbank »chats« existiert nicht)"),
    ],
)
async def test_a_server_that_lets_nobody_in(code: str, message: str, sentence: str) -> None:
    async with refusing(code, message) as url:
        assert sentence in await failure(url)


async def test_a_wrong_password(server: str, ann: str) -> None:
    name = ann.partition(":")[0]
    sentence = await failure(changed(server, login=f"{name}:wr0ng"))
    assert f"refused the password of user {name}; check both" in sentence


async def test_a_database_that_is_not_there(server: str) -> None:
    sentence = await failure(changed(server, path="/chats_of_nobody"))
    assert "is not there; make it with `createdb`" in sentence


async def test_a_user_who_may_not_make_the_tables(server: str, ann: str, schema: str) -> None:
    sentence = await failure(changed(server, login=ann), schema=schema)
    assert f"User {schema} may not do this" in sentence
    assert "grant the user the schema" in sentence


async def test_a_user_who_may_not_read_the_tables(
    server: str, ann: str, schema: str, store: PostgreSQL, admin: Admin
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}".encode())
    sentence = await failure(changed(server, login=ann), schema=schema)
    assert "(permission denied for table retinue_version); grant" in sentence


async def test_a_user_who_may_only_read(
    server: str, ann: str, schema: str, store: PostgreSQL, admin: Admin
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}".encode())
    admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {schema}".encode())
    admin.execute(f"ALTER ROLE {schema} SET default_transaction_read_only = on".encode())
    server = changed(server, login=ann)
    assert f"may only be read; give the address of the primary server, or let user {schema}" in (
        await failure(server, schema=schema)
    )
    reader = PostgreSQL(server, schema=schema)
    assert len(await reader.tail("c")) == 1
    await reader.close()


async def test_a_user_who_looks_for_tables_in_no_schema_that_is_there(server: str) -> None:
    sentence = await failure(f"{server}?options=-csearch_path%3Dnowhere")
    assert "no schema to make its tables in; give schema=..." in sentence


async def test_a_database_that_cannot_hold_all_texts(
    server: str, schema: str, admin: Admin
) -> None:
    admin.execute(f"CREATE DATABASE {schema} TEMPLATE template0 ENCODING 'LATIN1'".encode())
    try:
        sentence = await failure(changed(server, path=f"/{schema}"))
    finally:
        admin.execute(f"DROP DATABASE {schema}".encode())
    assert "keeps its texts in LATIN1" in sentence


async def test_a_row_that_another_locks_for_too_long(
    server: str, schema: str, store: PostgreSQL
) -> None:
    await store.append("c", [user("hi")], turn="t")
    with psycopg.connect(server) as other:
        other.execute(f"SELECT * FROM {schema}.retinue_conversations FOR UPDATE".encode())
        sentence = await failure(server, schema=schema, timeout=0.05)
    assert "took longer in" in sentence
    assert "than the 0.05 seconds that it may" in sentence
    assert len(await store.tail("c")) == 1


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("53100", "There is no space left for"),
        ("53200", "has no memory left"),
        ("54000", "A message is larger than"),
        ("58030", "cannot read or write its files (injected); check the server's disk"),
        ("XX001", "is damaged (injected); restore it from a backup"),
        ("P0001", "PostgreSQL says 'injected'"),
    ],
)
async def test_a_server_that_fails_within_a_call(
    server: str, schema: str, store: PostgreSQL, admin: Admin, code: str, sentence: str
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(
        f"CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END $$".encode()
    )
    admin.execute(
        f"CREATE TRIGGER fail BEFORE INSERT ON {schema}.retinue_entries"
        f" FOR EACH ROW EXECUTE FUNCTION {schema}.fail()".encode()
    )
    with pytest.raises(StoreError) as caught:
        await store.append("c", [user("more")], turn="t")
    assert sentence in str(caught.value)
    assert f"schema {schema}" in str(caught.value)
    assert len(await store.tail("c")) == 1


async def test_a_connection_that_is_lost_in_the_middle(
    server: str, schema: str, admin: Admin
) -> None:
    async with proxy(f"{server}?application_name={schema}") as between:
        store = PostgreSQL(between.url, schema=schema)
        await store.append("c", [user("hi")], turn="t")
        with psycopg.connect(server) as other:
            other.execute(f"SELECT * FROM {schema}.retinue_conversations FOR UPDATE".encode())
            work = asyncio.create_task(store.append("c", [user("more")], turn="t"))
            await sessions.until(lambda: sessions.waiting(admin, schema) == 1)
            between.cut()
            with pytest.raises(StoreError, match="was lost in the middle; check") as caught:
                await soon(work)
            check(str(caught.value).replace(f", schema {schema}", ""), between.url)
        await soon(store.append("c", [user("again")], turn="t"))
        assert [e.message.text for e in await store.tail("c")] == ["hi", "again"]
        await store.close()


async def test_a_connection_that_the_server_ends(server: str, schema: str, admin: Admin) -> None:
    store = PostgreSQL(f"{server}?application_name={schema}", schema=schema)
    await store.append("c", [user("hi")], turn="t")
    with psycopg.connect(server) as other:
        other.execute(f"SELECT * FROM {schema}.retinue_conversations FOR UPDATE".encode())
        work = asyncio.create_task(store.append("c", [user("more")], turn="t"))
        await sessions.until(lambda: sessions.waiting(admin, schema) == 1)
        sessions.end(admin, schema)
        with pytest.raises(StoreError, match="is stopping or starting, or ended this connection"):
            await soon(work)
    await soon(store.append("c", [user("again")], turn="t"))
    assert [e.message.text for e in await store.tail("c")] == ["hi", "again"]
    await store.close()


async def test_a_connection_that_broke_while_idle_is_replaced_unnoticed(
    server: str, schema: str, admin: Admin
) -> None:
    store = PostgreSQL(f"{server}?application_name={schema}", schema=schema)
    await asyncio.gather(*(store.append(str(n), [user("hi")], turn="t") for n in range(10)))
    async with store.writing("c"):
        pass
    sessions.end(admin, schema)
    async with store.writing("c"):
        await asyncio.gather(*(store.append(str(n), [user("more")], turn="t") for n in range(10)))
    assert len(await store.tail("3")) == 2
    await store.close()


async def test_tables_that_were_dropped_are_made_anew(
    store: PostgreSQL, schema: str, admin: Admin
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    with pytest.raises(StoreError, match=r"The tables are gone from .*; try again"):
        await store.tail("c")
    await store.append("c", [user("hi again")], turn="t")
    assert [e.message.text for e in await store.tail("c")] == ["hi again"]


async def test_neither_errors_nor_causes_repeat_the_password_or_what_is_stored(
    store: PostgreSQL, schema: str, admin: Admin, server: str
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(f"ALTER TABLE {schema}.retinue_entries DROP COLUMN body".encode())
    with pytest.raises(StoreError) as caught:
        await store.append("c", [user("my card is 1234")], turn="t")
    password = urlsplit(server).password
    assert password
    error: BaseException | None = caught.value
    while error is not None:
        assert "1234" not in str(error)
        assert password not in f"{error!r} {error}"
        error = error.__cause__
    assert password not in repr(store)
