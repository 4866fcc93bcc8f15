"""Which worker gets a turn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from retinue import ConfigError
from retinue.serve.grpc.routing import consistent_hash, least_loaded, route_of
from retinue.serve.jobs import Job


class Seat(Struct, frozen=True):
    """A worker as a route sees it."""

    name: str
    running: int = 0
    capacity: int = 10

    @property
    def instance(self) -> str:
        return self.name


def seats(*names: str) -> list[Seat]:
    return [Seat(name) for name in names]


def talking(conversation: str) -> Job:
    return Job(agent="a", conversation=conversation)


def test_least_loaded_counts_places_and_not_turns() -> None:
    small, large = Seat("small", 1, 2), Seat("large", 10, 100)
    assert least_loaded([small, large], Job(agent="a")) is large
    assert least_loaded([Seat("large", 60, 100), small], Job(agent="a")) is small


def test_of_two_idle_workers_the_larger_one_is_least_loaded() -> None:
    assert least_loaded([Seat("small", 0, 2), Seat("large", 0, 9)], Job(agent="a")).name == "large"


def test_round_robin_gives_each_its_turn_also_while_others_are_full() -> None:
    route, (one, two, three) = route_of("round_robin"), seats("1", "2", "3")
    given = [route([one, two, three], Job(agent="a")).name for _ in range(6)]
    assert given == ["1", "2", "3", "1", "2", "3"]
    assert route([one, three], Job(agent="a")) is one
    assert route([two, three], Job(agent="a")) is two


def test_random_reaches_all_of_them() -> None:
    route, workers = route_of("random"), seats("1", "2", "3")
    assert {route(workers, Job(agent="a")).name for _ in range(200)} == {"1", "2", "3"}


@given(st.text(), st.permutations(["a", "b", "c", "d"]))
def test_a_conversation_goes_to_the_same_worker_in_whatever_order_they_came(
    conversation: str, names: list[str]
) -> None:
    job = talking(conversation)
    chosen = consistent_hash(seats("a", "b", "c", "d"), job).name
    assert consistent_hash(seats(*names), job).name == chosen


def test_a_worker_that_goes_moves_its_own_conversations_alone() -> None:
    jobs = [talking(f"c-{n}") for n in range(300)]
    before = [consistent_hash(seats("a", "b", "c"), job).name for job in jobs]
    after = [consistent_hash(seats("a", "b"), job).name for job in jobs]
    assert all(old == new for old, new in zip(before, after, strict=True) if old != "c")
    assert min(Counter(before).values()) > 60


def test_owners_with_the_same_name_for_a_conversation_are_not_held_together() -> None:
    workers = seats(*"abcdefgh")
    chosen = {
        consistent_hash(workers, Job(agent="a", conversation="c", owner=f"o-{n}")).name
        for n in range(100)
    }
    assert len(chosen) > 4


def test_a_route_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="no route 'fastest'; there are least_loaded"):
        route_of("fastest")  # pyright: ignore[reportArgumentType]


def test_a_function_is_a_route() -> None:
    assert route_of(lambda workers, job: workers[-1])(seats("a", "b"), Job(agent="a")).name == "b"
