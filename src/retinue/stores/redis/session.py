"""The connections of one store: they run scripts, and renew the holds of its writers.

All of it lives in one event loop, that of `thread`. What a hold is stands in `lua/locks.lua`.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from retinue.errors import StoreError
from retinue.stores.redis.address import Address
from retinue.stores.redis.failures import Failures
from retinue.stores.redis.scripts import Operation, script

_RENEWALS: Final = 4  # in the time of a lease: all but one may fail
_CONNECTING: Final = 10.0  # seconds at most for a new connection


class _Client(Protocol):
    """What is used of redis-py's client, whose own types know the replies of commands alone."""

    async def execute_command(self, *args: Any) -> Any: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class Options:
    """What the store was made with; see `Redis`."""

    address: Address
    prefix: str
    pool: int
    timeout: float
    lease: float


class Session:
    """Lives from its first call to `close`.

    Args:
        options: of the store.
        failures: words its errors.
        holds: the tokens of the store's writers by conversation; kept here, and kept up from the
            start, as an earlier session may have left them.
    """

    def __init__(self, options: Options, failures: Failures, holds: dict[str, str]) -> None:
        self._options = options
        self._failures = failures
        self._holds = holds
        self._work = _client(options, options.pool, options.timeout)
        # Holds have a connection of their own, as work that takes long would keep them from being
        # renewed. A renewal that hangs must leave time for another.
        self._locks = _client(options, 1, min(options.timeout, options.lease / _RENEWALS))
        self._in_order = asyncio.Lock()
        self._renewing = {
            name: asyncio.create_task(self._renew(name, token)) for name, token in holds.items()
        }

    async def ask(
        self, operation: Operation, conversation: str, asker: str, *values: bytes | str | int
    ) -> list[Any]:
        """What the script of the operation replies.

        Raises:
            StoreError: the server failed.
        """
        token = self._holds.get(conversation, "")
        return await self._run(self._work, operation, (conversation, asker, token, *values))

    async def take(self, conversation: str, token: str, wait: bool) -> bool:
        """Takes the hold on a conversation and renews it from now on, or returns False.

        Args:
            conversation: its id.
            token: whose hold it is to be.
            wait: whether to stand in line for it; whoever does asks again within the lease.
        """
        if not await self._lock("take", conversation, token, int(wait)):
            return False
        self._holds[conversation] = token
        self._renewing[conversation] = asyncio.create_task(self._renew(conversation, token))
        return True

    async def free(self, conversation: str, token: str) -> bool:
        """Gives the hold back, or leaves the line. False if it was not held to the end."""
        if self._holds.get(conversation) == token:
            del self._holds[conversation]
            self._renewing.pop(conversation).cancel()
        return await self._lock("free", conversation, token)

    async def close(self) -> None:
        """Lets go of the connections. The holds stay until their leases end."""
        for task in self._renewing.values():
            task.cancel()
        await asyncio.gather(*self._renewing.values(), return_exceptions=True)
        for client in (self._work, self._locks):
            with contextlib.suppress(Exception):  # a connection that is broken is let go of, too
                await client.aclose()

    async def _renew(self, conversation: str, token: str) -> None:
        while True:
            await asyncio.sleep(self._options.lease / _RENEWALS)
            # Failed or overtaken, the holder is told by the server at its next write, or when it
            # leaves; only the server knows.
            with contextlib.suppress(StoreError):
                await self._lock("renew", conversation, token)

    async def _lock(
        self, operation: Operation, conversation: str, token: str, *values: int
    ) -> bool:
        lease = round(self._options.lease * 1_000)
        async with self._in_order:
            reply = await self._run(self._locks, operation, (conversation, token, lease, *values))
        return reply == 1

    async def _run(
        self, client: _Client, operation: Operation, values: Sequence[bytes | str | int]
    ) -> Any:
        from redis.exceptions import NoScriptError, RedisError

        made = script(operation)
        arguments = (0, self._options.prefix, *values)
        try:
            try:
                return await client.execute_command("EVALSHA", made.sha, *arguments)
            except NoScriptError:  # the server was started anew, or never ran it
                return await client.execute_command("EVAL", made.source, *arguments)
        except (RedisError, OSError) as error:
            raise self._failures.explain(error) from error


def _client(options: Options, connections: int, timeout: float) -> _Client:
    """A client that asks once: whether to ask again is for those who know what was asked."""
    from redis.asyncio import (
        BlockingConnectionPool,
        Connection,
        Redis,
        SSLConnection,
        UnixDomainSocketConnection,
    )
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    kinds = {"redis": Connection, "rediss": SSLConnection, "unix": UnixDomainSocketConnection}
    address = options.address
    settings: dict[str, Any] = {
        **address.where,
        **address.login,
        "db": address.database,
        "protocol": 2,
        "driver_info": None,  # which not every user may tell
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": timeout,
        "socket_connect_timeout": min(timeout, _CONNECTING),
    }
    return Redis.from_pool(
        BlockingConnectionPool(connections, None, kinds[address.scheme], **settings)
    )
