"""The advisor.

It has two hooks. `turn` loads what can be needed of the log and holds the conversation while the
turn runs; `chat` cuts the view to the window before each model call. The log itself is written by
the loop, through the journal that `turn` hands it, so that it holds what was really said and done,
whatever other layers send or return, and wherever this advisor stands in the list.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from retinue.advisors.memory.journal import Journal, Log, gone_on
from retinue.advisors.memory.reading import CANCELLED, HEALED, Past, read, unfinished
from retinue.advisors.memory.rewinding import fork_before, origin, replaces, since
from retinue.advisors.memory.summary import Summarizer, shortened, summary_in
from retinue.advisors.memory.window import Limit, Window
from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.log import Origin, Unfinished
from retinue.errors import ConfigError
from retinue.messages import Message, new_id
from retinue.messages.estimate import text_tokens
from retinue.messages.window import begun_at, fit, opening, overflow
from retinue.stores import Entry, InMemory, Store
from retinue.stores.rules import check_store
from retinue.stores.views import displaced, resent


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
        summary: how turns that the window has no room for are summed up; None leaves them out.

    Raises:
        ConfigError: a value cannot be one, or a summary has no window or no room in it.
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
        summary: Summarizer | None = None,
    ) -> None:
        if store is not None:
            check_store("Memory", store)
        self.store: Store = store if store is not None else InMemory()
        if summary is not None and not isinstance(summary, Summarizer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Memory(summary={summary!r}) cannot be used; give Summarizer(...).")
        self._window = Window(
            max_messages,
            max_tokens,
            reserve,
            count or text_tokens,
            0 if summary is None else summary.tokens,
        )
        self._wait = wait
        self._summarizer = summary
        if summary is not None:
            _check_summary(summary, self._window)

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
        mine = request.local(self)
        limits = self._window.limits(request)
        if not limits and "summary" not in mine:
            return await call_next(request)
        own = {message.id for message in request.transcript}
        messages = request.messages
        if self._summarizer is not None and "log" in mine:
            at = begun_at(messages, own)
            async with mine.setdefault("summing", asyncio.Lock()):
                summed = await self._sum_up(request, messages[:at], messages[at:], limits, mine)
            messages = (*summed, *messages[at:])
        for limit in limits:
            at = begun_at(messages, own)
            messages = fit(messages[:at], messages[at:], limit.room, limit.size)
        if messages != request.messages:
            request = request.with_(messages=messages)
        return await call_next(request)

    async def _sum_up(
        self,
        request: ChatRequest,
        history: Sequence[Message],
        current: Sequence[Message],
        limits: Sequence[Limit],
        mine: dict[str, Any],
    ) -> Sequence[Message]:
        """The history with a summary in the place of what the window has no room for."""
        summarizer = self._summarizer
        made: Message | None = mine.get("summary")
        if made is not None:
            history = shortened(history, made)
        if summarizer is None or "no_summary" in mine:
            return history
        keep = summarizer.keep
        over = max(
            (
                overflow(history, current, one.room, one.size, keep=keep, spare=one.summary)
                for one in limits
            ),
            default=0,
        )
        if not over:
            return history
        prompt = opening(history)
        gone = history[len(prompt) : len(prompt) + over]
        made = await summarizer.sum_up(request, summary_in(prompt), gone)
        if made is None:
            mine["no_summary"] = True  # one failure a turn is enough
            return history
        await mine["log"].append([made], request.turn_id, {made.id: "summary"})
        mine["summary"] = made
        return shortened(history, made)

    async def paused(self, conversation: str, owner: str | None) -> bytes | None:
        """What the paused turn of a conversation goes on from, or None if none is paused."""
        held = await self.store.held(conversation, owner=owner)
        return None if held is None else held.document

    async def unfinished(self, conversation: str, owner: str | None) -> Unfinished | None:
        """The last turn of a conversation, if a crash has cut it off."""
        return await unfinished(self.store, conversation, owner)

    async def origin(self, conversation: str, owner: str | None, turn: str | None) -> Origin:
        """What was asked in a turn of a conversation, or in the last one."""
        return await origin(self.store, conversation, owner, turn)

    async def fork_before(
        self, conversation: str, owner: str | None, turn: str, new: str | None
    ) -> str:
        """Makes a conversation of what came before a turn, and gives its id."""
        return await fork_before(self.store, conversation, owner, turn, new)

    async def _open(self, request: TurnRequest, conversation: str, mine: dict[str, Any]) -> None:
        """Takes hold of the conversation and reads what the turn can need of it."""
        async with AsyncExitStack() as hold:
            await hold.enter_async_context(self.store.writing(conversation, wait=self._wait))
            log = Log(self.store, conversation, request.owner)
            gone = await self._replaced(request, conversation)
            before = gone[0].position if gone else None
            told, again = frozenset[str](), frozenset[str]()
            if request.resumed:
                await self._check_still_there(request, conversation)
                past = await self._past(request, conversation, before=before)
            else:
                past = await self._past(request, conversation, before=before)
                others = [entry for entry in past.entries if entry.turn != request.turn_id]
                told = await self._told(request, others, before)
                if len(told) == len(request.messages):
                    raise ConfigError(
                        f"All messages of the input are answered already in conversation"
                        f" {conversation!r}; send a new one."
                    )
                again = displaced(others, [m for m in request.messages if m.id not in told])
                if past.open or gone:
                    past = await self._close(log, request, past, before)
            mine["history"] = past.history
            mine["told"] = told
            mine["moved"] = {m.id: m.with_(id=new_id()) for m in request.messages if m.id in again}
            mine["log"] = log
            mine["journal"] = Journal(
                log,
                request.turn_id,
                hold.pop_all(),
                [*past.entries, *gone],
                known=told,
                pause=request.pause,
                replaced=_others(gone, request.turn_id),
            )

    async def _past(
        self,
        request: TurnRequest,
        conversation: str,
        *,
        before: int | None = None,
        why: str = HEALED,
    ) -> Past:
        return await read(
            self.store,
            conversation,
            request.owner,
            self._window,
            summaries=self._summarizer is not None,
            besides=request.turn_id,  # a turn that is run again from a record is there already
            before=before,
            why=why,
        )

    async def _check_still_there(self, request: TurnRequest, conversation: str) -> None:
        """Refuses to go on with a turn that another process has gone on with in the meantime."""
        if request.pause is not None:
            held = await self.store.held(conversation, owner=request.owner)
            if held is None or held.id != request.pause:
                raise gone_on(conversation)
        if request.upto is not None:
            found = await self.unfinished(conversation, request.owner)
            if found is None or (found.turn, found.last) != (request.turn_id, request.upto):
                raise gone_on(conversation)

    async def _replaced(self, request: TurnRequest, conversation: str) -> Sequence[Entry]:
        """What the turn stands in the place of, if it does, and all behind it."""
        turn = replaces(request.messages)
        return [] if turn is None else await since(self.store, conversation, request.owner, turn)

    async def _close(self, log: Log, request: TurnRequest, past: Past, before: int | None) -> Past:
        """Stores a result for calls without one; a new message closes a pause (R-HITL-5).

        The pause goes first: one whose calls have a result could not be gone on with.
        """
        held = await self.store.held(log.conversation, owner=log.owner)
        if held is not None:
            past = await self._past(request, log.conversation, before=before, why=CANCELLED)
            await self.store.release(log.conversation, held.id, owner=log.owner)
        if before is None:
            await log.keep_healed(past.sent, past.healed)
        return past

    async def _told(
        self, request: TurnRequest, entries: Sequence[Entry], before: int | None
    ) -> frozenset[str]:
        """The ids of those input messages that the log has already, before that position."""
        messages = request.as_kept(request.messages)  # the log may have them in other words
        count = resent(entries, messages)
        if not count and any(message.role == "assistant" for message in messages):
            conversation = request.conversation or ""
            log = await self.store.tail(conversation, owner=request.owner, before=before)
            count = resent([entry for entry in log if entry.turn != request.turn_id], messages)
        return frozenset(message.id for message in messages[:count])


def _others(entries: Sequence[Entry], turn: str) -> list[str]:
    """The ids of entries that are of other turns, and count."""
    return [e.message.id for e in entries if e.turn != turn and e.state != "superseded"]


def _check_summary(summary: Summarizer, window: Window) -> None:
    if window.page is None:
        raise ConfigError(
            "Memory(summary=...) stands for what a window has no room for; give max_tokens=... or"
            " max_messages=...."
        )
    if window.tokens is not None and summary.tokens >= window.tokens:
        raise ConfigError(
            f"A summary of {summary.tokens} tokens leaves no room in a window of {window.tokens};"
            " lower Summarizer(tokens=...), or widen the window."
        )
