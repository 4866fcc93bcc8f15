"""A file that cannot be used: one sentence that names it and the way out."""

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from retinue.errors import StoreError
from retinue.messages import user
from retinue.stores import SQLite

NOBODY: Final = 65_534


async def fill(path: Path, size: int = 1) -> None:
    """A good database at the path, closed."""
    store = SQLite(path)
    await store.append("c", [user("x" * 1_000) for _ in range(size)], turn="t")
    await store.close()


async def failure(path: Path | str, **options: Any) -> str:
    """The sentence with which the store refuses to write; its cause is kept."""
    store = SQLite(path, **options)
    try:
        with pytest.raises(StoreError) as caught:
            await store.append("c", [user("hi")], turn="t")
    finally:
        await store.close()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert re.search(r"[;,] [\w\s`<>./-]+.*\.$", sentence), f"no way out is given: {sentence}"
    return sentence


@contextlib.contextmanager
def ordinary_user() -> Iterator[Path]:
    """A folder that the test may write, while the test is not the superuser, who may do all."""
    folder = Path(tempfile.mkdtemp())
    superuser = os.geteuid() == 0
    if superuser:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        folder.chmod(0o700)
        if superuser:
            os.seteuid(0)
        shutil.rmtree(folder)


async def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert f"The folder {tmp_path / 'no'} " in await failure(tmp_path / "no" / "x.db")


async def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file'} is a file" in await failure(tmp_path / "file" / "x.db")


async def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    assert f"{tmp_path} is a folder" in await failure(tmp_path)


@pytest.mark.parametrize(
    "content", [b"Dear diary, " * 1_000, b"\x00" * 100, b"SQLite format 3\x00" + b"\xff" * 4_096]
)
async def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "diary.db").write_bytes(content)
    assert f"{tmp_path / 'diary.db'} is " in await failure(tmp_path / "diary.db")
    assert (tmp_path / "diary.db").read_bytes() == content


async def test_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await fill(path, 200)
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xa5" * (path.stat().st_size - 4_096))
    assert f"{path} is damaged; restore it" in await failure(path)


@pytest.mark.parametrize("cut", [10, 5_000])
async def test_a_database_cut_short(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.db"
    await fill(path, 200)
    with path.open("r+b") as file:
        file.truncate(cut)
    assert str(path) in await failure(path)


async def test_a_file_that_may_not_be_written() -> None:
    with ordinary_user() as folder:
        path = folder / "x.db"
        await fill(path)
        path.chmod(0o444)
        folder.chmod(0o555)
        assert f"{path} cannot be " in await failure(path)


async def test_a_file_that_may_not_be_read() -> None:
    with ordinary_user() as folder:
        path = folder / "x.db"
        await fill(path)
        path.chmod(0)
        assert f"{path} cannot be opened" in await failure(path)


async def test_a_lock_file_that_may_not_be_made() -> None:
    with ordinary_user() as folder:
        folder.chmod(0o555)
        with pytest.raises(StoreError, match=r"x\.db\.lock.*make its folder and the file writable"):
            async with SQLite(folder / "x.db").writing("c"):
                pass


async def test_a_database_that_another_locks_for_too_long(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    await fill(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sentence = await failure(path, busy_timeout=0.05)
    other.close()
    assert f"{path} is locked by another process, and was so for 0.05 seconds; end" in sentence


async def test_a_new_database_that_another_locks_for_too_long(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    sentence = await failure(path, busy_timeout=0.05)
    other.close()
    assert f"{path} is locked" in sentence


async def test_a_disk_that_is_full(tmp_path: Path) -> None:
    def shrink(connection: sqlite3.Connection, _: Any) -> None:
        connection.execute("PRAGMA max_page_count = 20")

    path = tmp_path / "x.db"
    await fill(path)
    event.listen(Pool, "connect", shrink)
    try:
        store = SQLite(path)
        big = [user("x" * 100_000) for _ in range(10)]
        with pytest.raises(StoreError, match=r"no space left.*x\.db; free some"):
            await store.append("d", big, turn="t")
        assert await store.tail("d") == []
        assert len(await store.tail("c")) == 1
    finally:
        event.remove(Pool, "connect", shrink)
    await store.close()


async def test_neither_the_error_nor_its_causes_repeat_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    await fill(path)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("ALTER TABLE retinue_entries DROP COLUMN body")
    store = SQLite(path)
    with pytest.raises(StoreError) as caught:
        await store.append("c", [user("my card is 1234")], turn="t")
    await store.close()
    error: BaseException | None = caught.value
    while error is not None:
        assert "1234" not in str(error)
        error = error.__cause__


async def test_the_cause_is_kept(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    with pytest.raises(StoreError) as caught:
        await SQLite(tmp_path / "x.db").tail("c")
    assert "file is not a database" in str(caught.value.__cause__)


def repair_folder(path: Path) -> None:
    path.parent.mkdir()


def repair_file(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(("place", "repair"), [("no/x.db", repair_folder), ("x.db", repair_file)])
async def test_a_store_works_once_its_file_is_mended(
    tmp_path: Path, place: str, repair: Callable[[Path], None]
) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    store = SQLite(tmp_path / place)
    with pytest.raises(StoreError):
        await store.tail("c")
    repair(tmp_path / place)
    await store.append("c", [user("hi")], turn="t")
    assert len(await store.tail("c")) == 1
    await store.close()


async def test_a_database_restored_under_an_open_store_is_read(tmp_path: Path) -> None:
    path, backup = tmp_path / "x.db", tmp_path / "backup.db"
    await fill(path, 200)
    shutil.copyfile(path, backup)
    store = SQLite(path)
    assert len(await store.tail("c", limit=1)) == 1
    with path.open("r+b") as file:
        file.write(b"\xa5" * path.stat().st_size)
    with pytest.raises(StoreError, match=r"x\.db is damaged"):
        await store.tail("c")
    backup.replace(path)
    assert len(await store.tail("c")) == 200
    await store.close()
