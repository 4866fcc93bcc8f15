"""The tables: made new, migrated, and refused when they are of a later version."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, insert

from retinue.errors import MissingExtraError, StoreError
from retinue.messages import user
from retinue.messages.codec import encode
from retinue.stores import Held, SQLite
from retinue.stores.sql import schema
from retinue.stores.sql.tables import VERSION_TABLE, metadata, versions


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine("sqlite://")
    yield engine
    engine.dispose()


@pytest.fixture
def migrated(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as connection:
        schema.migrate(connection)
        yield connection


def shape(connection: Connection) -> set[tuple[str, ...]]:
    """Every table and index with its columns, as SQLite tells them."""
    found: set[tuple[str, ...]] = set()
    for kind, name, table in connection.exec_driver_sql(
        "SELECT type, name, tbl_name FROM sqlite_master"
    ).all():
        about = "table_xinfo" if kind == "table" else "index_xinfo"
        columns = connection.exec_driver_sql(f"PRAGMA {about}('{name}')").all()
        keys = connection.exec_driver_sql(f"PRAGMA foreign_key_list('{name}')").all()
        found.add((kind, name, table, str(columns), str(keys)))
    return found


@pytest.mark.filterwarnings("ignore:autogenerate skipping .* expression-based index")
def test_migrations_lead_to_the_tables_of_the_code(migrated: Connection) -> None:
    context = MigrationContext.configure(
        migrated, opts={"version_table": VERSION_TABLE, "compare_server_default": True}
    )
    assert compare_metadata(context, metadata) == []


def test_a_new_database_and_a_migrated_one_are_alike(migrated: Connection) -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        schema.create(connection)
        assert shape(connection) == shape(migrated)
    engine.dispose()


def test_the_versions_in_the_code_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", schema.MIGRATIONS)
    scripts = ScriptDirectory.from_config(config)
    assert [s.revision for s in scripts.walk_revisions()][::-1] == list(schema.VERSIONS)


async def write(path: Path, text: str) -> None:
    store = SQLite(path)
    try:
        await store.append("c", [user(text)], turn="t")
    finally:
        await store.close()


async def read(path: Path) -> list[str]:
    store = SQLite(path)
    try:
        return [entry.message.text for entry in await store.tail("c")]
    finally:
        await store.close()


async def test_a_database_of_a_newer_retinue_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await write(path, "hi")
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    with pytest.raises(StoreError, match=r"x\.db was written by a newer .*9999.*upgrade retinue"):
        await read(path)


NEXT = """
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

def upgrade():
    op.add_column("retinue_entries", sa.Column("extra", sa.Text))
    {then}
"""


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of one more migration, known to the code; it is written by the test."""
    scripts = tmp_path / "migrations"
    assert schema.__file__
    shutil.copytree(Path(schema.__file__).parent / "migrations", scripts)
    monkeypatch.setattr(schema, "VERSIONS", (*schema.VERSIONS, "0003"))
    monkeypatch.setattr(schema, "MIGRATIONS", str(scripts))
    return scripts / "versions" / "0003_extra.py"


def test_an_older_database_is_migrated_when_it_is_opened(
    tmp_path: Path, next_version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    with monkeypatch.context() as older:
        older.setattr(schema, "VERSIONS", ("0001", "0002"))
        asyncio.run(write(path, "hi"))
    next_version.write_text(NEXT.format(then=""))
    assert asyncio.run(read(path)) == ["hi"]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT extra FROM retinue_entries").fetchall() == [(None,)]
    assert connection.execute(f"SELECT * FROM {VERSION_TABLE}").fetchall() == [("0003",)]
    connection.close()


def test_a_database_of_the_first_version_keeps_its_conversations_and_can_pause(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", schema.MIGRATIONS)
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql(
            "INSERT INTO retinue_conversations VALUES (1, 'c', NULL, 'hi', 1, 1, 1, 5.0, 5.0)"
        )
        body = encode(user("hi")).decode()
        connection.exec_driver_sql(
            "INSERT INTO retinue_entries VALUES (1, 1, 'm', 't', '', 5.0, ?)", (body,)
        )
    engine.dispose()

    async def use() -> tuple[list[str], Held | None]:
        store = SQLite(path)
        await store.hold("c", "p", b"{}")
        found = [entry.message.text for entry in await store.tail("c")]
        held = await store.held("c")
        await store.close()
        return found, held

    assert asyncio.run(use()) == (["hi"], Held("p", b"{}"))


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    tmp_path: Path, next_version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    with monkeypatch.context() as older:
        older.setattr(schema, "VERSIONS", ("0001", "0002"))
        asyncio.run(write(path, "hi"))
        next_version.write_text(NEXT.format(then="1 / 0"))
        with monkeypatch.context() as newer:
            newer.setattr(schema, "VERSIONS", ("0001", "0002", "0003"))
            with pytest.raises(ZeroDivisionError):
                asyncio.run(read(path))
        assert asyncio.run(read(path)) == ["hi"]
    connection = sqlite3.connect(path)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(retinue_entries)")]
    assert "extra" not in columns
    connection.close()


async def test_without_alembic_an_older_database_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(tmp_path / "x.db", "hi")
    monkeypatch.setattr(schema, "VERSIONS", (*schema.VERSIONS, "0003"))
    monkeypatch.setitem(sys.modules, "alembic", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[sqlite\]'"):
        await read(tmp_path / "x.db")


def test_a_database_that_was_migrated_down_is_made_anew(engine: Engine) -> None:
    with engine.begin() as connection:
        versions.create(connection)
    schema.ensure(engine, "x.db")
    with engine.begin() as connection:
        assert len(shape(connection)) > 3
        assert connection.execute(versions.select()).scalars().all() == [schema.VERSIONS[-1]]


def test_other_tables_in_the_file_are_left_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num TEXT)")
        connection.exec_driver_sql("CREATE TABLE conversations (id TEXT)")
    schema.ensure(engine, "x.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("SELECT id FROM conversations")
        connection.execute(insert(versions), {"version_num": "unused"})
