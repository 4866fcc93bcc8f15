"""The tables in PostgreSQL: made new, migrated by one of several, and refused when too new."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine

from retinue.errors import StoreError
from retinue.messages import user
from retinue.stores import PostgreSQL
from retinue.stores.sql import schema as versions
from retinue.stores.sql.tables import VERSION_TABLE, metadata
from tests.stores.conftest import Admin
from tests.stores.test_schema import NEXT, next_version

__all__ = ["next_version"]


@pytest.fixture
def engine(server: str, schema: str, admin: Admin) -> Iterator[Engine]:
    """Connections whose tables are in the schema."""
    admin.execute(f"CREATE SCHEMA {schema}".encode())
    engine = create_engine(
        server.replace("postgresql:", "postgresql+psycopg:"),
        connect_args={"options": f"-csearch_path={schema}"},
    )
    yield engine
    engine.dispose()


def shape(connection: Connection) -> list[tuple[str, ...]]:
    """Every column, index and constraint, as PostgreSQL tells them."""
    found: list[tuple[str, ...]] = []
    for query in (
        "SELECT table_name, column_name, ordinal_position::text, data_type, is_nullable,"
        " column_default FROM information_schema.columns WHERE table_schema = current_schema()",
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = current_schema()::regnamespace",
    ):
        found += [tuple(map(str, row)) for row in connection.exec_driver_sql(query)]
    return sorted(found)


def test_a_new_database_and_a_migrated_one_are_alike(engine: Engine) -> None:
    with engine.connect() as connection:
        with connection.begin() as transaction:
            versions.create(connection)
            created = shape(connection)
            transaction.rollback()
        with connection.begin() as transaction:
            versions.migrate(connection)
            assert shape(connection) == created
            transaction.rollback()
    assert len(created) > 20


def test_migrations_lead_to_the_tables_of_the_code(engine: Engine) -> None:
    with engine.begin() as connection:
        versions.migrate(connection)
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


async def open_and_read(store: PostgreSQL) -> list[str]:
    try:
        return [entry.message.text for entry in await store.tail("c")]
    finally:
        await store.close()


def test_an_older_database_is_migrated_once_by_those_who_open_it_together(
    server: str, schema: str, admin: Admin, next_version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def write() -> None:
        store = PostgreSQL(server, schema=schema)
        await store.append("c", [user("hi")], turn="t")
        await store.close()

    async def race() -> list[list[str]]:
        stores = [PostgreSQL(server, schema=schema) for _ in range(4)]
        return await asyncio.gather(*map(open_and_read, stores))

    with monkeypatch.context() as older:
        older.setattr(versions, "VERSIONS", ("0001", "0002"))
        asyncio.run(write())
    next_version.write_text(NEXT.format(then="op.execute('SELECT pg_sleep(0.05)')"))
    assert asyncio.run(race()) == [["hi"]] * 4
    found = admin.execute(f"SELECT extra FROM {schema}.retinue_entries".encode()).fetchall()
    assert found == [(None,)]
    stamped = admin.execute(f"SELECT * FROM {schema}.{VERSION_TABLE}".encode()).fetchall()
    assert stamped == [("0003",)]


async def test_a_database_of_a_newer_retinue_is_refused(
    server: str, schema: str, store: PostgreSQL, admin: Admin
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.execute(f"UPDATE {schema}.{VERSION_TABLE} SET version_num = '9999'".encode())
    with pytest.raises(StoreError, match=r"was written by a newer .*9999.*upgrade retinue"):
        await open_and_read(PostgreSQL(server, schema=schema))
