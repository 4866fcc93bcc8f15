"""The PostgreSQL server that some tests need: RETINUE_POSTGRES names it, `.ci/with-postgres` starts
one. Without it these tests are left out, which the run says; in CI they fail.
"""

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
import pytest

from retinue.stores import PostgreSQL
from tests.conftest import IN_CI

VARIABLE = "RETINUE_POSTGRES"
Admin: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

_left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what cannot run here."""
    if IN_CI or os.environ.get(VARIABLE):
        return
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    missing = [item for item in here if "server" in getattr(item, "fixturenames", ())]
    items[:] = [item for item in items if item not in missing]
    config.stash[_left_out] = len(missing)
    config.hook.pytest_deselected(items=missing)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what was left out, and how to have it run."""
    count = config.stash.get(_left_out, 0)
    if count:
        terminalreporter.line(
            f"{count} tests of PostgreSQL were left out, as {VARIABLE} names no server; to run"
            " them: .ci/with-postgres make test"
        )


@pytest.fixture(scope="session")
def server() -> str:
    """The URL of a server, for a user who may do everything there."""
    url = os.environ.get(VARIABLE)
    if not url:
        pytest.fail(f"{VARIABLE} names no server; run this under .ci/with-postgres.", pytrace=False)
    return url


@pytest.fixture
def admin(server: str) -> Iterator[Admin]:
    """A connection apart from the store's."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


@pytest.fixture
def schema(admin: Admin) -> Iterator[str]:
    """The name of a schema that is not there yet, and is gone after the test."""
    name = f"t{uuid.uuid4().hex}"
    yield name
    admin.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@pytest.fixture
async def store(server: str, schema: str) -> AsyncIterator[PostgreSQL]:
    """A fresh store in the schema."""
    store = PostgreSQL(server, schema=schema)
    yield store
    await store.close()
