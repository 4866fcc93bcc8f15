"""A Redis server that cannot be used: one sentence that names it and the way out."""

import asyncio
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from retinue.errors import StoreError
from retinue.messages import user
from retinue.stores import Redis
from retinue.testing.writing import soon
from tests.stores.proxy import proxy
from tests.stores.redis.servers import OwnServer, refusing
from tests.stores.sessions import until
from tests.stores.shared import texts

Starts = Callable[..., OwnServer]


async def failure(url: str, **options: Any) -> str:
    """The sentence with which the store refuses to write, twice."""
    store = Redis(url, **options)
    try:
        with pytest.raises(StoreError) as caught:
            await soon(store.append("c", [user("hi")], turn="t"))
        with pytest.raises(StoreError) as again:
            await soon(store.append("c", [user("hi")], turn="t"))
    finally:
        await store.close()
    assert str(again.value) == str(caught.value)
    check(caught.value, url)
    return str(caught.value)


def check(error: StoreError, url: str) -> None:
    """It is one sentence, gives a way out, names the place, and keeps the password."""
    sentence, parts = str(error), urlsplit(url)
    assert "\n" not in sentence
    assert re.search(r"[;,] [^;]+\.$", sentence), f"no way out is given: {sentence}"
    if parts.port:
        assert f"Redis database {parts.path[1:]} at {parts.hostname}:{parts.port}" in sentence
    cause: BaseException | None = error
    while cause is not None:
        assert not parts.password or parts.password not in f"{cause!r} {cause}"
        cause = cause.__cause__


def changed(url: str, *, path: str | None = None, login: str | None = None) -> str:
    """The URL with another database or another user and password."""
    parts = urlsplit(url)
    if path is not None:
        parts = parts._replace(path=path)
    if login is not None:
        parts = parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}")
    return parts.geturl()


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def test_a_server_that_is_not_there(free_port: int) -> None:
    sentence = await failure(f"redis://ann:s3cret@127.0.0.1:{free_port}/0")
    assert "cannot be reached (" in sentence
    assert "start the server, or check the network and the URL" in sentence


async def test_a_host_that_has_no_address() -> None:
    assert "cannot be reached (" in await failure("redis://ann:s3cret@db.invalid:6379/0")


async def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be reached (" in await failure(f"unix://{tmp_path}/redis.sock")


async def test_a_server_that_says_nothing(free_port: int) -> None:
    writers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(
        lambda _, writer: writers.append(writer), "127.0.0.1", free_port
    )
    async with silent:
        sentence = await failure(f"redis://127.0.0.1:{free_port}/0", timeout=0.1)
        for writer in writers:
            writer.close()
    assert "took longer than the 0.1 seconds that it may" in sentence


async def test_a_wrong_password(redis_server: str) -> None:
    sentence = await failure(changed(redis_server, login="ann:wr0ng"))
    assert "refused the password of user ann; check both in the URL" in sentence
    sentence = await failure(changed(redis_server, login=":wr0ng"))
    assert "refused the password of user default; check" in sentence


async def test_no_password_where_one_is_needed(redis_server: str) -> None:
    parts = urlsplit(redis_server)
    url = parts._replace(netloc=f"127.0.0.1:{parts.port}").geturl()
    assert "asks for a password; give it in the URL" in await failure(url)


async def test_a_password_where_none_is_wanted(own: Starts) -> None:
    assert "refused the password" in await failure(changed(own().url, login=":s3cret"))


async def test_a_database_that_is_not_there(redis_server: str) -> None:
    assert "fewer databases; give a lower number" in await failure(
        changed(redis_server, path="/99999")
    )


async def test_a_user_who_may_not_use_the_prefix(
    redis_server: str, prefix: str, admin: redis.Redis
) -> None:
    allowed = ("resetkeys", f"~{prefix}*", "+@read", "+@write", "+@scripting", "+time")
    admin.execute_command("ACL", "SETUSER", "ann", "on", ">pa55", "resetchannels", *allowed)
    try:
        url = changed(redis_server, login="ann:pa55")
        sentence = await failure(url, prefix="other:")
        assert "User ann may not do this" in sentence
        assert "the keys other:*" in sentence
        store = Redis(url, prefix=prefix)
        async with store.writing("c"):
            await store.append("c", [user("hi")], turn="t")
        await store.fork("c", "d")
        await store.delete("c")
        assert await texts(store, "d") == ["hi"]
        await store.close()
    finally:
        admin.execute_command("ACL", "DELUSER", "ann")


async def test_a_replica(own: Starts) -> None:
    primary, replica = own(), own()
    replica.does("REPLICAOF", "127.0.0.1", str(primary.port))
    assert "is a replica, which may only be read; give the address of the primary" in (
        await failure(replica.url)
    )
    store = Redis(replica.url)
    assert await store.tail("c") == []
    await store.close()


async def test_a_server_without_memory(own: Starts) -> None:
    server = own("maxmemory-policy noeviction")
    store = Redis(server.url)
    await store.append("c", [user(str(n)) for n in range(9)], turn="t")
    server.does("CONFIG", "SET", "maxmemory", "1")
    assert "has no memory left for this; raise its maxmemory" in await failure(server.url)
    assert await texts(store) == [str(n) for n in range(9)]
    middle = (await store.tail("c"))[4].position
    await store.prune("c", before=middle)
    await store.rollback("c", after=middle)
    assert await texts(store) == ["4"]
    await store.delete("c")
    assert await store.conversations() == []
    await store.close()


async def test_a_node_of_a_cluster(own: Starts) -> None:
    server = own("cluster-enabled yes", "cluster-config-file nodes.conf")
    server.does("CLUSTER", "ADDSLOTSRANGE", "0", "8000")
    assert "is a node of a cluster" in await failure(server.url)
    server.does("CLUSTER", "ADDSLOTSRANGE", "8001", "16383")
    await until(lambda: "cluster_state:ok" in str(server.does("CLUSTER", "INFO")))
    assert "is a node of a cluster, over which" in await failure(server.url)
    assert server.does("DBSIZE") == 0


KEYS = ("meta:c", "order:c", "heads:c", "bodies:c", "nobody", "everyone", "clock", "format")


@pytest.mark.parametrize("key", KEYS)
async def test_a_key_of_another_type(
    redis_server: str, prefix: str, admin: redis.Redis, key: str
) -> None:
    admin.rpush(f"{prefix}{key}", "foreign")
    sentence = await failure(redis_server, prefix=prefix)
    assert f"holds something else under the keys {prefix}…; remove it" in sentence
    assert list(admin.scan_iter(f"{prefix}*")) == [f"{prefix}{key}"]


@pytest.mark.parametrize("key", KEYS)
async def test_a_key_of_another_type_in_a_conversation_that_is_there(
    prefix: str, store: Redis, admin: redis.Redis, key: str
) -> None:
    await store.append("c", [user("hi")], turn="t")
    admin.delete(f"{prefix}{key}")
    admin.rpush(f"{prefix}{key}", "foreign")
    before = {one: admin.dump(one) for one in admin.scan_iter(f"{prefix}*")}
    for work in (store.append("c", [user("more")], turn="t"), store.rollback("c", after=0)):
        with pytest.raises(StoreError, match="holds something else under the keys"):
            await soon(work)
    assert {one: admin.dump(one) for one in admin.scan_iter(f"{prefix}*")} == before


@pytest.mark.parametrize("key", ["meta:c", "heads:c", "bodies:c"])
async def test_a_key_of_the_same_type_that_is_not_ours(
    redis_server: str, prefix: str, admin: redis.Redis, key: str
) -> None:
    admin.hset(f"{prefix}{key}", "foreign", "1")
    assert "holds something else under the keys" in await failure(redis_server, prefix=prefix)
    assert admin.hgetall(f"{prefix}{key}") == {"foreign": "1"}
    assert list(admin.scan_iter(f"{prefix}*")) == [f"{prefix}{key}"]


async def test_a_part_of_a_conversation_that_is_gone(
    prefix: str, store: Redis, admin: redis.Redis
) -> None:
    message = user("hi")
    await store.append("c", [message], turn="t")
    admin.delete(f"{prefix}heads:c")
    states: Any = {message.id: "superseded"}
    for work in (store.tail("c"), store.append("c", [], turn="t", states=states)):
        with pytest.raises(StoreError, match=r"'c' in Redis .* has lost a part .*maxmemory-policy"):
            await work
    admin.delete(f"{prefix}meta:c")
    with pytest.raises(StoreError, match="something else under the keys"):
        await store.tail("c")


async def test_a_message_that_is_none(prefix: str, store: Redis, admin: redis.Redis) -> None:
    message = user("hi")
    await store.append("c", [message], turn="t")
    admin.hset(f"{prefix}bodies:c", message.id, "{")
    with pytest.raises(StoreError, match="holds what is no message; delete it or restore"):
        await store.tail("c")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("LOADING Redis is loading the dataset in memory", "is starting and reads its data"),
        ("MASTERDOWN Link with MASTER is down", "has lost its primary"),
        ("MISCONF Redis is configured to save RDB snapshots", "cannot write its files; check"),
        ("NOREPLICAS Not enough good replicas to write.", "without the replicas that it is to"),
        ("ERR max number of clients reached", "no free connection; end others"),
        ("BUSY Redis is busy running a script.", "is kept busy by somebody's script; end it"),
        ("ERR unknown command 'EVALSHA'", "does not know a command"),
        ("MOVED 3999 127.0.0.1:6381", "is a node of a cluster"),
        ("ERR Error running script: @user_script:1: -OOM command not allowed", "no memory left"),
        ("ERR something of its own", "cannot be used, as Redis says: something of its own"),
    ],
)
async def test_a_server_that_refuses(message: str, sentence: str) -> None:
    async with refusing(message) as url:
        assert sentence in await failure(url)


async def test_a_server_that_was_started_anew_is_used_again(own: Starts) -> None:
    server = own("appendonly yes", "appendfsync always")
    store = Redis(server.url)
    await asyncio.gather(*(store.append(str(n), [user("hi")], turn="t") for n in range(10)))
    async with store.writing("c"):
        pass
    server.stop()
    with pytest.raises(StoreError, match="cannot be reached"):
        await soon(store.append("c", [user("lost")], turn="t"))
    server.start()
    # Its scripts are gone with the old one, and the connections too.
    await asyncio.gather(*(store.append(str(n), [user("more")], turn="t") for n in range(10)))
    async with store.writing("c"):
        assert await texts(store, "3") == ["hi", "more"]
    await store.close()


async def test_a_connection_that_is_lost_in_the_middle(redis_server: str, prefix: str) -> None:
    async with proxy(redis_server) as between:
        store = Redis(between.url, prefix=prefix)
        await store.append("c", [user("hi")], turn="t")
        between.hold_answers()
        work = asyncio.create_task(store.append("c", [user("more")], turn="t"))
        await soon(between.answered.wait())
        between.cut()
        with pytest.raises(
            StoreError, match=r"was lost in the middle .*check the server"
        ) as caught:
            await soon(work)
        check(caught.value, between.url)
        between.let_go()
        await soon(store.append("c", [user("again")], turn="t"))
        assert await texts(store) == ["hi", "more", "again"]
        await store.close()


async def test_a_connection_that_broke_while_idle_is_replaced_unnoticed(
    store: Redis, admin: redis.Redis
) -> None:
    await asyncio.gather(*(store.append(str(n), [user("hi")], turn="t") for n in range(10)))
    async with store.writing("c"):
        killed = admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert int(str(killed)) >= 5
        await asyncio.gather(*(store.append(str(n), [user("more")], turn="t") for n in range(10)))
    assert await texts(store, "3") == ["hi", "more"]


async def test_a_server_behind_a_unix_socket(own: Starts, tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    own(f'unixsocket "{path}"')
    store = Redis(f"unix://{path}?db=3")
    async with store.writing("c"):
        await store.append("c", [user("hi")], turn="t")
    assert await texts(store) == ["hi"]
    await store.close()


@pytest.fixture
def tls(own: Starts, tmp_path: Path) -> tuple[str, Path]:
    """The URL of a server that speaks TLS alone, and the certificate that vouches for it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=localhost"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own(
        f"tls-port {port}",
        f'tls-cert-file "{certificate}"',
        f'tls-key-file "{key}"',
        f'tls-ca-cert-file "{certificate}"',
        "tls-auth-clients no",
    )
    return f"rediss://127.0.0.1:{port}/0", certificate


async def test_a_server_that_speaks_tls(tls: tuple[str, Path]) -> None:
    url, certificate = tls
    store = Redis(f"{url}?ssl_ca_certs={certificate}")
    async with store.writing("c"):
        await store.append("c", [user("hi")], turn="t")
    assert await texts(store) == ["hi"]
    await store.close()


async def test_a_certificate_that_nobody_vouches_for(tls: tuple[str, Path]) -> None:
    sentence = await failure(tls[0])
    assert "The certificate of Redis database 0" in sentence
    assert "ssl_ca_certs=FILE" in sentence


async def test_tls_where_there_is_none(redis_server: str) -> None:
    url = redis_server.replace("redis:", "rediss:")  # it waits for more of what it takes for text
    sentence = await failure(url, timeout=0.3)
    assert "cannot be reached (Timeout connecting to server)" in sentence
    assert "rediss://… where TLS is spoken and only there" in sentence


async def test_no_tls_where_it_is_spoken(tls: tuple[str, Path]) -> None:
    sentence = await failure(tls[0].replace("rediss:", "redis:"))
    assert "was lost in the middle" in sentence
    assert "whether TLS is spoken there" in sentence
