"""The index in a file: kept, shared, forked, and what cannot be used."""

import asyncio
import multiprocessing
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from retinue.errors import ConfigError, RetrievalError
from retinue.messages import user
from retinue.retrieval import Document, Lexical
from retinue.stores import SQLite

BOUND = 60.0
"""Seconds after which a child has failed, on the slowest machine."""


async def filled(path: Path, documents: Iterable[Document | str] = ("The ship sails.",)) -> None:
    index = Lexical(path)
    await index.add_many(documents)
    await index.close()


async def failure(path: Path | str, **options: Any) -> str:
    index = Lexical(path, **options)
    try:
        with pytest.raises(RetrievalError) as caught:
            await index.add("text")
    finally:
        await index.close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_what_was_added_is_there_for_the_next_process(tmp_path: Path) -> None:
    await filled(tmp_path / "x.db", [Document("The ship sails.", "s", {"tags": ["a", 1, None]})])
    index = Lexical(str(tmp_path / "x.db"))
    (found,) = await index.retrieve("ship")
    assert (found.id, found.meta) == ("s", {"tags": ["a", 1, None]})
    await index.close()


async def test_a_closed_index_opens_anew(tmp_path: Path) -> None:
    index = Lexical(tmp_path / "x.db")
    await index.add("The ship sails.")
    await index.close()
    await index.close()
    assert len(await index.retrieve("ship")) == 1
    await index.close()


async def test_conversations_may_lie_in_the_same_file(tmp_path: Path) -> None:
    store, index = SQLite(tmp_path / "x.db"), Lexical(tmp_path / "x.db")
    await store.append("c", [user("hi")], turn="t")
    await index.add("The ship sails.")
    await store.append("c", [user("again")], turn="u")
    assert len(await store.tail("c")) == 2
    assert len(await index.retrieve("ship")) == 1
    await store.close()
    await index.close()


async def _add(path: str, name: str) -> None:
    index = Lexical(path)
    for number in range(20):
        await index.add(Document(f"{name} wrote number {number}.", f"{name}{number}"))
        await index.retrieve(name)
    await index.close()


def write(path: str, name: str) -> None:
    asyncio.run(_add(path, name))


async def test_several_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=write, args=(str(path), name)) for name in ("ann", "bob")]
    for child in children:
        child.start()
    await asyncio.to_thread(write, str(path), "cid")
    for child in children:
        await asyncio.to_thread(child.join, BOUND)
        assert child.exitcode == 0
    index = Lexical(path)
    assert await index.count() == 60
    assert len(await index.retrieve("bob", 100)) == 20
    await index.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("place", ["x.db", ":memory:"])
def test_a_forked_process_goes_on_with_an_index_of_the_parent(tmp_path: Path, place: str) -> None:
    index = Lexical(place if place == ":memory:" else tmp_path / place)
    asyncio.run(index.add("The ship sails."))
    child = os.fork()
    if not child:
        found: Any = ()
        try:
            found = asyncio.run(asyncio.wait_for(index.retrieve("ship"), BOUND))
        finally:
            os._exit(0 if len(found) == 1 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(asyncio.run(index.retrieve("ship"))) == 1
    asyncio.run(index.close())


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "no" / "x.db"
    assert f"{path} cannot be opened; make its folder" in await failure(path)


async def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "diary.db"
    path.write_bytes(b"Dear diary, " * 1_000)
    assert f"{path} is not a SQLite database; give" in await failure(path)
    assert path.read_bytes() == b"Dear diary, " * 1_000


async def test_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await filled(path, [f"The ship {n} sails. " * 20 for n in range(100)])
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xa5" * (path.stat().st_size - 4_096))
    assert f"{path} is damaged; delete it" in await failure(path)


async def test_a_file_that_another_locks_for_too_long(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await filled(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sentence = await failure(path, busy_timeout=0.05)
    other.close()
    assert f"{path} is locked by another process; end" in sentence


async def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await filled(path)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE retrieval_version SET version = 99")
    other.close()
    assert "later version of retinue" in await failure(path)


async def test_an_index_works_once_its_file_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"no database " * 100)
    index = Lexical(path)
    with pytest.raises(RetrievalError):
        await index.add("text")
    path.unlink()
    await index.add("text")
    assert await index.count() == 1
    await index.close()


async def test_a_write_that_fails_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await filled(path)
    with sqlite3.connect(path) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON retrieval_passages WHEN new.id = 'b'"
            " BEGIN SELECT RAISE(ABORT, 'no room'); END"
        )
    other.close()
    index = Lexical(path)
    with pytest.raises(RetrievalError, match=r"x\.db cannot be used: SQLite says 'no room'"):
        await index.add_many([Document("first", "a"), Document("second", "b")])
    assert await index.count() == 1
    assert await index.retrieve("first") == []
    await index.close()


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("", {}, "no path of a file"),
        ("a\x00b", {}, "no path of a file"),
        ("x.db", {"busy_timeout": -1}, "give seconds"),
        ("x.db", {"size": 0}, "holds nothing"),
        ("x.db", {"size": 100, "overlap": 50}, "less than half"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(
    path: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        Lexical(path, **options)
