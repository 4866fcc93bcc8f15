"""A store in a Redis server, and servers that a test has for itself."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import redis

from retinue.stores import Redis
from tests.stores.redis.servers import OwnServer


@pytest.fixture(scope="session")
def redis_server(redis_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One for the tests of this process alone: some count its connections and calls, or cut all of
    them. It asks for the shared one only so that these tests are left out with it.
    """
    with OwnServer(tmp_path_factory.mktemp("redis")) as server:
        password = uuid.uuid4().hex
        server.does("CONFIG", "SET", "requirepass", password)
        yield f"redis://:{password}@127.0.0.1:{server.port}/0"


@pytest.fixture
def admin(redis_server: str) -> Iterator[redis.Redis]:
    """A client apart from the store's."""
    with redis.Redis.from_url(redis_server, decode_responses=True) as client:
        yield client


@pytest.fixture
def prefix(admin: redis.Redis) -> Iterator[str]:
    """A prefix that no key has yet, and that none has after the test."""
    name = f"t{uuid.uuid4().hex}:"
    yield name
    for key in admin.scan_iter(f"{name}*", count=1_000):
        admin.delete(key)


@pytest.fixture
async def store(redis_server: str, prefix: str) -> AsyncIterator[Redis]:
    """A fresh store under the prefix."""
    store = Redis(redis_server, prefix=prefix)
    yield store
    await store.close()


@pytest.fixture
def own(redis_server: str, tmp_path: Path) -> Iterator[Callable[..., OwnServer]]:
    """Starts servers that are gone after the test. `redis_server` says whether there can be any."""
    with contextlib.ExitStack() as stack:

        def start(*settings: str) -> OwnServer:
            folder = tmp_path / f"server {len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return stack.enter_context(OwnServer(folder, settings))

        yield start
