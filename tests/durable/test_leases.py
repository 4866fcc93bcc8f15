"""Who is alive, and who takes a dead worker's turns."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy

from retinue.durable.leases import Leases

BOUND = 10.0


def lease(
    path: Path,
    worker: str,
    *,
    fleet: str = "service:1",
    seconds: float = 0.3,
    take_over: Callable[[str], object] = lambda _: None,
    beat: Callable[[], None] = lambda: None,
) -> Leases:
    """A worker's lease in a file."""
    engine = sqlalchemy.create_engine(
        f"sqlite:///{path / 'leases.db'}", poolclass=sqlalchemy.NullPool
    )

    def taking(worker: str) -> Iterator[None]:
        yield from cast("Iterable[None]", take_over(worker) or ())

    return Leases(engine, worker, fleet, seconds, take_over=taking, beat=beat)


def test_a_dead_worker_is_taken_over_once_by_all_the_others_together(tmp_path: Path) -> None:
    taken: list[str] = []
    beats = [threading.Semaphore(0), threading.Semaphore(0)]
    dead = lease(tmp_path, "dead")
    dead.join()
    dead.leave()
    others = [
        lease(tmp_path, f"live-{n}", seconds=2, take_over=taken.append, beat=beats[n].release)
        for n in range(2)
    ]
    for one in others:
        one.join()
    for one in others:
        one.start()
    for beat in beats:
        for _ in range(3):
            assert beat.acquire(timeout=BOUND)
    found = [*taken]
    for one in others:
        one.leave()
    assert found == ["dead"]


def test_a_worker_that_leaves_is_taken_over_at_once(tmp_path: Path) -> None:
    taken = threading.Event()
    left = lease(tmp_path, "left", seconds=60)
    left.join()
    left.leave()
    other = lease(tmp_path, "live", take_over=lambda _: taken.set())
    other.join()
    other.start()
    assert taken.wait(BOUND)
    other.leave()


def test_one_who_dies_while_he_takes_over_is_no_harm(tmp_path: Path) -> None:
    tried, done = threading.Event(), threading.Event()

    def takes(worker: str) -> None:
        if worker == "dead":
            done.set()

    def fails(_: str) -> None:
        tried.set()
        raise ConnectionError("the database is away")

    lease(tmp_path, "dead").join()
    first = lease(tmp_path, "first", take_over=fails)
    first.join()
    first.start()
    assert tried.wait(BOUND)
    first.leave()
    second = lease(tmp_path, "second", take_over=takes)
    second.join()
    second.start()
    assert done.wait(BOUND)
    second.leave()


@pytest.mark.parametrize("fleet", ["other:1", "service:2"])
def test_workers_of_another_service_or_version_are_left_alone(fleet: str, tmp_path: Path) -> None:
    taken: list[str] = []
    beats = threading.Semaphore(0)
    lease(tmp_path, "dead", fleet=fleet).join()
    live = lease(tmp_path, "live", take_over=taken.append, beat=beats.release)
    live.join()
    live.start()
    for _ in range(6):
        assert beats.acquire(timeout=BOUND)
    live.leave()
    assert taken == []


def test_a_worker_that_died_before_the_clock_was_set_back_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = threading.Event()
    lease(tmp_path, "dead").join()
    now = time.time
    monkeypatch.setattr("time.time", lambda: now() - 3600)
    live = lease(tmp_path, "live", take_over=lambda _: taken.set())
    live.join()
    live.start()
    assert taken.wait(BOUND)
    live.leave()


def test_who_takes_many_turns_over_stays_alive_meanwhile(tmp_path: Path) -> None:
    seconds, taken = 0.3, list[str]()
    begun, over = threading.Event(), threading.Event()

    def many(worker: str) -> Iterator[None]:
        begun.set()
        for _ in range(20):  # two leases long: time is the subject here
            time.sleep(seconds / 10)
            yield
        over.set()

    dead = lease(tmp_path, "dead", seconds=seconds)
    dead.join()
    dead.leave()
    busy = lease(tmp_path, "busy", seconds=seconds, take_over=many)
    watching = lease(tmp_path, "watching", seconds=seconds, take_over=taken.append)
    busy.join()
    busy.start()
    assert begun.wait(BOUND)
    watching.join()
    watching.start()
    assert over.wait(BOUND)
    watching.leave()
    busy.leave()
    assert taken == []
