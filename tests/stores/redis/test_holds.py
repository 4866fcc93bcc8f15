"""A hold on a conversation of a Redis server: renewed while its holder lives, and lost with it."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
import redis

from retinue.errors import StoreError
from retinue.messages import user
from retinue.stores import Redis
from retinue.testing.writing import soon
from tests.stores.children import child
from tests.stores.redis.holders import holder, overtake
from tests.stores.redis.servers import OwnServer
from tests.stores.shared import free
from tests.stores.test_writers import is_busy

pytestmark = [pytest.mark.rule("R-MEM-6", "R-MEM-7"), pytest.mark.behaviour("B-ME-7")]


async def test_a_killed_process_holds_for_no_longer_than_its_lease(
    redis_server: str, prefix: str, store: Redis
) -> None:
    with holder(redis_server, prefix, lease=0.5) as (other, _):
        assert await is_busy(store)
        other.kill()
        async with asyncio.timeout(5):
            await free(store)


async def test_a_hold_is_renewed_while_its_holder_s_loop_is_busy(
    redis_server: str, prefix: str
) -> None:
    script = """
import time
from retinue.stores import Redis
async def main():
    async with Redis(path, prefix=sys.argv[2], lease=0.4).writing("c"):
        print("held", flush=True)
        time.sleep(float(sys.stdin.readline()))
        print("awake", flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""
    store = Redis(redis_server, prefix=prefix, lease=0.4)
    with child(script, redis_server, prefix) as other:
        assert other.said() == "held"
        other.tell("1")
        assert other.said() == "awake"
        assert await is_busy(store)
        other.tell()
        other.rest()
    await store.close()


async def test_a_hold_is_renewed_after_its_process_has_forked(
    redis_server: str, prefix: str, store: Redis
) -> None:
    script = """
import os
from retinue.stores import Redis
async def main():
    async with Redis(path, prefix=sys.argv[2], lease=0.4).writing("c"):
        process = os.fork()
        if not process:
            os._exit(0)
        os.waitpid(process, 0)
        await asyncio.sleep(1)  # longer than the lease
        print("held", flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""
    with child(script, redis_server, prefix) as other:
        assert other.said() == "held"
        assert await is_busy(store)
        other.tell()
        other.rest()


async def test_a_forked_child_does_not_keep_up_the_hold_of_its_dead_parent(
    redis_server: str, prefix: str, store: Redis
) -> None:
    script = """
import os
from retinue.stores import Redis
store = Redis(path, prefix=sys.argv[2], lease=0.4)

def fork():
    if os.fork():
        os._exit(0)
    asyncio.run(store.append("d", [user("hi")], turn="t"))
    print("child", flush=True)
    sys.stdin.readline()
    os._exit(0)

async def main():
    async with store.writing("c"):
        await asyncio.to_thread(fork)
asyncio.run(main())
"""
    with child(script, redis_server, prefix) as process:
        assert process.said() == "child"
        async with asyncio.timeout(5):
            await free(store)
        process.tell()


async def test_a_process_that_was_halted_and_overtaken_writes_no_more(
    redis_server: str, prefix: str, store: Redis
) -> None:
    with holder(redis_server, prefix, lease=1.0) as (other, number):
        os.kill(number, signal.SIGSTOP)
        async with asyncio.timeout(5), store.writing("c"):
            os.kill(number, signal.SIGCONT)
            other.tell()
            assert "The hold on conversation 'c'" in other.rest()
            await store.append("c", [user("from here")], turn="t")
    assert [entry.message.text for entry in await store.tail("c")] == ["from here"]


async def test_a_process_that_was_halted_and_not_overtaken_goes_on(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    with holder(redis_server, prefix, lease=1.0) as (other, number):
        os.kill(number, signal.SIGSTOP)
        await asyncio.sleep(1.5)  # longer than the lease
        os.kill(number, signal.SIGCONT)
        other.tell()
        assert other.rest() == ""
    assert [entry.message.text for entry in await store.tail("c")] == ["from the child"]


async def test_every_write_of_a_holder_that_was_overtaken_is_refused(
    prefix: str, store: Redis, admin: redis.Redis
) -> None:
    message = user("hi")
    await store.append("c", [message], turn="t")
    holding = store.writing("c")
    await holding.__aenter__()
    overtake(admin, prefix)
    for write in (
        store.append("c", [user("more")], turn="t"),
        store.revise("c", message.with_text("other")),
        store.hold("c", "p", b"document"),
        store.release("c", "p"),
        store.rollback("c", after=0),
        store.prune("c", before=9),
        store.delete("c"),
    ):
        with pytest.raises(StoreError, match=r"hold on conversation 'c' in Redis .* was lost"):
            await soon(write)
    await store.fork("c", "d")  # which changes nothing here
    await store.append("d", [user("more")], turn="t")
    assert [entry.message.text for entry in await store.tail("c")] == ["hi"]
    with pytest.raises(StoreError, match="look at what others may have stored"):
        await holding.__aexit__(None, None, None)


async def test_a_holder_that_was_overtaken_does_not_free_the_hold_of_another(
    redis_server: str, prefix: str, store: Redis, admin: redis.Redis
) -> None:
    with pytest.raises(StoreError, match="was lost while this turn wrote"):
        async with store.writing("c"):
            overtake(admin, prefix)
    assert admin.hget(f"{prefix}lock:c", "holder") == "somebody else"
    assert await is_busy(store)


async def test_a_server_that_forgot_the_hold_tells_its_holder(
    prefix: str, store: Redis, admin: redis.Redis
) -> None:
    holding = store.writing("c")
    await holding.__aenter__()
    admin.delete(f"{prefix}lock:c")
    with pytest.raises(StoreError, match="the server forgot it"):
        await store.append("c", [user("hi")], turn="t")
    with pytest.raises(StoreError, match="the server forgot it"):
        await holding.__aexit__(None, None, None)
    assert await store.tail("c") == []


async def test_closing_leaves_a_hold_until_it_is_freed(
    redis_server: str, prefix: str, admin: redis.Redis
) -> None:
    store, other = (Redis(redis_server, prefix=prefix, lease=0.4) for _ in range(2))
    async with store.writing("c"):
        await store.close()
        await asyncio.sleep(0.8)  # longer than the lease
        # Within a process the stores share a line, so the server is asked.
        ending = float(str(admin.hget(f"{prefix}lock:c", "until")))
        seconds, _ = admin.time()  # pyright: ignore[reportGeneralTypeIssues]
        assert ending > seconds * 1_000
    await soon(free(other))
    await other.close()


async def test_a_hold_outlives_a_server_that_is_started_anew_with_its_data(
    own: Callable[..., OwnServer],
) -> None:
    server = own("appendonly yes", "appendfsync always")
    store = Redis(server.url)
    async with store.writing("c"):
        server.stop()
        server.start()
        await store.append("c", [user("hi")], turn="t")
    await store.close()


async def test_a_hold_that_a_server_lost_with_its_data_is_told(
    own: Callable[..., OwnServer],
) -> None:
    server = own()
    store = Redis(server.url)
    holding = store.writing("c")
    await holding.__aenter__()
    server.stop()
    server.start()
    with pytest.raises(StoreError, match=r"hold on conversation 'c' .*was lost"):
        await store.append("c", [user("hi")], turn="t")
    with pytest.raises(StoreError, match=r"hold on conversation 'c' .*was lost"):
        await holding.__aexit__(None, None, None)
    assert await store.tail("c") == []
    await store.close()
