"""A store in the PostgreSQL server."""

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeAlias

import psycopg
import pytest

from retinue.stores import PostgreSQL

Admin: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"


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
