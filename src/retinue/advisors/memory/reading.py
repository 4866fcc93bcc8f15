"""What is read of a conversation's log for one turn: its end, as far as the window can show it."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from retinue.advisors.memory.summary import THROUGH, in_view
from retinue.advisors.memory.window import Window
from retinue.messages import Message
from retinue.messages.window import heal, opening
from retinue.stores import Entry, Store
from retinue.stores.views import answered

HEALED: Final = "No result: the process ended before this call did."
_HEAD: Final = 8  # entries among which the conversation's own prompt is looked for
_REACH: Final = 4
"""Windows that are read back for a summary, or for what the first one is to stand for."""


class Past(Struct, frozen=True):
    """What was read.

    Attributes:
        entries: the end of the log, from a turn start on.
        sent: those entries that no summary stands for.
        healed: the messages of these that later turns are sent, each call with a result.
        history: what the turn's request begins with: the conversation's own prompt, the summary,
            and then `healed`.
    """

    entries: Sequence[Entry]
    sent: Sequence[Entry]
    healed: tuple[Message, ...]
    history: tuple[Message, ...]


async def read(
    store: Store, conversation: str, owner: str | None, window: Window, *, summaries: bool
) -> Past:
    """Reads what a turn can need of a conversation.

    Args:
        store, conversation, owner: which conversation.
        window: what a model call may be sent.
        summaries: whether a summary may stand for what is before it.
    """
    if window.page is None:
        everything = await store.tail(conversation, owner=owner)
        return _past(everything, everything)
    entries: list[Entry] = []
    while True:
        before = entries[0].position if entries else None
        found = await store.tail(conversation, owner=owner, limit=window.page, before=before)
        entries = [*found, *entries]
        begun = len(found) < window.page  # these are all
        whole = entries if begun else [e for e in entries if e.turn != entries[0].turn]
        summary = _latest(entries) if summaries else None
        sent = None if summary is None else _after(entries, summary)
        if sent is None:
            if not begun and not window.is_filled(answered(whole), _REACH if summaries else 1):
                continue
            sent = whole
        prompt: tuple[Message, ...] = ()
        if not begun or len(sent) < len(entries):
            head = await store.head(conversation, owner=owner, limit=_HEAD)
            first = sent[0].position if sent else entries[-1].position + 1
            older = [entry for entry in head if entry.position < first]
            prompt = opening([entry.message for entry in older if not entry.state])
        return _past(whole, sent, summary, prompt)


def _past(
    entries: Sequence[Entry],
    sent: Sequence[Entry],
    summary: Message | None = None,
    prompt: tuple[Message, ...] = (),
) -> Past:
    healed = heal(answered(sent), HEALED)
    history = (*prompt, *healed)
    if summary is not None:
        first = len(opening(history))
        history = (*history[:first], *in_view(summary), *history[first:])
    return Past(entries, sent, healed, history)


def _latest(entries: Sequence[Entry]) -> Message | None:
    return next((e.message for e in reversed(entries) if e.state == "summary"), None)


def _after(entries: Sequence[Entry], summary: Message) -> Sequence[Entry] | None:
    """The entries behind the last one that the summary stands for; None if that is not there."""
    through = summary.meta.get(THROUGH)
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].message.id == through:
            return entries[at + 1 :]
    return None
