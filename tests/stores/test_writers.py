"""One writer per conversation: over objects, event loops, threads and processes."""

import asyncio
import multiprocessing
import os
import sqlite3
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from retinue.errors import ConversationBusy
from retinue.messages import user
from retinue.stores import InMemory, SQLite, Store
from retinue.testing.writing import Writer, soon
from tests.stores.children import child, holder

pytestmark = [pytest.mark.rule("R-MEM-6"), pytest.mark.behaviour("B-ME-7")]


async def is_busy(store: Store, conversation: str = "c") -> bool:
    try:
        async with store.writing(conversation, wait=False):
            return False
    except ConversationBusy:
        return True


async def test_two_objects_on_one_file_share_the_line(tmp_path: Path) -> None:
    os.symlink(tmp_path, tmp_path / "link")
    one, two = SQLite(tmp_path / "x.db"), SQLite(tmp_path / "link" / "x.db")
    async with one.writing("c"):
        assert await is_busy(two)
    assert not await is_busy(two)


async def test_two_files_have_nothing_to_do_with_each_other(tmp_path: Path) -> None:
    stores = [SQLite(tmp_path / "x.db"), SQLite(tmp_path / "y.db"), SQLite(":memory:")]
    stores += [SQLite(":memory:")]
    async with stores[0].writing("c"), stores[1].writing("c"), stores[2].writing("c"):
        assert [await is_busy(store) for store in stores] == [True, True, True, False]


def on_file(tmp_path: Path) -> Store:
    return SQLite(tmp_path / "x.db")


def in_memory(_: Path) -> Store:
    return InMemory()


@pytest.mark.parametrize("make", [on_file, in_memory])
def test_writers_of_several_event_loops_wait_for_each_other(
    tmp_path: Path, make: Callable[[Path], Store]
) -> None:
    store = make(tmp_path)
    inside: list[str] = []
    overlaps: list[str] = []

    async def write(name: str) -> None:
        for _ in range(20):
            async with store.writing("c"):
                inside.append(name)
                await asyncio.sleep(0)
                overlaps.extend(inside[:-1])
                inside.remove(name)

    threads = [threading.Thread(target=lambda n=n: asyncio.run(write(n))) for n in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert overlaps == []
    assert not asyncio.run(is_busy(store))


async def test_a_waiter_whose_event_loop_is_gone_is_passed_over() -> None:
    store = InMemory()
    log: list[str] = []
    first = Writer(store, "first", log)
    await soon(first.entered.wait())

    waiting = enter(store)

    def abandon() -> None:
        loop = asyncio.new_event_loop()
        loop.call_soon(waiting.send, None)
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    await asyncio.to_thread(abandon)
    last = Writer(store, "last", log)
    await first.finish()
    await last.finish()
    waiting.close()
    assert log == ["first", "last"]


async def enter(store: Store) -> None:
    async with store.writing("c"):
        raise AssertionError("a writer without an event loop was let in")


async def test_another_process_that_writes_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = SQLite(path)
    with holder(path, "c") as other:
        assert await is_busy(store)
        assert not await is_busy(store, "another")
        log: list[str] = []
        waiting = Writer(store, "here", log)
        await asyncio.sleep(0.05)
        assert log == []
        other.tell()
        await waiting.finish()
    assert log == ["here"]


async def test_a_waiter_for_another_process_can_be_cancelled(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "x.db")
    with holder(tmp_path / "x.db", "c"):
        waiting = Writer(store, "here", [])
        await asyncio.sleep(0.01)
        waiting.task.cancel()
        await asyncio.wait([waiting.task])
        assert waiting.task.cancelled()
    assert not await is_busy(store)


async def test_a_killed_process_holds_no_longer(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "x.db")
    with holder(tmp_path / "x.db", "c") as other:
        assert await is_busy(store)
        other.kill()
        async with asyncio.timeout(20), store.writing("c"):
            pass


async def test_leaving_one_conversation_leaves_the_others_held(tmp_path: Path) -> None:
    # POSIX drops all locks of a file when any descriptor of it is closed in the process.
    path = tmp_path / "x.db"
    store = SQLite(path)
    probe = """
async def main():
    try:
        async with SQLite(path).writing("kept", wait=False):
            print("free")
    except Exception as error:
        print(type(error).__name__)
asyncio.run(main())
"""
    async with store.writing("kept"):
        async with store.writing("left"):
            pass
        async with SQLite(path).writing("left"):
            pass
        with child(probe, path) as other:
            assert other.rest() == "ConversationBusy"
    with child(probe, path) as other:
        assert other.rest() == "free"


async def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "x.db")
    before = set(os.listdir("/dev/fd"))
    for n in range(5):
        async with store.writing(str(n)), store.writing("c"):
            pass
    assert len(os.listdir("/dev/fd")) == len(before)


WRITE = """
async def main():
    store = SQLite(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(30):
        async with store.writing("c"):
            await store.append("c", [user("?"), user("!")], turn=sys.argv[2])
            await store.append("c", [user(".")], turn=sys.argv[2])
        await store.append("own " + sys.argv[2], [user(str(n))], turn="t")
    await store.close()
asyncio.run(main())
"""


@pytest.mark.rule("R-MEM-7")
async def test_two_processes_write_one_new_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with child(WRITE, path, "a") as a, child(WRITE, path, "b") as b:
        for process in (a, b):
            assert process.said() == "ready"
        for process in (a, b):
            process.tell()
        for process in (a, b):
            process.rest()
    store = SQLite(path)
    log = [(entry.turn, entry.message.text) for entry in await store.tail("c")]
    assert sorted(log) == sorted((t, x) for t in "ab" for x in "?!." for _ in range(30))
    for n in range(0, len(log), 3):
        assert log[n : n + 3] == [(log[n][0], "?"), (log[n][0], "!"), (log[n][0], ".")]
    for name in ("own a", "own b"):
        texts = [entry.message.text for entry in await store.tail(name)]
        assert texts == [str(n) for n in range(30)]
    await store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def in_the_child(store: SQLite, parent: Connection) -> None:
    async def work() -> None:
        parent.send(await is_busy(store, "parent's"))
        async with store.writing("c", wait=False):
            await store.append("c", [user("from the child")], turn="t")
        parent.send("stored")
        parent.recv()
        parent.send(await is_busy(store, "parent's"))
        await store.append("c", [user("after the parent closed")], turn="t")

    asyncio.run(work())


def test_a_forked_child_uses_the_store_as_its_own(tmp_path: Path) -> None:
    # A connection that is carried over a fork has none of its locks in the child: when the parent
    # closes, it removes the log that the child goes on writing to.
    store = SQLite(tmp_path / "x.db")
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=in_the_child, args=(store, there))

    def heard() -> object:
        assert here.poll(60)
        return here.recv()

    async def run() -> list[str]:
        await store.append("c", [user("before the fork")], turn="t")
        async with store.writing("parent's"):
            process.start()
            assert await asyncio.to_thread(heard) is True
        assert await asyncio.to_thread(heard) == "stored"
        await store.append("c", [user("after the fork")], turn="t")
        await store.close()
        here.send("closed")
        assert await asyncio.to_thread(heard) is False
        await asyncio.to_thread(process.join, 60)
        assert process.exitcode == 0
        return [entry.message.text for entry in await store.tail("c")]

    try:
        assert asyncio.run(run()) == [
            "before the fork",
            "from the child",
            "after the fork",
            "after the parent closed",
        ]
        asyncio.run(store.close())
    finally:
        process.kill()
        process.join()
