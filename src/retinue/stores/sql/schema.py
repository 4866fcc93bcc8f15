"""Which version the tables of a database have, and how it is brought to this one.

A new database is made from `tables` in one step, an older one is migrated by Alembic, which is
imported only then. One that a newer retinue wrote is refused: what it holds could be misread.
"""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, Engine, insert, inspect, select

from retinue.errors import MissingExtraError, StoreError
from retinue.stores.sql.tables import VERSION_TABLE, metadata, versions

VERSIONS: Final = ("0001", "0002")
"""All versions that this retinue knows, oldest first. The last is the one it works with."""

MIGRATIONS: Final = "retinue.stores.sql:migrations"
"""Where Alembic finds the scripts: a folder in a package, also when installed from a wheel."""


def ensure(
    engine: Engine, place: str, prepare: Callable[[Connection], None] = lambda _: None
) -> None:
    """Makes or migrates the tables where needed.

    Args:
        engine: a connection of it begins a transaction that writes under `writing=True`.
        place: the database's name in errors.
        prepare: called first in the transaction that makes or migrates. Where transactions that
            write can overlap, it keeps all others that would do the same out.

    Raises:
        StoreError: the database is of a newer version.
        MissingExtraError: it is older, and Alembic is not installed.
    """
    with engine.begin() as connection:
        if _version(connection, place) == VERSIONS[-1]:
            return
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        prepare(connection)
        # Another process may have been faster, between the two transactions.
        version = _version(connection, place)
        if version is None:
            create(connection)
        elif version != VERSIONS[-1]:
            migrate(connection)


def create(connection: Connection) -> None:
    """Makes all tables, of the newest version, in an empty database."""
    metadata.create_all(connection, checkfirst=False)
    versions.create(connection, checkfirst=True)  # an empty one stays after a downgrade
    connection.execute(insert(versions), {"version_num": VERSIONS[-1]})


def migrate(connection: Connection) -> None:
    """Brings an older or empty database to the newest version, in the caller's transaction."""
    try:
        from alembic import command
        from alembic.config import Config
    except ImportError as error:
        extra = "sqlite" if connection.dialect.name == "sqlite" else "postgres"
        raise MissingExtraError(
            "The database is of an older version, and Alembic, which migrates it, is not installed:"
            f" pip install 'retinue[{extra}]'."
        ) from error
    config = Config()
    config.set_main_option("script_location", MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _version(connection: Connection, place: str) -> str | None:
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = connection.scalar(select(versions.c.version_num))
    if version is not None and version not in VERSIONS:
        raise StoreError(
            f"{place} was written by a newer version of retinue (its tables are of version"
            f" {version}, and this one knows them up to {VERSIONS[-1]}); upgrade retinue."
        )
    return version
