"""The log of one turn while it runs: its transcript, and the journals that store it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

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

    async def close(self) -> None:
        """The turn is over; whatever was held for it is let go."""
        ...


class Log:
    """What a turn has said so far.

    Attributes:
        transcript: the messages of the turn so far, as the log has them.
        journals: where they are stored.
        recorded: all messages that were given to the journals, by id, as they stand there.
        originals: for shown messages that the log has otherwise: what was shown, and what the log
            has (None: nothing).
        changes: how messages are changed where they are kept, those of outer layers first.
    """

    __slots__ = (
        "_changed", "_stopping", "_superseded", "changes", "journals", "originals", "recorded",
        "transcript",
    )  # fmt: skip

    def __init__(self, stopping: Stopping) -> None:
        self.transcript: tuple[Message, ...] = ()
        self.journals: list[Journal] = []
        self.recorded: dict[str, Message] = {}
        self.originals: dict[str, tuple[Message, Message | None]] = {}
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
        self.transcript = messages
        if self.journals:
            for message in messages:
                self.recorded.setdefault(message.id, message)
        for journal in self.journals:
            await journal.append(self.kept(messages), self._superseded)

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
