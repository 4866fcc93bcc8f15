"""The table of the stores: a column for each that is at hand, the same operations for all."""

import pytest

from bench.stores import OPERATIONS, at_hand, lines, measured
from retinue.stores import InMemory


def test_a_store_without_a_server_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETINUE_POSTGRES", raising=False)
    monkeypatch.setenv("RETINUE_REDIS", "redis://127.0.0.1")
    assert at_hand() == ["store_in_memory", "store_sqlite", "store_redis"]


def test_an_operation_is_a_line_and_a_store_a_column() -> None:
    figures = dict.fromkeys(OPERATIONS, 1_234.5)
    head, first, *rest = lines({"store_in_memory": figures, "store_redis": figures})
    assert head.split()[-3:] == ["in", "memory", "Redis"]
    assert first.split()[-4:] == ["1,234", "µs", "1,234", "µs"]
    assert len(rest) == len(OPERATIONS) - 1


async def test_every_operation_is_measured() -> None:
    figures = await measured(InMemory(), seconds=0)
    assert list(figures) == list(OPERATIONS)
    assert all(figure > 0 for figure in figures.values())
