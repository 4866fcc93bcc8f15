"""Turns that are asked anew: where the old one began, and what the new one replaces (R-MEM-8).

Nothing is removed. The new question names the old turn in its `meta`; it is sent what came before
that, and its first answer marks the rest superseded, in the same write.
"""

from collections.abc import Sequence
from typing import Final

from retinue.chains.log import ENDED, INSTEAD, Origin
from retinue.errors import ConfigError
from retinue.messages import Message
from retinue.stores import Asker, Entry, Store, rules

_PAGE: Final = 64  # entries read at once


def replaces(messages: Sequence[Message]) -> str | None:
    """The turn in whose place these messages are asked, or None."""
    return next((str(m.meta[INSTEAD]) for m in messages if INSTEAD in m.meta), None)


async def since(store: Store, conversation: str, owner: Asker, turn: str) -> Sequence[Entry]:
    """The entries of a turn and all behind it; none if it is not there (any more)."""
    entries, at = await _back_to(store, conversation, owner, turn)
    return [] if at is None else entries[at:]


async def origin(store: Store, conversation: str, owner: Asker, turn: str | None) -> Origin:
    """See `Keeper.origin`."""
    entries, at = await _back_to(store, conversation, owner, turn)
    if not entries:
        raise rules.not_found(conversation)
    if at is None:
        name = "" if turn is None else f" {rules.quoted(turn)}"
        raise ConfigError(f"Conversation {rules.quoted(conversation)} has no turn{name} to repeat.")
    asked = _asked(entries[at:])
    first = replaces(asked)
    if first is None or not await since(store, conversation, owner, first):
        first = entries[at].turn
    return Origin(first, tuple(map(_plain, asked)))


async def fork_before(
    store: Store, conversation: str, owner: Asker, turn: str, new: str | None
) -> str:
    """See `Keeper.fork_before`."""
    name = rules.fork_of(conversation) if new is None else new
    async with store.writing(conversation):
        gone = await since(store, conversation, owner, turn)
        end = gone[0].position - 1 if gone else None
        await store.fork(conversation, name, at=end, owner=owner)
    return name


async def _back_to(
    store: Store, conversation: str, owner: Asker, turn: str | None
) -> tuple[list[Entry], int | None]:
    """The end of the log, and where in it a turn begins: the last one by default.

    A question that was asked again, since nobody answered it, belongs to an earlier turn than its
    answer; the turn begins with it then.
    """
    entries: list[Entry] = []
    while True:
        before = entries[0].position if entries else None
        found = await store.tail(conversation, owner=owner, limit=_PAGE, before=before)
        entries = [*found, *entries]
        if turn is None:
            turn = next((e.turn for e in reversed(found) if e.state in ("", "unanswered")), None)
        at = next((at for at, entry in enumerate(entries) if entry.turn == turn), None)
        if at and not _is_asked(entries[at]) and _is_asked(entries[at - 1]):
            asked = entries[at - 1].turn
            at = next(at for at, entry in enumerate(entries) if entry.turn == asked)
        if at or len(found) < _PAGE:
            return entries, at


def _asked(entries: Sequence[Entry]) -> list[Message]:
    """What was asked in the turn that the entries begin with: all up to its last question.

    A caller may have given a whole transcript, in which the answers are of no model of ours.
    """
    given: list[Entry] = []
    for entry in entries:
        if entry.turn != entries[0].turn or entry.message.model is not None:
            break
        given.append(entry)
    while given and not _is_asked(given[-1]):
        given.pop()
    return [entry.message for entry in given]


def _is_asked(entry: Entry) -> bool:
    return entry.message.role in ("user", "system")


def _plain(message: Message) -> Message:
    meta = {key: value for key, value in message.meta.items() if key not in (ENDED, INSTEAD)}
    return message.with_(meta=meta)
