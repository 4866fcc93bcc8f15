"""What one turn shares among its layers: the one mutable thing behind the frozen requests.

A scope belongs to one turn and dies with it. Layers reach it only through the methods of their
requests; the loop and the models use it directly.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from retinue.chains import events
from retinue.chains.channel import Channel
from retinue.chains.events import Status
from retinue.chains.responses import ChatResponse, Spent, TurnResponse
from retinue.messages import Message, Usage, new_id
from retinue.tools import NOTHING, CancelToken, ToolResponse

if TYPE_CHECKING:
    from retinue.chains.output import Output
    from retinue.chains.send import Delivery
    from retinue.chains.settings import Settings

    Consult = Callable[
        ["Scope", tuple[Message, ...], Any, str | None, Settings | None, Output | None],
        Awaitable[ChatResponse],
    ]


class Journal(Protocol):
    """Keeps the log of a turn while it runs (R-MEM-2). A memory brings one: `scope.journals`."""

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


class Halt(Struct, frozen=True):
    """Why a turn is being stopped from outside its own course."""

    status: Status
    reason: str


class Scope:
    """One turn.

    Attributes:
        id: the turn's id.
        consult: asks a model on the side; set by the agent.
        channel: the way to the reader, or None if nobody reads.
        path: the calls that lead to this (sub-)agent.
        final_only: whether the reader wants the text of the answer alone.
        token_limit: tokens that the turn may use, or None.
        transcript: the messages of the turn so far, as the log has them.
        recorded: all messages that were given to the journals, by id, as they stand there.
        state: the slots as the last barrier left them.
        finished: how the inner loop ended last.
        latest: what the loop, or the turn layer inside the present one, gave; re-entry goes on
            from it.
        deadline: when the turn's time is up, by the clock of the event loop, or None.
        call_ids: the ids of all calls of the turn that were run or answered.
        outcome: how the turn ended, once it has.
        results: what came of the calls of the present batch, by call id, as they finish.
        spent: the model calls so far, those of sub-agents included; `usage` is their sum.
        estimated: tokens of calls whose provider reported none.
        round, attempt: the numbers of the last ones.
        standing: the last delivery, whose text the reader holds.
        originals: for shown messages that the log has otherwise: what was shown, and what the log
            has (None: nothing).
        cancel: what running tools look at.
    """

    __slots__ = (
        "_cancels", "_halts", "_locals", "_superseded", "attempt", "call_ids", "cancel", "channel",
        "consult", "deadline", "estimated", "final_only", "finished", "halted", "id", "journals",
        "latest", "originals", "outcome", "path", "recorded", "results", "round", "spent",
        "standing", "state", "task", "token_limit", "transcript", "usage",
    )  # fmt: skip

    def __init__(
        self,
        consult: "Consult",
        channel: Channel | None = None,
        token_limit: int | None = None,
    ) -> None:
        self.id = new_id()
        self.consult = consult
        self.channel = channel
        self.path: tuple[str, ...] = ()
        self.final_only = False
        self.token_limit = token_limit
        self.transcript: tuple[Message, ...] = ()
        self.recorded: dict[str, Message] = {}
        self.state: Mapping[str, Any] = NOTHING
        self.finished: TurnResponse | None = None
        self.latest: TurnResponse | None = None
        self.deadline: float | None = None
        self.call_ids: set[str] = set()
        self.outcome: TurnResponse | None = None
        self.spent: list[Spent] = []
        self.usage = Usage()
        self.estimated = 0
        self.results: dict[str, ToolResponse] = {}
        self.round = 0
        self.attempt = 0
        self.standing: Delivery | None = None
        self.originals: dict[str, tuple[Message, Message | None]] = {}
        self.journals: list[Journal] = []
        self.cancel = CancelToken()
        self.task: asyncio.Task[Any] | None = None
        self.halted: Halt | None = None
        self._halts = 0
        self._cancels = 0
        self._locals: dict[int, dict[str, Any]] = {}
        self._superseded: frozenset[str] = frozenset()

    def local(self, owner: object) -> dict[str, Any]:
        """The scratch of one layer for this turn."""
        return self._locals.setdefault(id(owner), {})

    # -- the log ------------------------------------------------------------------------------

    async def record(self, messages: tuple[Message, ...]) -> None:
        """The transcript is now `messages`; journals store what is new in it.

        Raises:
            CancelledError: the turn has ended, and a task that a layer left behind goes on with it.
        """
        if self.outcome is not None and asyncio.current_task() is not self.task:
            raise asyncio.CancelledError
        self.transcript = messages
        if self.journals:
            for message in messages:
                self.recorded.setdefault(message.id, message)
        for journal in self.journals:
            await journal.append(messages, self._superseded)

    async def amend(self, messages: tuple[Message, ...]) -> None:
        """The transcript is now `messages`, and what reads otherwise in it does so in the log."""
        await self.record(messages)
        for message in messages:
            if self.recorded.get(message.id, message) is not message:
                self.recorded[message.id] = message
                for journal in self.journals:
                    await journal.revise(message)

    def own(self, answer: Message) -> Message:
        """The answer under an id of this turn; a layer may give one that it has kept."""
        ours = answer.id in self.originals or any(m.id == answer.id for m in self.transcript)
        return answer if ours else answer.with_(id=new_id())

    def logged(self, shown: Message) -> Message:
        """What the log keeps of an answer as it was shown."""
        was, logged = self.originals.get(shown.id, (None, None))
        return logged if was is shown and logged is not None else shown

    def placed(self, response: TurnResponse) -> TurnResponse:
        """The response with its answer in its place among its messages: where it stood, or where
        the loop's own answer did."""
        final, messages = response.message, response.messages
        if final is None or self.originals.get(final.id, (None,))[0] is final:
            return response
        ids = {message.id for message in messages}
        replaced = None if self.finished is None else self.finished.message
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

    # -- tokens -------------------------------------------------------------------------------

    @property
    def tokens(self) -> int:
        """Tokens used so far; calls that reported none are estimated."""
        return self.usage.total + self.estimated

    def charge(self, spent: Iterable[Spent], *, report: bool = True) -> None:
        """Adds model calls to the turn's account, and tells the reader unless he knows already."""
        for one in spent:
            self.spent.append(one)
            self.usage = self.usage + one.usage
            if report:
                self.emit(events.UsageReported, usage=one.usage, total=self.usage)

    # -- stopping -----------------------------------------------------------------------------

    def halt(self, status: Status, reason: str) -> None:
        """Stops the turn from outside: what it awaits is cancelled. The first halt counts, but a
        turn that has run into a limit can still be cancelled."""
        halted = self.halted is not None and (self._halts or self.halted.status != "limit")
        if halted or self.outcome is not None:
            return
        self.halted = Halt(status, reason)
        self.cancel.cancel()
        if self.task is not None:
            self._halts += 1
            self.task.cancel()

    def interrupt(self, status: Status, reason: str) -> None:
        """Stops the turn from within its own task.

        Raises:
            CancelledError: always; the loop knows it by `halted`.
        """
        if self.halted is None:
            self.halted = Halt(status, reason)
        self.cancel.cancel()
        raise asyncio.CancelledError(reason)

    def runs_here(self) -> None:
        """The turn runs in the present task."""
        self.task = asyncio.current_task()
        self._cancels = 0 if self.task is None else self.task.cancelling()

    async def stop_if_cancelled(self) -> None:
        """Raises CancelledError once more, where a layer or a tool has swallowed it, and in what
        a layer has left running when the turn ended."""
        task = self.task
        if self.outcome is not None:
            raise asyncio.CancelledError
        if self.halted is not None or (task is not None and task.cancelling() > self._cancels):
            await asyncio.sleep(0)  # raises what is still on its way, or it would come later
            raise asyncio.CancelledError

    def absorb(self) -> Halt | None:
        """On a CancelledError: the halt behind it, or None if it came from outside."""
        task = self.task
        if self.halted is None or task is None:
            return None
        while self._halts:
            self._halts -= 1
            task.uncancel()
        return None if task.cancelling() > self._cancels else self.halted

    # -- the reader ---------------------------------------------------------------------------

    def emit(self, kind: type[events.Event], **fields: Any) -> None:
        """Tells the reader, if there is one."""
        channel = self.channel
        if channel is not None:
            channel.put(kind(channel.seq + 1, self.round, self.attempt, self.path, **fields))
