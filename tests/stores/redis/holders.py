"""Processes that hold a conversation, and what the server knows of holders and waiters."""

import contextlib
from collections.abc import Iterator

import redis

from tests.stores.children import Child, child

HOLD = """
import os
from retinue.errors import StoreError
from retinue.stores import Redis
async def main():
    store = Redis(path, prefix=sys.argv[2], lease=float(sys.argv[3]))
    print(os.getpid(), flush=True)
    try:
        async with store.writing("c"):
            print("held", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            await store.append("c", [user("from the child")], turn="t")
    except StoreError as error:
        print(error)
asyncio.run(main())
"""


@contextlib.contextmanager
def holder(server: str, prefix: str, lease: float = 10.0) -> Iterator[tuple[Child, int]]:
    """A process that holds the conversation until it is told a line or killed; and its number."""
    with child(HOLD, server, prefix, str(lease)) as process:
        number = int(process.said())
        said = process.said()
        assert said == "held", said
        yield process, number


def line(admin: redis.Redis, prefix: str) -> int:
    """How many processes wait."""
    return admin.zcard(f"{prefix}line:c")  # pyright: ignore[reportReturnType]


def overtake(admin: redis.Redis, prefix: str) -> None:
    """Gives the hold to somebody else, as when its lease has ended."""
    assert admin.hset(f"{prefix}lock:c", "holder", "somebody else") == 0
