"""A process that forks while threads use its stores."""

from pathlib import Path

from tests.stores.children import child

FORK = """
import os, threading
store = SQLite(path)

async def store_one(turn):
    await store.append("c", [user(turn)], turn=turn)

def fork(name):
    start.wait()
    for number in range(10):
        process = os.fork()
        if not process:
            asyncio.run(store_one(f"{name}{number}"))
            os._exit(0)
        os.waitpid(process, 0)

asyncio.run(store_one("first"))
start = threading.Barrier(3)
threads = [threading.Thread(target=fork, args=(name,)) for name in "abc"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

async def main():
    print(len(await store.tail("c")))
    await store.close()

asyncio.run(main())
"""


def test_threads_may_fork_at_once_and_the_store_goes_on_in_all_children(tmp_path: Path) -> None:
    with child(FORK, tmp_path / "x.db") as process:
        assert process.rest() == "31"
