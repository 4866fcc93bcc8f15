"""What a conversation store is: an append-only log of messages per conversation.

Every edge is written here in words; `retinue.testing.stores` checks them on any store.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Final, Literal, Protocol, runtime_checkable

from msgspec import Struct

from retinue.messages import Message

EntryState = Literal["", "unanswered", "superseded", "summary"]
"""Facts of the log about a message. "" is sent in later turns; the others are kept, not sent.

"summary" is no message of the transcript: it may be sent in the place of those before it.
"""


class Everyone(Enum):
    """All owners at once. It is no text, so nothing that a user sends can stand for it."""

    EVERYONE = auto()


EVERYONE: Final = Everyone.EVERYONE
"""Given as `owner` by tools of the operator: conversations of all owners."""

Asker = str | Everyone | None
"""Who asks: an owner, nobody in particular, or the operator."""


class Entry(Struct, frozen=True):
    """One message in the log.

    Attributes:
        position: where it stands in its conversation; rises, may have gaps.
        turn: the id of the turn that wrote it. A view is cut only where this changes.
        at: when it was stored, in seconds since 1970 (UTC).
    """

    position: int
    turn: str
    message: Message
    state: EntryState
    at: float


class Summary(Struct, frozen=True):
    """A conversation in a list.

    Attributes:
        title: the start of its first question.
        parent: the conversation that it was forked from, or None. That may be gone by now.
        forked_at: the position in the parent up to which both are the same, or None.
        paused: whether a turn of it waits for answers.
    """

    id: str
    owner: str | None
    title: str
    messages: int
    created: float
    updated: float
    parent: str | None = None
    forked_at: int | None = None
    paused: bool = False


class Held(Struct, frozen=True):
    """What a paused turn goes on from: the pause's id, and a document that the store only keeps."""

    id: str
    document: bytes


@runtime_checkable
class Store(Protocol):
    """Keeps conversations. All methods are safe to call from many tasks at once.

    A conversation comes into being with its first `append`, for the owner given there (None:
    nobody in particular). To any other owner it does not exist: reading or changing it raises
    ConversationNotFound. Ids are any text of 1 to 1,000 characters; no character is special, and
    an empty or longer one raises ConfigError.

    A store that cannot do its work (locked, read-only, corrupt, unreachable) raises StoreError
    with one sentence that names the place and the way out.
    """

    async def append(
        self,
        conversation: str,
        messages: Sequence[Message],
        *,
        turn: str,
        owner: Asker = None,
        states: Mapping[str, EntryState] | None = None,
    ) -> None:
        """Stores those messages whose id is not in the conversation yet, in the order given.

        `states` gives the state of messages by id, of those stored now and of older ones; a new
        message that it does not name has the state "". All of it happens, or none.
        """
        ...

    async def revise(self, conversation: str, message: Message, *, owner: Asker = None) -> None:
        """Replaces the content of the message of the same id; position, turn and state stay.

        A message that is not there raises ConversationNotFound.
        """
        ...

    async def tail(
        self,
        conversation: str,
        *,
        owner: Asker = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> Sequence[Entry]:
        """The last `limit` entries (all by default) at positions below `before`, oldest first.

        The cost grows with what is returned, not with the length of the conversation. A
        conversation that is not there yet has no entries.
        """
        ...

    async def head(
        self, conversation: str, *, owner: Asker = None, limit: int | None = None
    ) -> Sequence[Entry]:
        """The first `limit` entries (all by default), oldest first; else as `tail`."""
        ...

    async def known(
        self, conversation: str, ids: Sequence[str], *, owner: Asker = None
    ) -> frozenset[str]:
        """Those of the ids that are stored in the conversation."""
        ...

    async def conversations(self, *, owner: Asker = None, limit: int = 100) -> Sequence[Summary]:
        """The owner's conversations, the one written last first. `EVERYONE` lists all."""
        ...

    async def delete(self, conversation: str, *, owner: Asker = None) -> None:
        """Removes a conversation and all its messages.

        Raises:
            ConversationNotFound: there is none for this owner.
        """
        ...

    async def hold(
        self, conversation: str, id: str, document: bytes, *, owner: Asker = None
    ) -> None:
        """Keeps a pause of the conversation, in place of an earlier one: there is at most one.

        A conversation that is not there raises ConversationNotFound.
        """
        ...

    async def held(self, conversation: str, *, owner: Asker = None) -> Held | None:
        """The pause of the conversation, or None. One that is not there yet has none."""
        ...

    async def release(self, conversation: str, id: str, *, owner: Asker = None) -> bool:
        """Takes the pause of this id away. True for exactly one caller, in all processes together;
        False where it is gone, or another one took its place."""
        ...

    async def fork(
        self, conversation: str, new: str, *, at: int | None = None, owner: Asker = None
    ) -> None:
        """Makes the conversation `new`, for the same owner, of the entries up to position `at`.

        Positions, turns, states and times of the entries stay. A fork of the whole conversation
        (`at` None) carries its pause along, under the same id; both can be released. All of it
        happens, or none. An id that exists raises ConfigError, a conversation that is not there
        ConversationNotFound. Where a cut makes sense is the business of
        `Timeline`.
        """
        ...

    async def rollback(self, conversation: str, *, after: int, owner: Asker = None) -> None:
        """Removes the entries behind position `after`, and the pause if there was one.

        A conversation that is not there raises ConversationNotFound.
        """
        ...

    async def prune(self, conversation: str, *, before: int, owner: Asker = None) -> None:
        """Removes the entries at positions below `before`. Those that stay keep their positions.

        A conversation that is not there raises ConversationNotFound.
        """
        ...

    def writing(self, conversation: str, *, wait: bool = True) -> AbstractAsyncContextManager[None]:
        """Held while a turn writes the conversation: one holder at a time (R-MEM-6).

        A second one waits, in the order of arrival, or with `wait=False` gets ConversationBusy. A
        holder whose process dies holds no longer.
        """
        ...

    async def close(self) -> None:
        """Lets go of files and connections. The store may be used again; it opens anew."""
        ...
