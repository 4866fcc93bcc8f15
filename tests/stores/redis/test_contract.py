"""The Redis store does what the contract says, on a real server, and what it costs there."""

import asyncio
import contextlib
import gc
import sys
from typing import Any

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from retinue.errors import ConfigError, MissingExtraError
from retinue.messages import assistant, user
from retinue.stores import EVERYONE, InMemory, Redis
from retinue.testing.stores import StoreContract
from retinue.testing.writing import soon
from tests.stores.children import child
from tests.stores.sessions import until
from tests.stores.shared import texts
from tests.stores.test_agreement import Step, anything, append, looks, outcome

held = [
    pytest.mark.rule("R-MEM-1", "R-MEM-6", "R-MEM-7", "R-MEM-8", "R-MEM-9"),
    pytest.mark.behaviour("B-ME-3", "B-ME-7", "B-ME-8", "B-ME-9", "B-ME-10"),
]


class TestRedis(StoreContract):
    pytestmark = held

    @pytest.fixture
    def store(self, store: Redis) -> Redis:
        return store


def connections(admin: redis.Redis) -> int:
    """How many connections all stores have to the server."""
    own = 1
    clients: dict[str, int] = admin.info("clients")  # pyright: ignore[reportAssignmentType]
    return clients["connected_clients"] - own


def calls(admin: redis.Redis) -> int:
    """How many commands the server has run, within scripts too."""
    stats: dict[str, dict[str, int]] = admin.info("commandstats")  # pyright: ignore[reportAssignmentType]
    return sum(one["calls"] for name, one in stats.items() if "info" not in name)


@pytest.mark.rule("R-MEM-1", "R-MEM-7", "R-MEM-8", "R-MEM-9")
def test_any_series_of_calls_has_the_same_outcome_as_in_memory(
    redis_server: str, prefix: str
) -> None:
    async def run(series: list[Step]) -> None:
        memory, store = InMemory(), Redis(redis_server, prefix=prefix)
        try:
            for call in [*series, *looks]:
                assert await outcome(memory, call) == await outcome(store, call)
            for summary in await store.conversations(owner=EVERYONE):
                await store.delete(summary.id, owner=EVERYONE)
        finally:
            await store.close()

    @settings(max_examples=100)
    @given(st.lists(append | anything, max_size=25))
    def agree(series: list[Step]) -> None:
        asyncio.run(run(series))

    agree()


async def test_ids_that_look_like_other_keys_stay_apart(store: Redis) -> None:
    names = ["clock", "everyone", "nobody", "owner:a", "a", ":a", "meta:a", "a:b", "a|b", "|", "*"]
    for name in names:
        await store.append(name, [user(name).with_(id=name)], turn=name, owner=name)
    await store.append("of nobody", [user("hi")], turn="t")
    for name in names:
        assert await store.known(name, names, owner=name) == {name}
        (entry,) = await store.tail(name, owner=name)
        assert entry.turn == name
        (summary,) = await store.conversations(owner=name)
        assert (summary.id, summary.owner, summary.title) == (name, name, name)
    assert [one.id for one in await store.conversations()] == ["of nobody"]
    assert len(await store.conversations(owner=EVERYONE)) == len(names) + 1


async def test_two_prefixes_of_a_server_are_two_stores(
    redis_server: str, prefix: str, store: Redis
) -> None:
    other = Redis(redis_server, prefix=f"{prefix}meta:")
    await store.append("c", [user("one")], turn="t")
    await other.append("c", [user("two")], turn="t")
    assert (await texts(store), await texts(other)) == (["one"], ["two"])
    async with store.writing("c"), other.writing("c", wait=False):
        pass
    await other.close()


async def test_a_list_goes_on_over_the_pages_that_it_is_read_in(store: Redis) -> None:
    for n in range(2_100):
        await store.append(f"c{n}", [user("hi")], turn="t")
    listed = [summary.id for summary in await store.conversations(limit=2_050)]
    assert listed == [f"c{n}" for n in range(2_099, 49, -1)]
    assert len(await store.conversations(limit=9_999)) == 2_100


async def test_a_thousand_appends_of_fifty_tasks_are_all_kept(store: Redis) -> None:
    async def write(name: str) -> None:
        for n in range(20):
            await store.append("c", [user(f"{n}?"), assistant(f"{n}!")], turn=name)

    await asyncio.gather(*(write(str(n)) for n in range(50)))
    log = [(entry.turn, entry.message.text) for entry in await store.tail("c")]
    assert len(log) == 2_000
    for name in map(str, range(50)):
        said = [text for turn, text in log if turn == name]
        assert said == [text for n in range(20) for text in (f"{n}?", f"{n}!")]
    assert all(turn == log[n + 1][0] for n, (turn, _) in enumerate(log) if n % 2 == 0)


@pytest.mark.rule("R-MEM-4")
async def test_reading_costs_no_more_in_a_long_conversation(
    store: Redis, admin: redis.Redis
) -> None:
    costs: list[int] = []
    for length in (100, 10_000):
        log = [user(str(n)).with_(id=str(n)) for n in range(length)]
        await store.append(f"of {length}", log, turn="t")
        await store.tail(f"of {length}", limit=1)
        before = calls(admin)
        assert len(await store.tail(f"of {length}", limit=40, before=90)) == 40
        assert len(await store.head(f"of {length}", limit=40)) == 40
        assert len(await store.known(f"of {length}", ["1", "x"])) == 1
        costs.append(calls(admin) - before)
    assert costs[0] == costs[1]


async def test_calls_share_no_more_connections_than_the_pool_has(
    redis_server: str, prefix: str, admin: redis.Redis
) -> None:
    store = Redis(redis_server, prefix=prefix, pool=3)
    await asyncio.gather(*(store.append(str(n), [user("hi")], turn="t") for n in range(30)))
    assert connections(admin) == 3
    async with store.writing("c"):
        assert connections(admin) == 4
    await store.close()
    await until(lambda: connections(admin) == 0)


async def test_closing_finishes_what_was_asked_for(store: Redis, admin: redis.Redis) -> None:
    work = [asyncio.create_task(store.append("c", [user(str(n))], turn="t")) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*work)
    await until(lambda: connections(admin) == 0)
    assert len(await store.tail("c")) == 50


@pytest.mark.parametrize("error", [None, ZeroDivisionError(), asyncio.CancelledError()])
async def test_what_closing_leaves_to_a_holder_goes_with_it_however_it_ends(
    redis_server: str, prefix: str, admin: redis.Redis, error: BaseException | None
) -> None:
    store = Redis(redis_server, prefix=prefix)
    with contextlib.suppress(ZeroDivisionError, asyncio.CancelledError):
        async with store.writing("c"):
            await store.close()
            if error is not None:
                raise error
    await until(lambda: connections(admin) == 0)
    async with store.writing("c", wait=False):
        pass
    await store.close()


async def test_a_call_that_is_cancelled_is_finished_unseen(store: Redis) -> None:
    work = asyncio.create_task(store.append("c", [user("hi")], turn="t"))
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await store.close()
    assert await texts(store) == ["hi"]


async def test_a_store_that_nobody_closes_lets_go_when_it_is_thrown_away(
    redis_server: str, prefix: str, admin: redis.Redis
) -> None:
    store = Redis(redis_server, prefix=prefix)
    async with store.writing("c"):
        await store.append("c", [user("hi")], turn="t")
    del store
    gc.collect()
    await until(lambda: connections(admin) == 0)


@pytest.mark.rule("R-MEM-7")
async def test_a_script_that_ends_without_closing_leaves_what_it_stored(
    redis_server: str, prefix: str, store: Redis
) -> None:
    script = """
from retinue.stores import Redis
async def main():
    global store, late
    store = Redis(path, prefix=sys.argv[2])
    async with store.writing("c"):
        await store.append("c", [user("hi")], turn="t")
    late = asyncio.ensure_future(store.append("c", [user("late")], turn="t"))
    await asyncio.sleep(0)
print("redis" in sys.modules)
asyncio.run(main())
"""
    with child(script, redis_server, prefix) as other:
        assert other.rest() == "False"
    assert await texts(store) == ["hi", "late"]
    async with store.writing("c", wait=False):
        pass


async def test_a_forked_child_uses_the_store_as_its_own(
    redis_server: str, prefix: str, store: Redis
) -> None:
    script = """
import os
from retinue.errors import ConversationBusy
from retinue.stores import Redis
store = Redis(path, prefix=sys.argv[2])

async def write(text):
    await store.append("c", [user(text)], turn="t")

async def in_the_child():
    await write("child")
    try:
        async with store.writing("parent's", wait=False):
            print("free", flush=True)
    except ConversationBusy:
        print("busy", flush=True)

async def main():
    await write("before")
    async with store.writing("parent's"):
        process = await asyncio.to_thread(fork)
        await asyncio.to_thread(os.waitpid, process, 0)
    await write("after")
    await store.close()

def fork():
    process = os.fork()
    if not process:
        asyncio.run(in_the_child())
        os._exit(0)
    return process

asyncio.run(main())
"""
    with child(script, redis_server, prefix) as process:
        assert process.rest() == "busy"
    assert await texts(store) == ["before", "child", "after"]


async def test_what_a_later_version_wrote_is_left_alone(
    store: Redis, prefix: str, admin: redis.Redis
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.set(f"{prefix}format", "2")
    for work in (store.tail("c"), store.append("d", [user("hi")], turn="t"), store.conversations()):
        with pytest.raises(Exception, match="later version of retinue"):
            await soon(work)
    assert admin.exists(f"{prefix}meta:d") == 0


def test_without_redis_py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'retinue\[redis\]'"):
        Redis("redis://127.0.0.1")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"prefix": ""}, "prefix=''"),
        ({"prefix": "x" * 201}, "prefix='xxx"),
        ({"prefix": "é:"}, "printable ASCII"),
        ({"prefix": "a\n"}, "printable ASCII"),
        ({"prefix": b"a:"}, "a text, not bytes"),
        ({"pool": 0}, "pool=0"),
        ({"pool": True}, "pool=True"),
        ({"pool": 1_001}, "pool=1001"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"lease": 0.01}, "lease=0.01"),
        ({"lease": "10"}, "lease='10'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Redis("redis://127.0.0.1", **options)
