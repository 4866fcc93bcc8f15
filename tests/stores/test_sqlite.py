"""What is particular to the SQLite store: its file, its connection, its cost."""

import asyncio
import gc
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from retinue.errors import ConfigError, MissingExtraError, StoreError
from retinue.messages import assistant, user
from retinue.stores import SQLite
from tests.stores.children import child
from tests.stores.shared import texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLite]:
    store = SQLite(path)
    yield store
    await store.close()


@pytest.mark.rule("R-MEM-7")
async def test_what_is_stored_is_there_in_another_process(store: SQLite, path: Path) -> None:
    await store.append("c", [user("hi"), assistant("hello")], turn="t")
    read = "print([e.message.text for e in asyncio.run(SQLite(path).tail('c'))])"
    with child(read, path) as other:
        assert other.rest() == "['hi', 'hello']"


def test_one_store_serves_several_event_loops_one_after_another(path: Path) -> None:
    store = SQLite(path)
    asyncio.run(store.append("c", [user("one")], turn="t"))
    asyncio.run(store.append("c", [user("two")], turn="t"))
    assert asyncio.run(texts(store)) == ["one", "two"]
    asyncio.run(store.close())


def test_one_store_serves_several_event_loops_at_once(path: Path) -> None:
    store = SQLite(path)

    def chat(name: str) -> None:
        async def run() -> None:
            for n in range(20):
                await store.append(name, [user(str(n))], turn="t")

        asyncio.run(run())

    threads = [threading.Thread(target=chat, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in "abc":
        assert asyncio.run(texts(store, name)) == [str(n) for n in range(20)]
    asyncio.run(store.close())


async def test_a_cancelled_append_is_stored_as_a_whole_or_not_at_all(store: SQLite) -> None:
    for n in range(20):
        work = asyncio.create_task(store.append("c", [user("?"), user("!")], turn=str(n)))
        await asyncio.sleep(0)
        work.cancel()
    stored = await texts(store)
    assert stored == ["?", "!"] * (len(stored) // 2)


async def test_a_memory_database_is_one_for_all_calls_and_gone_with_close() -> None:
    store = SQLite(":memory:")
    await asyncio.gather(*(store.append("c", [user(str(n))], turn="t") for n in range(5)))
    assert len(await texts(store)) == 5
    assert await texts(SQLite(":memory:")) == []
    await store.close()
    assert await texts(store) == []
    await store.close()


async def test_a_relative_path_stays_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SQLite("here.db")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    await store.append("c", [user("hi")], turn="t")
    await store.close()
    assert (tmp_path / "here.db").is_file()


@pytest.mark.parametrize("name", ["a b?c#d&e.db", "file:x.db", "ünï🦊.db", "%41.db"])
def test_a_path_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    async def write() -> None:
        store = SQLite(str(tmp_path / name))
        await store.append("c", [user("hi")], turn="t")
        await store.close()

    asyncio.run(write())
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("bad", ["", "a\x00b"])
def test_a_path_that_cannot_be_is_refused(bad: str) -> None:
    with pytest.raises(ConfigError, match="path"):
        SQLite(bad)


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "5"])
def test_a_time_that_cannot_be_is_refused(bad: Any) -> None:
    with pytest.raises(ConfigError, match="busy_timeout"):
        SQLite(":memory:", busy_timeout=bad)


async def test_a_row_that_is_no_message_is_named(store: SQLite, path: Path) -> None:
    await store.append("c", [user("hi")], turn="t")
    with sqlite3.connect(path) as other:
        other.execute("UPDATE retinue_entries SET body = '{'")
    other.close()
    with pytest.raises(StoreError, match=r"'c'.*chats\.db.*backup"):
        await store.tail("c")


async def test_a_writer_waits_for_the_transaction_of_another(store: SQLite, path: Path) -> None:
    await store.append("c", [user("one")], turn="t")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.1, lambda: other.execute("COMMIT"))
    release.start()
    await store.append("c", [user("two")], turn="t")
    release.join()
    other.close()
    assert await texts(store) == ["one", "two"]


async def test_reading_does_not_wait_for_a_writer(store: SQLite, path: Path) -> None:
    await store.append("c", [user("one")], turn="t")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert await texts(store) == ["one"]
    other.close()


@pytest.fixture
def steps() -> Iterator[list[None]]:
    """Grows by one with each step of SQLite's machine, on every connection made from now on."""
    taken: list[None] = []

    def watch(connection: sqlite3.Connection, _: Any) -> None:
        connection.set_progress_handler(lambda: taken.append(None), 1)

    event.listen(Pool, "connect", watch)
    yield taken
    event.remove(Pool, "connect", watch)


@pytest.mark.rule("R-MEM-4")
async def test_a_tail_costs_no_more_in_a_long_conversation(path: Path, steps: list[None]) -> None:
    store = SQLite(path)
    cost: dict[int, int] = {}
    for length in (100, 10_000):
        name = f"of {length}"
        await store.append(name, [user(str(n)) for n in range(length)], turn="t")
        await store.tail(name, limit=40)
        steps.clear()
        await store.tail(name, limit=40)
        cost[length] = len(steps)
    await store.close()
    assert cost[10_000] <= 1.5 * cost[100]


async def test_an_append_and_a_list_cost_no_more_in_a_long_conversation(
    path: Path, steps: list[None]
) -> None:
    store = SQLite(path)
    cost: dict[int, int] = {}
    for length in (100, 10_000):
        name = f"of {length}"
        await store.append(name, [user(str(n)) for n in range(length)], turn="t")
        steps.clear()
        await store.append(name, [user("and?"), assistant("Yes.")], turn="t")
        await store.conversations(limit=1)
        cost[length] = len(steps)
    await store.close()
    assert cost[10_000] <= 1.5 * cost[100]


def test_importing_and_making_a_store_loads_no_database_library() -> None:
    script = (
        "import sys; from retinue.stores import SQLite; SQLite('x.db');"
        "print(sorted({'sqlalchemy', 'alembic'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_new_database_is_made_without_alembic(path: Path) -> None:
    script = """
async def main():
    store = SQLite(path)
    await store.append("c", [user("hi")], turn="t")
    await store.close()
asyncio.run(main())
print("alembic" in sys.modules)
"""
    with child(script, path) as other:
        assert other.rest() == "False"


def test_without_sqlalchemy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[sqlite\]'"):
        SQLite(":memory:")


def test_a_store_that_nobody_closed_lets_go_of_its_file(path: Path) -> None:
    store = SQLite(path)
    asyncio.run(store.append("c", [user("hi")], turn="t"))
    log = path.with_name("chats.db-wal")
    assert log.exists()
    del store
    deadline = time.monotonic() + 20
    while log.exists():  # SQLite removes it when the last connection closes
        assert time.monotonic() < deadline
        gc.collect()  # in vain while the thread has not yet put the append out of its hands


def test_a_script_that_ends_without_closing_leaves_the_file_alone(path: Path) -> None:
    script = """
store = SQLite(path)
asyncio.run(store.append("c", [user("hi")], turn="t"))
print("stored")
"""
    with child(script, path) as other:
        assert other.rest() == "stored"
    assert [file.name for file in path.parent.iterdir()] == [path.name]
