"""Conversations through time: forked, rolled back and cut where that makes sense (R-MEM-8).

A legal point is the end of a turn, or a pause. Each change waits until nobody writes the
conversation, and happens as a whole or not at all.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from retinue.errors import ConfigError
from retinue.messages.window import is_question
from retinue.stores import rules
from retinue.stores.base import Asker, Entry, Store, Summary
from retinue.stores.views import in_turns


class Point(Struct, frozen=True):
    """The end of one turn.

    Attributes:
        turn: the turn's id.
        position: that of its last entry.
        question: the start of what was asked, as a title.
        messages: how many messages the turn has.
        paused: whether it waits for answers.
    """

    turn: str
    position: int
    question: str
    messages: int
    paused: bool = False


class Branch(Struct, frozen=True):
    """A conversation and its forks."""

    conversation: Summary
    forks: "tuple[Branch, ...]" = ()


class Timeline:
    """The past of the conversations of a store.

    Args:
        store: where they are.

    Raises:
        ConfigError: it is no store.
    """

    def __init__(self, store: Store) -> None:
        rules.check_store("Timeline", store)
        self._store = store

    async def points(self, conversation: str, *, owner: Asker = None) -> tuple[Point, ...]:
        """The legal points of a conversation, the oldest first.

        Turns that others have taken the place of are left out.
        """
        turns = await self._turns(conversation, owner)
        held = await self._store.held(conversation, owner=owner)
        points = [_point(turn) for turn in turns]
        if held is not None and points:
            points[-1] = structs.replace(points[-1], paused=True)
        return tuple(points)

    async def fork(
        self,
        conversation: str,
        new: str | None = None,
        *,
        at: str | None = None,
        owner: Asker = None,
    ) -> str:
        """Makes a conversation that goes its own way from a point on.

        Args:
            conversation: which one.
            new: the id of the fork; a new one by default.
            at: the turn that is the last which both have, by default the last one. If that is
                paused, so is the fork: both can be resumed, each once.
            owner: whose it is, and the fork will be.

        Returns:
            the id of the fork.

        Raises:
            ConfigError: the conversation has no such turn, or there is a conversation `new`.
            ConversationNotFound: there is none for this owner.
        """
        name = rules.fork_of(conversation) if new is None else new
        async with self._store.writing(conversation):
            position = None
            if at is not None:
                turns = await self._turns(conversation, owner)
                place = _place(conversation, turns, at)
                if turns[place] is not turns[-1]:
                    position = turns[place][-1].position
            await self._store.fork(conversation, name, at=position, owner=owner)
        return name

    async def rollback(self, conversation: str, to: str | None, *, owner: Asker = None) -> None:
        """Removes all that came after a turn, and the pause if there was one.

        Args:
            conversation: which one.
            to: the turn that stays as the last; None for none.
            owner: whose it is.

        Raises:
            ConfigError: the conversation has no such turn.
            ConversationNotFound: there is none for this owner.
        """
        async with self._store.writing(conversation):
            after = 0
            if to is not None:
                turns = await self._turns(conversation, owner)
                after = turns[_place(conversation, turns, to)][-1].position
            await self._store.rollback(conversation, after=after, owner=owner)

    async def prune(self, conversation: str, keep: int, *, owner: Asker = None) -> int:
        """Removes the oldest turns for good; gives how many.

        Args:
            conversation: which one.
            keep: how many of the latest turns stay, 1 or more.
            owner: whose it is.

        Raises:
            ConfigError: `keep` is below 1.
            ConversationNotFound: there is none for this owner.
        """
        if keep < 1:
            raise ConfigError(f"prune(keep={keep}): keep 1 turn or more, or delete it.")
        async with self._store.writing(conversation):
            turns = await self._turns(conversation, owner)
            gone = turns[:-keep]
            if gone:
                first = turns[-keep][0].position
                await self._store.prune(conversation, before=first, owner=owner)
            return len(gone)

    async def lineage(self, conversation: str, *, owner: Asker = None) -> tuple[str, ...]:
        """The conversations that this one comes from, the root first and itself last.

        The first of them may be gone by now.
        """
        known = {one.id: one for one in await self._all(owner)}
        if conversation not in known:
            raise rules.not_found(conversation)
        line: list[str] = [conversation]
        parent = known[conversation].parent
        while parent is not None:
            line.insert(0, parent)
            one = _origin(known[line[1]], known)
            parent = None if one is None else one.parent
        return tuple(line)

    async def tree(self, *, owner: Asker = None) -> tuple[Branch, ...]:
        """All conversations, each with its forks; the one written last first."""
        found = await self._all(owner)
        known = {one.id: one for one in found}
        forks: dict[str | None, list[Summary]] = {}
        for one in found:
            origin = _origin(one, known)
            forks.setdefault(None if origin is None else origin.id, []).append(one)
        grown: dict[str, Branch] = {}
        for one in sorted(found, key=_created, reverse=True):  # forks are younger than their origin
            grown[one.id] = Branch(one, tuple(grown[fork.id] for fork in forks.get(one.id, ())))
        return tuple(grown[root.id] for root in forks.get(None, ()))

    async def _all(self, owner: Asker) -> Sequence[Summary]:
        return await self._store.conversations(owner=owner, limit=_ALL)

    async def _turns(self, conversation: str, owner: Asker) -> list[list[Entry]]:
        """The turns that can be cut at, each with its entries."""
        entries = await self._store.tail(conversation, owner=owner)
        if not entries:
            raise rules.not_found(conversation)
        return [turn for turn in in_turns(entries) if any(e.state != "superseded" for e in turn)]


_ALL: Final = 1_000_000


def _place(conversation: str, turns: Sequence[Sequence[Entry]], turn: str) -> int:
    """Which of the turns has this id.

    Raises:
        ConfigError: none has.
    """
    for place, entries in enumerate(turns):
        if any(entry.turn == turn for entry in entries):
            return place
    last = f", the last is {rules.quoted(turns[-1][-1].turn)}" if turns else ""
    raise ConfigError(
        f"Conversation {rules.quoted(conversation)} has no turn {rules.quoted(turn)}; it has"
        f" {len(turns)}{last}."
    )


def _point(turn: Sequence[Entry]) -> Point:
    asked = next((e.message for e in turn if is_question(e.message)), None)
    return Point(
        turn=turn[-1].turn,
        position=turn[-1].position,
        question="" if asked is None else rules.question_of(asked),
        messages=len(turn),
    )


def _origin(fork: Summary, known: Mapping[str, Summary]) -> Summary | None:
    """The conversation that it was forked from, if that is there.

    A younger one of the same id, made after the origin was deleted, is another one.
    """
    origin = None if fork.parent is None else known.get(fork.parent)
    return origin if origin is not None and origin.created < fork.created else None


def _created(conversation: Summary) -> float:
    return conversation.created
