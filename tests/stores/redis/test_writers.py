"""One writer per conversation of a Redis server: over objects and processes, in their order."""

import asyncio
import contextlib
from functools import partial

import pytest
import redis

from retinue.errors import ConversationBusy
from retinue.stores import Redis
from retinue.testing.writing import Writer, soon
from tests.stores.children import Child, child
from tests.stores.redis.holders import HOLD, holder, line
from tests.stores.sessions import until
from tests.stores.shared import Place, SharedStore, free
from tests.stores.test_writers import is_busy

pytestmark = [pytest.mark.rule("R-MEM-6", "R-MEM-7"), pytest.mark.behaviour("B-ME-7")]


@pytest.fixture
def place(redis_server: str, prefix: str) -> Place:
    script = "from retinue.stores import Redis; store = Redis(path, prefix=sys.argv[2])"
    return Place(redis_server, prefix, partial(Redis, prefix=prefix), script)


class TestRedis(SharedStore):
    """What all such stores do."""


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


async def test_a_turn_that_is_refused_has_left_no_trace(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    async with store.writing("c"):
        with pytest.raises(ConversationBusy):
            async with store.writing("c", wait=False):
                pass
    assert list(admin.scan_iter(f"{prefix}*")) == []
