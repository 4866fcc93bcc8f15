"""Every store of retinue does what the contract says."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from retinue.stores import InMemory, SQLite
from retinue.testing.stores import StoreContract

held = [
    pytest.mark.rule("R-MEM-1", "R-MEM-6", "R-MEM-7", "R-MEM-8", "R-MEM-9"),
    pytest.mark.behaviour("B-ME-3", "B-ME-7", "B-ME-8", "B-ME-9", "B-ME-10"),
]


class TestInMemory(StoreContract):
    pytestmark = held

    @pytest.fixture
    def store(self) -> InMemory:
        return InMemory()


class TestSQLiteFile(StoreContract):
    pytestmark = held

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SQLite]:
        store = SQLite(tmp_path / "conversations.db")
        yield store
        await store.close()


class TestSQLiteInMemory(StoreContract):
    pytestmark = held

    @pytest.fixture
    async def store(self) -> AsyncIterator[SQLite]:
        store = SQLite(":memory:")
        yield store
        await store.close()
