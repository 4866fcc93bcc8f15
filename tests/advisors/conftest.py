"""The stores that a memory may keep its conversations in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from retinue.stores import InMemory, SQLite, Store


@pytest.fixture(params=["in-memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store of retinue, empty."""
    kept = InMemory() if request.param == "in-memory" else SQLite(tmp_path / "chat.db")
    yield kept
    await kept.close()
