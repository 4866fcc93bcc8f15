"""What holds of every store in a server that objects, threads and processes share."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator

import pytest
from msgspec import Struct

from retinue.messages import user
from retinue.stores import Store
from retinue.testing.writing import Writer, soon
from tests.stores.children import Child, child
from tests.stores.proxy import proxy
from tests.stores.test_writers import is_busy


class Place(Struct, frozen=True):
    """Where the stores of a test are.

    Attributes:
        url: the server.
        name: what keeps the test apart from others there.
        open: makes a store of a URL.
        script: does so in another process, from `path` and `sys.argv[2]`.
    """

    url: str
    name: str
    open: Callable[[str], Store]
    script: str

    @contextlib.contextmanager
    def children(self, script: str, *each: str) -> Iterator[list[Child]]:
        """Processes that run the script, each with `store` and an argument of its own. They wait
        for a line once all of them are ready."""
        with contextlib.ExitStack() as stack:
            whole = f"{self.script}\n{script}"
            found = [stack.enter_context(child(whole, self.url, self.name, one)) for one in each]
            for process in found:
                assert process.said() == "ready"
            yield found


HOLD = """
async def main():
    async with store.writing("c"):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""

WRITE = """
async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(30):
        async with store.writing("c"):
            await store.append("c", [user("?"), user("!")], turn=sys.argv[3])
            await store.append("c", [user(".")], turn=sys.argv[3])
        await store.append("own " + sys.argv[3], [user(str(n))], turn="t")
    await store.close()
asyncio.run(main())
"""

RELEASE = """
async def main():
    await store.held("c")
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum([await store.release("c", str(n)) for n in range(50)]))
    await store.close()
asyncio.run(main())
"""


async def free(store: Store, conversation: str = "c") -> None:
    """Returns when the conversation has been free."""
    async with store.writing(conversation):
        pass


async def texts(store: Store, conversation: str = "c") -> list[str]:
    """What the messages of a conversation say."""
    return [entry.message.text for entry in await store.tail(conversation)]


@pytest.mark.rule("R-MEM-6", "R-MEM-7")
@pytest.mark.behaviour("B-ME-7")
class SharedStore:
    """A store of a server. Subclasses have the fixtures `place` and `store`."""

    async def test_another_process_that_writes_is_waited_for(
        self, place: Place, store: Store
    ) -> None:
        with place.children(HOLD, "") as (other,):
            assert await is_busy(store)
            assert not await is_busy(store, "another")
            log: list[str] = []
            waiting = Writer(store, "here", log)
            await store.append("c", [user("hi")], turn="t")
            assert log == []
            other.tell()
            await waiting.finish()
        assert log == ["here"]

    async def test_a_writer_that_is_cancelled_as_the_lock_is_taken_leaves_the_conversation_free(
        self, place: Place, store: Store
    ) -> None:
        async with proxy(place.url) as between:
            there = place.open(between.url)
            await free(there)
            between.hold_answers()
            waiting = Writer(there, "there", [])
            await soon(between.answered.wait())
            waiting.task.cancel()
            await asyncio.wait([waiting.task])
            assert await is_busy(store)  # the server has given the lock, and nobody was told
            between.let_go()
            await soon(free(store))
            await there.close()

    async def test_two_objects_share_the_line(self, place: Place, store: Store) -> None:
        other = place.open(place.url)
        log: list[str] = []
        first = Writer(store, "first", log)
        await soon(first.entered.wait())
        second = Writer(other, "second", log)
        await asyncio.sleep(0)
        third = Writer(store, "third", log)
        for writer in (first, second, third):
            await writer.finish()
        assert log == ["first", "second", "third"]
        await other.close()

    async def test_three_processes_race_on_one_new_conversation(
        self, place: Place, store: Store
    ) -> None:
        with place.children(WRITE, *"abc") as processes:
            for process in processes:
                process.tell()
            for process in processes:
                process.rest()
        log = [(entry.turn, entry.message.text) for entry in await store.tail("c")]
        assert sorted(log) == sorted((t, x) for t in "abc" for x in "?!." for _ in range(30))
        for n in range(0, len(log), 3):
            assert log[n : n + 3] == [(log[n][0], "?"), (log[n][0], "!"), (log[n][0], ".")]
        for name in "abc":
            assert await texts(store, f"own {name}") == [str(n) for n in range(30)]

    @pytest.mark.behaviour("B-PA-5")
    async def test_of_three_processes_that_release_a_pause_one_is_told_yes(
        self, place: Place, store: Store
    ) -> None:
        await store.append("c", [user("hi")], turn="t")
        with place.children(RELEASE, *"abc") as processes:
            await store.hold("c", "49", b"document")
            for process in processes:
                process.tell()
            assert sum(int(process.rest()) for process in processes) == 1

    def test_one_store_serves_several_event_loops_at_once(self, place: Place) -> None:
        store = place.open(place.url)

        def chat(name: str) -> None:
            async def run() -> None:
                for n in range(20):
                    async with store.writing("shared"):
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
