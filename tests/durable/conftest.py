"""A database and a worker that are there for one test."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from retinue import Agent
from retinue.durable import Durable
from tests.durable.handing import Opening


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """The URL of a fresh database in PostgreSQL."""
    name = f"durable_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield f"{server.rpartition('/')[0]}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opening]:
    """Opens a worker for an agent; the one that was open before is closed, as in a deployment."""
    stack = contextlib.AsyncExitStack()

    async def opening(agent: Agent, **options: Any) -> Durable:
        await stack.aclose()
        durable = Durable(agent, database=tmp_path / "turns.db", lease=0.3, grace=0, **options)
        return await stack.enter_async_context(durable)

    yield opening
    await stack.aclose()
