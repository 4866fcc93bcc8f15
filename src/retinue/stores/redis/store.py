"""The store over Redis: checks the input, and has one script run per call."""

import importlib.util
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, cast

from msgspec.msgpack import Decoder

from retinue.errors import ConfigError, MissingExtraError, StoreError
from retinue.messages import Message
from retinue.messages.codec import FormatError, decode
from retinue.stores import rules
from retinue.stores.alone import alone
from retinue.stores.base import EVERYONE, Asker, Entry, EntryState, Held, Summary
from retinue.stores.polling import until_taken
from retinue.stores.redis.address import parse
from retinue.stores.redis.failures import Failures
from retinue.stores.redis.scripts import Operation
from retinue.stores.redis.session import Options, Session
from retinue.stores.redis.thread import LoopThread

_LONGEST_PREFIX: Final = 200
_PAGE: Final = 1_000  # conversations that one script looks at, as it keeps all others waiting
_entries: Final = Decoder(tuple[list[int], list[str], list[str]]).decode


class Redis:
    """Conversations in a Redis server (6.2 or later, or Valkey), shared by any number of machines.

    Each call is one script on the server, so it happens whole or not at all, and the owner is
    checked with it. A list of more than 1,000 conversations is read in pieces; one that is written
    meanwhile may be missing. A cluster is not served: a conversation and the lists it stands in
    are written together, so all keys are on one server.

    Redis keeps what its own settings let it keep. Without `appendonly yes` a crash of the server
    takes the last seconds or minutes of all conversations with it, and its failover to a replica
    may always take the last moments. Its `maxmemory-policy` must be noeviction or one of
    volatile-*, which evict none of the keys that hold conversations.

    A writer (`writing`) has a hold in Redis that is renewed, by a thread of its own, four times in
    the time of a lease. A process that dies holds for no longer than the lease; so does one that is
    halted or cut off, unless it comes back before another has taken its place. A writer whose hold
    was lost has its further writes refused by the server, and is told by a StoreError. Within a
    process a second writer gets its turn in order of arrival; between processes the first ones of
    each get theirs in order of arrival, within a tenth of a second.

    A connection that broke while it was idle is replaced unnoticed. If it breaks within a call, the
    call raises StoreError, as it may have happened or not; the next one connects anew. A call that
    is cancelled is still finished. Any event loop and thread may use the store. Times are those of
    the machine that writes.

    Args:
        url: redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss://… for TLS (with ssl_ca_certs,
            ssl_certfile, ssl_keyfile, ssl_cert_reqs or ssl_check_hostname after `?`), or
            unix://USER:PASSWORD@/PATH?db=NUMBER.
        prefix: what the store's keys begin with, 1 to 200 characters. Stores of one server with
            different prefixes have nothing to do with each other.
        pool: connections at most for reading and storing, 4 by default. One more holds the locks.
        timeout: seconds that one call may take, 10 by default.
        lease: seconds for which a hold lasts that is not renewed, 10 by default.

    Raises:
        ConfigError: the URL cannot be read, or an option makes no sense.
        MissingExtraError: redis-py is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "retinue:",
        pool: int = 4,
        timeout: float = 10.0,
        lease: float = 10.0,
    ) -> None:
        address = parse(url)
        _check_options(prefix, pool, timeout, lease)
        if importlib.util.find_spec("redis") is None:
            raise MissingExtraError(
                "Redis is spoken to through redis-py, which is not installed: pip install"
                " 'retinue[redis]'."
            )
        self._place = str(address)
        self._failures = Failures(address, prefix, timeout)
        self._line = (address.server, address.database, prefix)
        self._holds: dict[str, str] = {}
        self._closing = False
        options = Options(address, prefix, pool, timeout, lease)
        self._thread = LoopThread(
            partial(Session, options, self._failures, self._holds), self._holds
        )

    def __repr__(self) -> str:
        return f"<{self._place}>"

    async def append(
        self,
        conversation: str,
        messages: Sequence[Message],
        *,
        turn: str,
        owner: Asker = None,
        states: Mapping[str, EntryState] | None = None,
    ) -> None:
        """See `Store.append`."""
        rules.check_address(conversation, owner)
        rules.check_id("turn", turn)
        states = dict(states) if states else {}
        rules.check_states(states)
        forms = rules.encoded(messages)
        values: list[bytes | str | int] = [turn, repr(time.time()), len(forms)]
        for name, (message, body) in forms.items():
            values += (name, body, rules.question_of(message))
        for name, state in states.items():
            values += (name, state)
        await self._existing("append", conversation, owner, *values)

    async def revise(self, conversation: str, message: Message, *, owner: Asker = None) -> None:
        """See `Store.revise`."""
        rules.check_address(conversation, owner)
        rules.check_id("message id", message.id)
        body = rules.body_of(message)
        title = rules.question_of(message)
        await self._existing(
            "revise", conversation, owner, message.id, body, title, repr(time.time())
        )

    async def tail(
        self,
        conversation: str,
        *,
        owner: Asker = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> Sequence[Entry]:
        """See `Store.tail`."""
        rules.check_address(conversation, owner)
        most, end = rules.check_limit(limit), rules.end_of(before)
        found = await self._entries(
            conversation, owner, "ZREVRANGEBYSCORE", f"({end}", "-inf", most
        )
        return found[::-1]

    async def head(
        self, conversation: str, *, owner: Asker = None, limit: int | None = None
    ) -> Sequence[Entry]:
        """See `Store.head`."""
        rules.check_address(conversation, owner)
        most = rules.check_limit(limit)
        return await self._entries(conversation, owner, "ZRANGEBYSCORE", "-inf", "+inf", most)

    async def known(
        self, conversation: str, ids: Sequence[str], *, owner: Asker = None
    ) -> frozenset[str]:
        """See `Store.known`."""
        rules.check_address(conversation, owner)
        found: set[str] = set()
        for some in rules.chunks(ids) if ids else [ids]:
            # A lone surrogate is in no id that is stored, but may be asked for.
            names = [name.encode("utf-8", "surrogatepass") for name in some]
            places = await self._ask("known", conversation, owner, *names)
            found.update(some[int(place)] for place in places or ())
        return frozenset(found)

    async def conversations(self, *, owner: Asker = None, limit: int = 100) -> Sequence[Summary]:
        """See `Store.conversations`."""
        rules.check_owner(owner)
        left = rules.check_limit(limit)
        listed: dict[str, Summary] = {}
        below = "+inf"
        while left > 0:
            reply = await self._ask("conversations", "", owner, below, min(left, _PAGE))
            last, *rows = reply or [b""]
            if not last:
                break
            below = f"({last.decode()}"
            left -= _PAGE
            for summary in map(_summary, rows):
                listed.setdefault(summary.id, summary)
        return list(listed.values())

    async def delete(self, conversation: str, *, owner: Asker = None) -> None:
        """See `Store.delete`."""
        rules.check_address(conversation, owner)
        await self._existing("delete", conversation, owner)

    async def hold(
        self, conversation: str, id: str, document: bytes, *, owner: Asker = None
    ) -> None:
        """See `Store.hold`."""
        rules.check_address(conversation, owner)
        rules.check_id("pause id", id)
        await self._existing("hold", conversation, owner, id, bytes(document))

    async def held(self, conversation: str, *, owner: Asker = None) -> Held | None:
        """See `Store.held`."""
        rules.check_address(conversation, owner)
        reply = await self._ask("held", conversation, owner)
        return Held(reply[0].decode(), reply[1]) if reply else None

    async def release(self, conversation: str, id: str, *, owner: Asker = None) -> bool:
        """See `Store.release`."""
        rules.check_address(conversation, owner)
        (released,) = await self._existing("release", conversation, owner, id)
        return released == 1

    async def fork(
        self, conversation: str, new: str, *, at: int | None = None, owner: Asker = None
    ) -> None:
        """See `Store.fork`."""
        rules.check_address(conversation, owner)
        rules.check_id("conversation id", new)
        stop = "" if at is None else rules.end_of(at)
        await self._existing("fork", conversation, owner, new, stop, repr(time.time()))

    async def rollback(self, conversation: str, *, after: int, owner: Asker = None) -> None:
        """See `Store.rollback`."""
        rules.check_address(conversation, owner)
        await self._cut(conversation, owner, f"({rules.end_of(after)}", "+inf", unpause=True)

    async def prune(self, conversation: str, *, before: int, owner: Asker = None) -> None:
        """See `Store.prune`."""
        rules.check_address(conversation, owner)
        await self._cut(conversation, owner, "-inf", f"({rules.end_of(before)}", unpause=False)

    def writing(self, conversation: str, *, wait: bool = True) -> AbstractAsyncContextManager[None]:
        """See `Store.writing`."""
        rules.check_id("conversation id", conversation)
        return self._writing(conversation, wait)

    async def close(self) -> None:
        """Lets go of connections and the thread, after what was asked for has been done.

        While a conversation is held, they stay to renew the hold, and go with the last of them.
        """
        self._closing = True
        await self._thread.close()

    @asynccontextmanager
    async def _writing(self, conversation: str, wait: bool) -> AsyncGenerator[None]:
        token = uuid.uuid4().hex

        def take(session: Session) -> Awaitable[bool]:
            return session.take(conversation, token, wait)

        def free(session: Session) -> Awaitable[bool]:
            return session.free(conversation, token)

        try:
            async with alone(self._line, conversation, wait=wait):
                try:
                    await until_taken(lambda: self._thread.run(take), conversation, wait=wait)
                    yield
                except BaseException:
                    if self._closing:  # the thread goes with the last hold, once that is free
                        with suppress(StoreError):
                            await self._thread.run(free)
                    else:
                        self._thread.submit(free)
                    raise
                if not await self._thread.run(free):
                    raise self._failures.lost(conversation)
        finally:
            if self._closing and not self._holds:
                await self._thread.close()

    async def _entries(
        self, conversation: str, owner: Asker, command: str, start: str, stop: str, most: int
    ) -> list[Entry]:
        reply = await self._ask("entries", conversation, owner, command, start, stop, most)
        entries: list[Entry] = []
        try:
            for position, head, body in zip(*_entries(reply[0]), strict=True) if reply else ():
                state, at, turn = head.split("|", 2)
                message = decode(body.encode())
                entries.append(Entry(position, turn, message, cast(EntryState, state), float(at)))
        except (ValueError, FormatError) as error:
            raise self._failures.torn(conversation) from error
        return entries

    async def _cut(
        self, conversation: str, owner: Asker, low: str, high: str, *, unpause: bool
    ) -> None:
        await self._existing("cut", conversation, owner, low, high, int(unpause), repr(time.time()))

    async def _existing(
        self, operation: Operation, conversation: str, owner: Asker, *values: bytes | str | int
    ) -> list[Any]:
        """What the script replies of a conversation that must be there."""
        reply = await self._ask(operation, conversation, owner, *values)
        if reply is None:
            raise rules.not_found(conversation)
        return reply

    async def _ask(
        self, operation: Operation, conversation: str, owner: Asker, *values: bytes | str | int
    ) -> list[Any] | None:
        """What the script replies, or None if there is no such conversation."""
        self._closing = False
        status, *reply = await self._thread.run(
            lambda session: session.ask(operation, conversation, _asker(owner), *values)
        )
        match status.decode():
            case "ok":
                return reply
            case "none":
                return None
            case "hidden":
                raise rules.not_found(conversation)
            case "unknown":
                raise rules.message_not_found(conversation, reply[0].decode())
            case "taken":
                raise rules.taken(str(values[0]))
            case "unowned":
                rules.owner_of_new(conversation, EVERYONE)
            case refused:
                raise self._refused(refused, conversation)
        return None

    def _refused(self, status: str, conversation: str) -> StoreError:
        if status == "lost":
            return self._failures.lost(conversation)
        if status == "newer":
            return self._failures.newer()
        return self._failures.torn(conversation) if status == "torn" else self._failures.foreign()


def _asker(owner: Asker) -> str:
    """The name of the list of those conversations that the asker may see."""
    if owner is EVERYONE:
        return "everyone"
    return "nobody" if owner is None else f"owner:{owner}"


def _summary(row: list[bytes | None]) -> Summary:
    id, owner, title, created, updated, parent, forked_at, pause, messages = row
    assert id is not None
    return Summary(
        id.decode(),
        _owner(owner),
        (title or b"").decode(),
        int(messages or 0),
        float(created or 0),
        float(updated or 0),
        parent.decode() if parent is not None else None,
        int(forked_at) if forked_at is not None else None,
        pause is not None,
    )


def _owner(listed: bytes | None) -> str | None:
    kind, _, owner = (listed or b"").decode().partition(":")
    return owner if kind == "owner" else None


def _check_options(prefix: str, pool: int, timeout: float, lease: float) -> None:
    if not isinstance(prefix, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"The prefix is a text, not {type(prefix).__name__}.")
    if not 0 < len(prefix) <= _LONGEST_PREFIX or not prefix.isascii() or not prefix.isprintable():
        raise ConfigError(
            f"prefix={rules.quoted(prefix)} makes no sense; give 1 to {_LONGEST_PREFIX} printable"
            " ASCII characters."
        )
    rules.check_pool(pool)
    if not rules.is_between(timeout, 0.001, 1_000_000):
        raise ConfigError(f"timeout={timeout!r} makes no sense; give seconds, more than 0.")
    if not rules.is_between(lease, 0.1, 86_400):
        raise ConfigError(f"lease={lease!r} makes no sense; give 0.1 to 86,400 seconds.")
