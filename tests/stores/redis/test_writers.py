"""One writer per conversation of a Redis server: over objects and processes, in their order."""

import asyncio
import contextlib

import pytest
import redis

from retinue.errors import ConversationBusy
from retinue.messages import user
from retinue.stores import Redis
from retinue.testing.writing import Writer, soon
from tests.stores.children import Child, child
from tests.stores.proxy import proxy
from tests.stores.redis.holders import HOLD, free, holder, line
from tests.stores.sessions import until
from tests.stores.test_writers import is_busy

pytestmark = [pytest.mark.rule("R-MEM-6", "R-MEM-7"), pytest.mark.behaviour("B-ME-7")]


async def test_another_process_that_writes_is_waited_for(
    redis_server: str, prefix: str, store: Redis
) -> None:
    with holder(redis_server, prefix) as (other, _):
        assert await is_busy(store)
        assert not await is_busy(store, "another")
        log: list[str] = []
        waiting = Writer(store, "here", log)
        await store.append("c", [user("hi")], turn="t")
        assert log == []
        other.tell()
        await waiting.finish()
    assert log == ["here"]


async def test_processes_write_in_the_order_in_which_they_came(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    script = """
from retinue.stores import Redis
async def main():
    store = Redis(path, prefix=sys.argv[2])
    async with store.writing("c"):
        await store.append("c", [user(sys.argv[3])], turn="t")
    await store.close()
asyncio.run(main())
"""
    with contextlib.ExitStack() as stack:
        async with store.writing("c"):
            others: list[Child] = []
            for n in range(4):
                others.append(stack.enter_context(child(script, redis_server, prefix, str(n))))
                await until(lambda n=n: line(admin, prefix) == n + 1)
        for other in others:
            other.rest()
    assert [entry.message.text for entry in await store.tail("c")] == ["0", "1", "2", "3"]


async def test_who_does_not_wait_overtakes_nobody_in_the_line(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    admin.hset(f"{prefix}lock:c", "tickets", 1)
    admin.zadd(f"{prefix}line:c", {"somebody": 1})
    admin.zadd(f"{prefix}waits:c", {"somebody": 2**50})
    assert await is_busy(store)
    admin.zadd(f"{prefix}waits:c", {"somebody": 1})  # who has died since
    assert not await is_busy(store)


async def test_a_process_that_is_killed_in_the_line_keeps_nobody_waiting(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    script = HOLD.replace('print("held", flush=True)', 'raise SystemExit("let in")')
    async with store.writing("c"):
        with child(script, redis_server, prefix, "0.5") as other:
            await until(lambda: line(admin, prefix) == 1)
            other.kill()
    async with asyncio.timeout(5):
        await free(store)


async def test_a_waiter_for_another_process_can_be_cancelled(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    with holder(redis_server, prefix) as (other, _):
        waiting = Writer(store, "here", [])
        await until(lambda: line(admin, prefix) == 1)
        waiting.task.cancel()
        await asyncio.wait([waiting.task])
        assert waiting.task.cancelled()
        await until(lambda: line(admin, prefix) == 0)
        other.tell()
        other.rest()
    await soon(free(store))


async def test_a_writer_that_is_cancelled_as_the_lock_is_taken_leaves_the_conversation_free(
    redis_server: str, prefix: str, store: Redis
) -> None:
    async with proxy(redis_server) as between:
        there = Redis(between.url, prefix=prefix)
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


async def test_two_objects_on_one_server_share_the_line(
    redis_server: str, prefix: str, store: Redis
) -> None:
    other = Redis(redis_server, prefix=prefix)
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


WRITE = """
from retinue.stores import Redis
async def main():
    store = Redis(path, prefix=sys.argv[2])
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


async def test_three_processes_race_on_one_new_conversation(
    redis_server: str, prefix: str, store: Redis
) -> None:
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(child(WRITE, redis_server, prefix, name)) for name in "abc"
        ]
        for process in processes:
            assert process.said() == "ready"
        for process in processes:
            process.tell()
        for process in processes:
            process.rest()
    log = [(entry.turn, entry.message.text) for entry in await store.tail("c")]
    assert sorted(log) == sorted((t, x) for t in "abc" for x in "?!." for _ in range(30))
    for n in range(0, len(log), 3):
        assert log[n : n + 3] == [(log[n][0], "?"), (log[n][0], "!"), (log[n][0], ".")]


@pytest.mark.behaviour("B-PA-5")
async def test_of_three_processes_that_release_a_pause_one_is_told_yes(
    redis_server: str, prefix: str, store: Redis
) -> None:
    script = """
from retinue.stores import Redis
async def main():
    store = Redis(path, prefix=sys.argv[2])
    await store.held("c")
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum([await store.release("c", str(n)) for n in range(50)]))
    await store.close()
asyncio.run(main())
"""
    await store.append("c", [user("hi")], turn="t")
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(child(script, redis_server, prefix)) for _ in range(3)]
        for process in processes:
            assert process.said() == "ready"
        await store.hold("c", "49", b"document")
        for process in processes:
            process.tell()
        assert sum(int(process.rest()) for process in processes) == 1


async def test_a_turn_that_is_refused_has_left_no_trace(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    async with store.writing("c"):
        with pytest.raises(ConversationBusy):
            async with store.writing("c", wait=False):
                pass
    assert list(admin.scan_iter(f"{prefix}*")) == []
