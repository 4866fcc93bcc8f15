"""The places of a conversation's turns."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy

from retinue.durable.order import Order


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """An order in a file."""
    url = f"sqlite:///{tmp_path / 'order.db'}"
    made = Order(sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool))
    made.create()
    return made


def check_places(order: Order) -> None:
    """Turns that enter at once see all that are before them, and only those."""
    turns = [f"t-{n}" for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        before = dict(zip(turns, pool.map(lambda turn: order.enter(turn, "c"), turns), strict=True))
    assert sorted(map(len, before.values())) == [*range(12)]
    places = sorted(turns, key=lambda turn: len(before[turn]))
    assert all(sorted(before[turn]) == sorted(places[:n]) for n, turn in enumerate(places))


def test_turns_that_enter_at_once_have_different_places(order: Order) -> None:
    check_places(order)


def test_the_same_holds_in_postgresql(database: str) -> None:
    url = database.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = sqlalchemy.create_engine(url)
    order = Order(engine)
    order.create()
    check_places(order)
    engine.dispose()


def test_a_turn_keeps_its_place_and_other_conversations_do_not_count(order: Order) -> None:
    assert order.enter("a", "c") == []
    assert order.enter("b", "other " * 200) == []
    assert order.enter("c", "c") == ["a"]
    assert order.enter("a", "c") == []
    order.forget(["a"])
    assert order.enter("c", "c") == []
