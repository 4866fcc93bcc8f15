"""Conversations in the memory of this process: for tests, scripts and throw-away chats."""

import heapq
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import structs

from retinue.messages import Message
from retinue.messages.codec import decode
from retinue.stores import rules
from retinue.stores.alone import alone
from retinue.stores.base import Asker, Entry, EntryState, Held, Summary


class _Conversation:
    """One log. `index` says where in `entries` a message stands."""

    __slots__ = (
        "created", "entries", "forked_at", "held", "index", "last", "number", "owner", "parent",
        "question", "title", "updated",
    )  # fmt: skip

    def __init__(self, owner: str | None, number: int, now: float) -> None:
        self.owner = owner
        self.number = number
        self.last = 0
        self.held: Held | None = None
        self.parent: str | None = None
        self.forked_at: int | None = None
        self.created = self.updated = now
        self.title = ""
        self.question: int | None = None
        self.entries: list[Entry] = []
        self.index: dict[str, int] = {}

    def keep(self, entries: list[Entry]) -> None:
        """These entries are all that there is. Positions are not given out again."""
        self.entries = entries
        self.index = {entry.message.id: at for at, entry in enumerate(entries)}
        if self.question is not None and self.question > (entries[-1].position if entries else 0):
            self.title, self.question = "", None


def _position(entry: Entry) -> int:
    return entry.position


class InMemory:
    """A store that lives as long as the object. `close` keeps what is in it.

    Messages are stored as the database stores hold them: what is changed in a `meta` after the
    append changes nothing here, and values of `meta` come back as JSON has them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, _Conversation] = {}
        self._number = 0

    def __repr__(self) -> str:
        return f"InMemory({len(self._logs)} conversations)"

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
        with self._lock:
            log = self._find(conversation, owner)
            known: Mapping[str, int] = log.index if log else {}
            new = {name: body for name, (_, body) in forms.items() if name not in known}
            older = [name for name in states if name not in new]
            for name in older:
                if name not in known:
                    raise rules.message_not_found(conversation, name)
            if not new and not older:
                return
            now = time.time()
            if log is None:
                log = self._begin(conversation, owner, now)
            for name in older:
                at = log.index[name]
                log.entries[at] = structs.replace(log.entries[at], state=states[name])
            self._extend(log, [decode(body) for body in new.values()], turn, states, now)

    def _begin(self, conversation: str, owner: Asker, now: float) -> _Conversation:
        owner = rules.owner_of_new(conversation, owner)
        self._number += 1
        log = self._logs[conversation] = _Conversation(owner, self._number, now)
        return log

    def _extend(
        self,
        log: _Conversation,
        messages: Sequence[Message],
        turn: str,
        states: Mapping[str, EntryState],
        now: float,
    ) -> None:
        if log.question is None and (asked := rules.first_question(messages, log.last)):
            log.title, log.question = asked
        for message in messages:
            log.index[message.id] = len(log.entries)
            state = states.get(message.id, "")
            log.last += 1
            log.entries.append(Entry(log.last, turn, message, state, now))
        log.updated = now

    async def revise(self, conversation: str, message: Message, *, owner: Asker = None) -> None:
        """See `Store.revise`."""
        rules.check_address(conversation, owner)
        rules.check_id("message id", message.id)
        stored = decode(rules.body_of(message))
        with self._lock:
            log = self._existing(conversation, owner)
            at = log.index.get(message.id)
            if at is None:
                raise rules.message_not_found(conversation, message.id)
            log.entries[at] = structs.replace(log.entries[at], message=stored)
            if log.question == log.entries[at].position:
                log.title = rules.question_of(stored)
            log.updated = time.time()

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
        limit = rules.check_limit(limit)
        with self._lock:
            log = self._find(conversation, owner)
            if log is None:
                return []
            end = bisect_left(log.entries, rules.end_of(before), key=_position)
            return log.entries[max(0, end - limit) : end]

    async def head(
        self, conversation: str, *, owner: Asker = None, limit: int | None = None
    ) -> Sequence[Entry]:
        """See `Store.head`."""
        rules.check_address(conversation, owner)
        limit = rules.check_limit(limit)
        with self._lock:
            log = self._find(conversation, owner)
            return log.entries[:limit] if log else []

    async def known(
        self, conversation: str, ids: Sequence[str], *, owner: Asker = None
    ) -> frozenset[str]:
        """See `Store.known`."""
        rules.check_address(conversation, owner)
        with self._lock:
            log = self._find(conversation, owner)
            return frozenset(name for name in ids if name in log.index) if log else frozenset()

    async def conversations(self, *, owner: Asker = None, limit: int = 100) -> Sequence[Summary]:
        """See `Store.conversations`."""
        rules.check_owner(owner)
        most = rules.check_limit(limit)
        with self._lock:
            seen = [item for item in self._logs.items() if rules.may_see(item[1].owner, owner)]
            last = heapq.nlargest(
                most,
                seen,
                key=lambda item: (item[1].updated, item[1].number),
            )
            return [
                Summary(
                    name,
                    log.owner,
                    log.title,
                    len(log.entries),
                    log.created,
                    log.updated,
                    log.parent,
                    log.forked_at,
                    log.held is not None,
                )
                for name, log in last
            ]

    async def delete(self, conversation: str, *, owner: Asker = None) -> None:
        """See `Store.delete`."""
        rules.check_address(conversation, owner)
        with self._lock:
            self._existing(conversation, owner)
            del self._logs[conversation]

    async def hold(
        self, conversation: str, id: str, document: bytes, *, owner: Asker = None
    ) -> None:
        """See `Store.hold`."""
        rules.check_address(conversation, owner)
        rules.check_id("pause id", id)
        with self._lock:
            self._existing(conversation, owner).held = Held(id, bytes(document))

    async def held(self, conversation: str, *, owner: Asker = None) -> Held | None:
        """See `Store.held`."""
        rules.check_address(conversation, owner)
        with self._lock:
            log = self._find(conversation, owner)
            return log.held if log else None

    async def release(self, conversation: str, id: str, *, owner: Asker = None) -> bool:
        """See `Store.release`."""
        rules.check_address(conversation, owner)
        with self._lock:
            log = self._existing(conversation, owner)
            if log.held is None or log.held.id != id:
                return False
            log.held = None
            return True

    async def fork(
        self, conversation: str, new: str, *, at: int | None = None, owner: Asker = None
    ) -> None:
        """See `Store.fork`."""
        rules.check_address(conversation, owner)
        rules.check_id("conversation id", new)
        with self._lock:
            log = self._existing(conversation, owner)
            if new in self._logs:
                raise rules.taken(new)
            fork = self._begin(new, log.owner, time.time())
            fork.title, fork.question = log.title, log.question
            fork.last = min(rules.end_of(at), log.last)
            fork.parent, fork.forked_at = conversation, fork.last
            fork.held = log.held if at is None else None
            fork.keep(log.entries[: bisect_right(log.entries, fork.last, key=_position)])

    async def rollback(self, conversation: str, *, after: int, owner: Asker = None) -> None:
        """See `Store.rollback`."""
        rules.check_address(conversation, owner)
        with self._lock:
            log = self._existing(conversation, owner)
            log.held = None
            log.keep(log.entries[: bisect_right(log.entries, after, key=_position)])
            log.updated = time.time()

    async def prune(self, conversation: str, *, before: int, owner: Asker = None) -> None:
        """See `Store.prune`."""
        rules.check_address(conversation, owner)
        with self._lock:
            log = self._existing(conversation, owner)
            log.keep(log.entries[bisect_left(log.entries, before, key=_position) :])
            log.updated = time.time()

    def writing(self, conversation: str, *, wait: bool = True) -> AbstractAsyncContextManager[None]:
        """See `Store.writing`."""
        rules.check_id("conversation id", conversation)
        return alone(self, conversation, wait=wait)

    async def close(self) -> None:
        """Nothing to let go of; the conversations stay."""

    def _find(self, conversation: str, owner: Asker) -> _Conversation | None:
        log = self._logs.get(conversation)
        if log is not None and not rules.may_see(log.owner, owner):
            raise rules.not_found(conversation)
        return log

    def _existing(self, conversation: str, owner: Asker) -> _Conversation:
        log = self._find(conversation, owner)
        if log is None:
            raise rules.not_found(conversation)
        return log
