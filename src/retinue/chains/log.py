"""The log of one turn while it runs: its transcript, and the journals that store it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from retinue.chains.responses import TurnResponse
from retinue.chains.stopping import Stopping
from retinue.messages import Message, ToolCall, new_id


class Journal(Protocol):
    """Keeps the log of a turn while it runs (R-MEM-2). A memory brings one: `request.record_in`."""

    async def append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        """Stores what is not stored yet, and marks what is superseded.

        Args:
            messages: the whole transcript of the turn so far. As long as no model has answered in
                it, its question is unanswered.
            superseded: ids that stay in the log and are not sent in later turns.
        """
        ...

    async def revise(self, message: Message) -> None:
        """Replaces the stored message of the same id."""
        ...

    async def pause(self, id: str, document: bytes) -> None:
        """Keeps what the turn goes on from, in place of an earlier pause of the conversation."""
        ...

    async def go_on(self) -> None:
        """The turn goes on from its pause, if it had one: that is used up now.

        Raises:
            PauseNotFound: somebody else has used it up; nothing of the turn may be stored.
        """
        ...

    async def close(self) -> None:
        """The turn is over; whatever was held for it is let go."""
        ...


ENDED: Final = "ended"
"""The key in a message's `meta` that says how its turn ended, where the message does not."""


def has_ended(last: Message) -> bool:
    """Whether a turn whose log ends with this message has ended, rather than been cut off."""
    return ENDED in last.meta or (last.role == "assistant" and not last.tool_calls)


INSTEAD: Final = "instead_of"
"""The key in a question's `meta` that names the turn in whose place it is asked. With the first
answer, that turn and all behind it are marked superseded; before that, nothing is."""


class Unfinished(Struct, frozen=True):
    """A turn that a crash has cut off.

    Attributes:
        turn: its id.
        messages: its messages, results in call order.
        last: the id of the message that was stored last.
    """

    turn: str
    messages: tuple[Message, ...]
    last: str


class Origin(Struct, frozen=True):
    """Where a turn began.

    Attributes:
        turn: its id, or that of the turn in whose place it stands.
        question: what was asked, without what `INSTEAD` says.
    """

    turn: str
    question: tuple[Message, ...]


@runtime_checkable
class Keeper(Protocol):
    """An advisor that keeps turns which wait, or were cut off. A memory is one."""

    async def paused(self, conversation: str, owner: str | None) -> bytes | None:
        """What the paused turn of a conversation goes on from, or None if none is paused."""
        ...

    async def unfinished(self, conversation: str, owner: str | None) -> Unfinished | None:
        """The last turn, if a crash has cut it off."""
        ...

    async def origin(self, conversation: str, owner: str | None, turn: str | None) -> Origin:
        """What was asked in a turn, or in the last one.

        Raises:
            ConfigError: the conversation has no such turn.
            ConversationNotFound: there is no such conversation for this owner.
        """
        ...

    async def fork_before(
        self, conversation: str, owner: str | None, turn: str, new: str | None
    ) -> str:
        """Makes a conversation of what came before a turn, and gives its id: `new`, or any."""
        ...


class Log:
    """What a turn has said so far.

    Attributes:
        transcript: the messages of the turn so far, as the log has them.
        journals: where they are stored.
        recorded: all messages that were given to the journals, by id, as they stand there.
        originals: for shown messages that the log has otherwise: what was shown, and what the log
            has (None: nothing).
        untouched: whether the turn goes on, and has done nothing yet. What stops it then leaves the
            log, and the pause, as they were.
        changes: how messages are changed where they are kept, those of outer layers first.
    """

    __slots__ = (
        "_changed", "_stopping", "_superseded", "changes", "journals", "originals", "recorded",
        "transcript", "untouched",
    )  # fmt: skip

    def __init__(self, stopping: Stopping) -> None:
        self.transcript: tuple[Message, ...] = ()
        self.journals: list[Journal] = []
        self.recorded: dict[str, Message] = {}
        self.originals: dict[str, tuple[Message, Message | None]] = {}
        self.untouched = False
        self.changes: list[Callable[[Message], Message]] = []
        self._changed: dict[str, tuple[Message, Message]] = {}
        self._superseded: frozenset[str] = frozenset()
        self._stopping = stopping

    async def record(self, messages: tuple[Message, ...]) -> None:
        """The transcript is now `messages`; journals store what is new in it.

        Raises:
            CancelledError: the turn has ended, and a task that a layer left behind goes on with it.
        """
        self._stopping.check_left_behind()
        self.untouched = False
        self.transcript = messages
        if self.journals:
            for message in messages:
                self.recorded.setdefault(message.id, message)
        for journal in self.journals:
            await journal.append(self.kept(messages), self._superseded)

    async def keep(self, *results: Message) -> None:
        """Calls of the present batch have results; journals store them before the batch ends."""
        self._stopping.check_left_behind()
        for result in results:
            self.recorded.setdefault(result.id, result)
        for journal in self.journals:
            await journal.append(self.kept((*self.transcript, *results)), self._superseded)

    async def go_on(self, *results: Message) -> None:
        """The open calls are about to run, or to be given up: the pause is used up.

        What is decided of them already is stored before, so that no answer is lost in between.

        Raises:
            PauseNotFound: somebody else has gone on with the turn.
        """
        if results:
            await self.keep(*results)
        for journal in self.journals:
            await journal.go_on()
        self.untouched = False

    async def amend(self, messages: tuple[Message, ...]) -> None:
        """The transcript is now `messages`, and what reads otherwise in it does so in the log."""
        await self.record(messages)
        for message in messages:
            if self.recorded.get(message.id, message) is not message:
                self.recorded[message.id] = message
                for journal in self.journals:
                    await journal.revise(self._kept(message))

    def kept(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages as they are to be kept, in the journals and in the turn's result."""
        return tuple(map(self._kept, messages)) if self.changes else messages

    def _kept(self, message: Message) -> Message:
        known, changed = self._changed.get(message.id, (None, message))
        if known is not message:
            changed = message
            for change in reversed(self.changes):
                changed = change(changed)
            self._changed[message.id] = (message, changed)
        return changed

    def reworded(self, message: Message, text: str) -> Message:
        """The message with another text to be shown; what the log has of it stays."""
        shown, logged = self.originals.get(message.id, (message, message))
        new = message.with_text(text)
        self.originals[new.id] = (new, logged if shown is message else message)
        return new

    def own(self, answer: Message) -> Message:
        """The answer under an id of this turn; a layer may give one that it has kept."""
        ours = answer.id in self.originals or any(m.id == answer.id for m in self.transcript)
        return answer if ours else answer.with_(id=new_id())

    def logged(self, shown: Message) -> Message:
        """What the log keeps of an answer as it was shown."""
        was, logged = self.originals.get(shown.id, (None, None))
        if was is None or logged is None:
            return shown
        if was is not shown and _words(was) == _words(shown):  # not what is said, but its calls
            calls = shown.tool_calls
            if len(calls) == len(logged.tool_calls):
                left = iter(calls)
                parts = (next(left) if type(p) is ToolCall else p for p in logged.parts)
                return shown.with_(parts=tuple(parts))
        return logged if was is shown else shown

    def placed(self, response: TurnResponse, instead_of: TurnResponse | None) -> TurnResponse:
        """The response with its answer in its place among its messages.

        Args:
            response: how the turn ended, as the last layer had it.
            instead_of: how the loop had it; a new answer stands where the loop's own stood.
        """
        final, messages = response.message, response.messages
        if final is None or self.originals.get(final.id, (None,))[0] is final:
            return response
        ids = {message.id for message in messages}
        replaced = None if instead_of is None else instead_of.message
        if final.id not in ids and replaced is not None and replaced.id in ids:
            final = final.with_(id=replaced.id)
        if final.id in ids:
            messages = tuple(final if message.id == final.id else message for message in messages)
        else:
            messages = (*messages, final)
        return response.with_(message=final, messages=messages)

    def supersede(self, ids: Iterable[str]) -> None:
        """These messages do not count in later turns."""
        self._superseded |= frozenset(ids)


def _words(message: Message) -> tuple[str, str]:
    return message.text, message.thinking
