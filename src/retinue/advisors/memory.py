"""`Memory`: the conversation so far goes into the prompt, and the turn into the log (R-MEM).

It has two hooks. `turn` loads what can be needed of the log and holds the conversation while the
turn runs; `chat` cuts the view to the window before each model call. The log itself is written by
the loop, through the journal that `turn` hands it, so that it holds what was really said and done,
whatever other layers send or return, and wherever this advisor stands in the list.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    TurnRequest,
    TurnResponse,
)
from retinue.errors import ConfigError
from retinue.messages import Message, new_id
from retinue.messages.estimate import message_tokens, text_tokens
from retinue.messages.window import fit, heal, opening, turns
from retinue.stores import Entry, EntryState, InMemory, Store
from retinue.stores.views import answered, displaced, resent

HEALED: Final = "No result: the process ended before this call did."
_PAGE: Final = 64  # entries read at once where the window is by tokens
_HEAD: Final = 8  # entries among which the conversation's own prompt is looked for


class Memory(Advisor):
    """Remembers conversations.

    A turn without a conversation id is not remembered. A turn that was never answered stays in the
    log and is not sent again; neither are answers that a layer gave up.

    Args:
        store: where the log is kept; in the process by default.
        max_messages: how many messages of the conversation a model call may be sent; 200 by
            default, None for no limit.
        max_tokens: how many tokens it may be sent in all, or None for no limit.
        reserve: tokens of `max_tokens` that are kept free for the answer. What instructions and
            tool definitions take is measured.
        count: tokens of a text; by default one for four bytes.
        wait: whether a second turn of a conversation waits for the first (or is refused with
            ConversationBusy).
    """

    order = 200
    traits = frozenset({"memory"})

    def __init__(
        self,
        store: Store | None = None,
        *,
        max_messages: int | None = 200,
        max_tokens: int | None = None,
        reserve: int = 1_000,
        count: Callable[[str], int] | None = None,
        wait: bool = True,
    ) -> None:
        for name, value in (("max_messages", max_messages), ("max_tokens", max_tokens)):
            if value is not None and value < 1:
                raise ConfigError(f"Memory({name}={value}): a window holds at least 1, or is None.")
        if reserve < 0:
            raise ConfigError(f"Memory(reserve={reserve}): give 0 tokens or more.")
        if max_tokens is not None and reserve >= max_tokens:
            raise ConfigError(
                f"Memory(max_tokens={max_tokens}, reserve={reserve}): nothing is left for the"
                " conversation; lower the reserve."
            )
        self.store: Store = store if store is not None else InMemory()
        self._max_messages = max_messages
        self._max_tokens = max_tokens
        self._reserve = reserve
        self._count = count or text_tokens
        self._wait = wait

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Loads the conversation, and holds it until the turn has ended."""
        if request.conversation is None:
            return await call_next(request)
        mine = request.local(self)
        async with mine.setdefault("opening", asyncio.Lock()):  # entries may come at once
            if "history" not in mine:
                await self._open(request, request.conversation, mine)
        request = request.with_(
            history=(*request.history, *mine["history"]),
            messages=tuple(
                mine["moved"].get(m.id, m) for m in request.messages if m.id not in mine["told"]
            ),
        )
        if "journal" in mine:
            request.record_in(mine.pop("journal"))
        return await call_next(request)

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Cuts what is sent to the window."""
        own = {message.id for message in request.transcript}
        messages = request.messages
        for limit, size in self._windows(request):
            last = len(messages) - len(turns(messages)[-1]) if messages else 0
            start = next((at for at, m in enumerate(messages) if m.id in own), last)
            messages = fit(messages[:start], messages[start:], limit, size)
        if len(messages) != len(request.messages):
            request = request.with_(messages=messages)
        return await call_next(request)

    def _windows(self, request: ChatRequest) -> Iterable[tuple[int, Callable[[Message], int]]]:
        if self._max_messages is not None and len(request.messages) > self._max_messages:
            yield self._max_messages, lambda _: 1
        if self._max_tokens is not None:
            definitions = [
                (t.spec.name, t.spec.description, t.spec.parameters) for t in request.tools
            ]
            taken = self._count("".join(request.instructions)) + (
                self._count(json.dumps(definitions)) if definitions else 0
            )
            yield self._max_tokens - self._reserve - taken, self._tokens

    def _tokens(self, message: Message) -> int:
        return message_tokens(message, self._count)

    async def _open(self, request: TurnRequest, conversation: str, mine: dict[str, Any]) -> None:
        """Takes hold of the conversation and reads what the turn can need of it."""
        async with AsyncExitStack() as hold:
            await hold.enter_async_context(self.store.writing(conversation, wait=self._wait))
            entries, prompt = await self._load(conversation, request.owner)
            log = _Log(self.store, conversation, request.owner)
            healed = heal(answered(entries), HEALED)
            await log.keep_healed(entries, healed)
            told = await self._told(request, entries)
            if len(told) == len(request.messages):
                raise ConfigError(
                    f"All messages of the input are answered already in conversation"
                    f" {conversation!r}; send a new one."
                )
            again = displaced(entries, [m for m in request.messages if m.id not in told])
            mine["history"] = (*prompt, *healed)
            mine["told"] = told
            mine["moved"] = {m.id: m.with_(id=new_id()) for m in request.messages if m.id in again}
            known = {entry.message.id for entry in entries} | told
            mine["journal"] = _Journal(log, request.turn_id, hold.pop_all(), known)

    async def _told(self, request: TurnRequest, entries: Sequence[Entry]) -> frozenset[str]:
        """The ids of those input messages that the log has already."""
        messages = request.messages
        count = resent(entries, messages)
        if not count and any(message.role == "assistant" for message in messages):
            conversation = request.conversation or ""
            entries = await self.store.tail(conversation, owner=request.owner)
            count = resent(entries, messages)
        return frozenset(message.id for message in messages[:count])

    async def _load(
        self, conversation: str, owner: str | None
    ) -> tuple[Sequence[Entry], Sequence[Message]]:
        """The end of the log, as much of it as the window can show, from a turn start on; and the
        system messages that the log begins with, if that end does not reach back to them."""
        if self._max_messages is None and self._max_tokens is None:
            return await self.store.tail(conversation, owner=owner), ()
        page = min(self._max_messages or _PAGE, 4 * _PAGE) + 1
        entries: list[Entry] = []
        while True:
            before = entries[0].position if entries else None
            found = await self.store.tail(conversation, owner=owner, limit=page, before=before)
            entries = [*found, *entries]
            if len(found) < page:
                return entries, ()
            whole = [entry for entry in entries if entry.turn != entries[0].turn]
            if self._fills_window(answered(whole)):
                head = await self.store.head(conversation, owner=owner, limit=_HEAD)
                older = [entry for entry in head if entry.position < whole[0].position]
                return whole, opening([entry.message for entry in older if not entry.state])

    def _fills_window(self, history: Sequence[Message]) -> bool:
        if self._max_messages is not None and len(history) >= self._max_messages:
            return True
        return self._max_tokens is not None and (
            sum(map(self._tokens, history)) >= self._max_tokens
        )


class _Log:
    """One conversation of a store, for one owner."""

    def __init__(self, store: Store, conversation: str, owner: str | None) -> None:
        self.store = store
        self.conversation = conversation
        self.owner = owner

    async def append(
        self,
        messages: Sequence[Message],
        turn: str,
        states: Mapping[str, EntryState] | None = None,
    ) -> None:
        await self.store.append(
            self.conversation, messages, turn=turn, owner=self.owner, states=states
        )

    async def revise(self, message: Message) -> None:
        await self.store.revise(self.conversation, message, owner=self.owner)

    async def keep_healed(self, entries: Sequence[Entry], healed: Sequence[Message]) -> None:
        """Stores the results that healing added at the end of the log, where they belong."""
        stored = {entry.message.id for entry in entries}
        added: list[Message] = []
        for message in reversed(healed):
            if message.id in stored:
                break
            added.insert(0, message)
        if added:
            await self.append(added, entries[-1].turn)


class _Journal:
    """Writes one turn into the log, as the loop goes on with it."""

    def __init__(self, log: _Log, turn: str, hold: AsyncExitStack, known: set[str]) -> None:
        self._log = log
        self._turn = turn
        self._hold = hold
        self._known = known
        self._doubtful: dict[str, Message] = {}  # a cancelled write may have stored them, or not
        self._one_at_a_time = asyncio.Lock()  # layers may call their inner ones at once
        self._unanswered: list[str] = []
        self._answered = False
        self._superseded: frozenset[str] = frozenset()

    async def append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        """Stores what is new. A question waits as unanswered until the first answer comes."""
        async with self._one_at_a_time:
            await self._append(messages, superseded)

    async def _append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        new = self._doubtful | {m.id: m for m in messages if m.id not in self._known}
        answered = self._answered or any(message.role == "assistant" for message in messages)
        states: dict[str, EntryState] = {}
        if answered:
            states |= dict.fromkeys(self._unanswered, "")
        else:
            self._unanswered = [message.id for message in messages]
            states |= dict.fromkeys(self._unanswered, "unanswered")
        marked = {one for one in superseded - self._superseded if one in self._known or one in new}
        states |= dict.fromkeys(marked, "superseded")
        self._doubtful = new
        if new or (states and answered):
            await self._log.append([*new.values()], self._turn, states)
        self._doubtful = {}
        self._known.update(new)
        self._answered = answered
        self._superseded |= marked
        if answered:
            self._unanswered = []

    async def revise(self, message: Message) -> None:
        """Replaces what the log has under this id."""
        await self._log.revise(message)

    async def close(self) -> None:
        """Lets the conversation go."""
        await self._hold.aclose()
