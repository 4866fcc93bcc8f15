"""What is read of a conversation's log for one turn: its end, as far as the window can show it."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from retinue.advisors.memory.summary import THROUGH, in_view
from retinue.advisors.memory.window import Window
from retinue.chains.log import Unfinished, has_ended
from retinue.messages import Message
from retinue.messages.window import heal, in_call_order, opening
from retinue.stores import Entry, Store
from retinue.stores.views import answered

HEALED: Final = "No result: the process ended before this call did."
CANCELLED: Final = "Not run: a new message came in place of an answer to this call."
_PAGE: Final = 64  # entries read at once where the end of a turn is looked for
_HEAD: Final = 8  # entries among which the conversation's own prompt is looked for
_REACH: Final = 4
"""Windows that are read back for a summary, or for what the first one is to stand for."""


class Past(Struct, frozen=True):
    """What was read.

    Attributes:
        entries: the end of the log, from a turn start on.
        sent: those entries that no summary stands for.
        healed: the messages of these that later turns are sent, each call with a result.
        open: whether calls were without one.
        history: what the turn's request begins with: the conversation's own prompt, the summary,
            and then `healed`.
    """

    entries: Sequence[Entry]
    sent: Sequence[Entry]
    healed: tuple[Message, ...]
    open: bool
    history: tuple[Message, ...]


async def read(
    store: Store,
    conversation: str,
    owner: str | None,
    window: Window,
    *,
    summaries: bool,
    besides: str | None = None,
    before: int | None = None,
    why: str = HEALED,
) -> Past:
    """Reads what a turn can need of a conversation.

    Args:
        store, conversation, owner: which conversation.
        window: what a model call may be sent.
        summaries: whether a summary may stand for what is before it.
        besides: a turn that is left out of what is sent, for it goes on or is run again.
        before: the position that ends what is read; None for all.
        why: what the model is told of calls without a result.
    """
    end = before
    if window.page is None:
        everything = await store.tail(conversation, owner=owner, before=end)
        return _past(everything, _without(everything, besides), why)
    entries: list[Entry] = []
    while True:
        before = entries[0].position if entries else end
        found = await store.tail(conversation, owner=owner, limit=window.page, before=before)
        entries = [*found, *entries]
        begun = len(found) < window.page  # these are all
        whole = entries if begun else [e for e in entries if e.turn != entries[0].turn]
        others = _without(entries, besides)
        summary = _latest(others) if summaries else None
        sent = None if summary is None else _after(others, summary)
        if sent is None:
            filled = answered(_without(whole, besides))
            if not begun and not window.is_filled(filled, _REACH if summaries else 1):
                continue
            sent = whole
        prompt: tuple[Message, ...] = ()
        if not begun or len(sent) < len(entries):
            head = await store.head(conversation, owner=owner, limit=_HEAD)
            first = sent[0].position if sent else entries[-1].position + 1
            older = [entry for entry in _without(head, besides) if entry.position < first]
            prompt = opening([entry.message for entry in older if not entry.state])
        return _past(whole, _without(sent, besides), why, summary, prompt)


def _past(
    entries: Sequence[Entry],
    sent: Sequence[Entry],
    why: str,
    summary: Message | None = None,
    prompt: tuple[Message, ...] = (),
) -> Past:
    messages = answered(sent)
    healed = heal(messages, why)
    history = (*prompt, *healed)
    if summary is not None:
        first = len(opening(history))
        history = (*history[:first], *in_view(summary), *history[first:])
    return Past(entries, sent, healed, len(healed) > len(messages), history)


def _without(entries: Sequence[Entry], turn: str | None) -> Sequence[Entry]:
    return entries if turn is None else [entry for entry in entries if entry.turn != turn]


def _latest(entries: Sequence[Entry]) -> Message | None:
    return next((e.message for e in reversed(entries) if e.state == "summary"), None)


def _after(entries: Sequence[Entry], summary: Message) -> Sequence[Entry] | None:
    """The entries behind the last one that the summary stands for; None if that is not there."""
    through = summary.meta.get(THROUGH)
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].message.id == through:
            return entries[at + 1 :]
    return None


async def unfinished(store: Store, conversation: str, owner: str | None) -> Unfinished | None:
    """The last turn of a conversation, if its log ends as only a crash leaves it."""
    entries: list[Entry] = []
    while True:
        before = entries[0].position if entries else None
        found = await store.tail(conversation, owner=owner, limit=_PAGE, before=before)
        entries = [*found, *entries]
        if len(found) < _PAGE or entries[0].turn != entries[-1].turn:
            break
    turn = entries[-1].turn if entries else ""
    own = [e.message for e in entries if e.turn == turn and e.state in ("", "unanswered")]
    if not own or has_ended(own[-1]):
        return None
    return Unfinished(turn, tuple(in_call_order(own)), own[-1].id)
