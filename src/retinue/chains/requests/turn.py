"""The request of the outermost hook: one user request."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from retinue.chains.output import Output
from retinue.chains.requests.base import Request, as_answer
from retinue.chains.responses import TurnResponse
from retinue.chains.settings import Settings
from retinue.chains.taps import Tap
from retinue.errors import ConfigError
from retinue.messages import Input, Message, as_messages
from retinue.tools import Tool

if TYPE_CHECKING:
    from retinue.chains.log import Journal
    from retinue.chains.meter import Meter
    from retinue.chains.taps import Pump


class TurnRequest(Request, frozen=True, kw_only=True):
    """One user request, as `turn` hooks see it.

    Attributes:
        messages: what was asked, and on re-entry the messages of the turn so far.
        history: earlier messages of the conversation, sent before them.
        conversation: the id under which the turn is stored, or None.
        owner: whose conversation it is, or None.
        data: the caller's object, handed to tools as `ctx.data`.
        instructions: texts added to the agent's own for this turn, sent after them.
        tools: the tools on offer.
        settings: how the model shall answer.
        output: the form that the final answer must have, or None.
        state: the slots when the turn began.
        context: what the caller and layers attach; handed back with the result.
        held: whether the reader is shown an answer only when the turn ends, so that a layer may
            still give it up unseen. Reasoning, calls and what is said before them are shown at
            once.
        reentry: how many times the turn was re-entered; 0 at first.
        resumed: whether the turn goes on after a pause or a crash.
        pause: the id of the pause that it goes on from, or None.
        upto: where it goes on after a crash, the message that was the last in the log; or None.
    """

    messages: tuple[Message, ...]
    history: tuple[Message, ...] = ()
    conversation: str | None = None
    owner: str | None = None
    data: Any = None
    instructions: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    settings: Settings = Settings()
    output: Output | None = None
    held: bool = False
    reentry: int = 0
    resumed: bool = False
    pause: str | None = None
    upto: str | None = None

    def again(self, feedback: Input, *, after: TurnResponse | None = None) -> Self:
        """The request that asks the model once more, with feedback (R-LOOP-5).

        The model sees the messages of the turn so far and then the feedback. In the log, the
        answer that is given up and the feedback are marked superseded.

        Args:
            feedback: what to tell the model.
            after: the response to go on from, where `call_next` was called several times at once;
                by default the last one.

        Raises:
            ConfigError: the response ended otherwise than completed (R-LOOP-4).
        """
        scope = self.scope
        done = scope.latest if after is None else after
        if done is None:
            raise ConfigError(
                "again() comes after call_next(); there is nothing to go on from yet."
            )
        if done.status != "completed":
            raise ConfigError(
                f"A turn that ended as {done.status} is not re-entered; pass its response on."
            )
        done = scope.log.placed(done, scope.finished)
        asked = tuple(m.with_(origin="feedback") for m in as_messages(feedback))
        given_up = () if done.message is None else (done.message,)
        scope.log.supersede(m.id for m in given_up + asked)
        return self.with_(
            messages=done.messages + asked, state=done.state, reentry=self.reentry + 1
        )

    def record_in(self, journal: "Journal") -> None:
        """From here on the turn's messages, those of this request first, are kept in a journal."""
        self.scope.log.journals.append(journal)
        self.scope.log.transcript = self.messages

    def keep_as(self, change: Callable[[Message], Message]) -> None:
        """From here on the log, and the result's `messages`, have each message of the turn as
        `change` gives it, under the same id. The turn itself goes on with it as it is.

        Args:
            change: a plain function that never raises. Those of inner layers come first.
        """
        self.scope.log.changes.append(change)

    def as_kept(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages as the log would have them."""
        return self.scope.log.kept(messages)

    def tap(self, pump: "Pump", *, limit: int = 256, lossy: bool = False) -> None:
        """Lets `pump` read the turn's events from here on, whether it is streamed or run.

        It runs in a task of its own, and the turn ends when it has: at the latest 5 seconds after
        the last event, when it is cancelled. An error of it stops the turn, which raises it.

        Args:
            pump: `async def pump(events)`, which reads by `async for event in events`.
            limit: how many events may wait for it.
            lossy: whether events that find no room are dropped; otherwise the turn waits.
        """
        self.scope.tap(pump, Tap(self.scope.path, limit, lossy=lossy), self.conversation)

    def meter_with(self, owner: object, meter: "Meter") -> bool:
        """From here on `meter` is asked before each model call, those of sub-agents included.

        Returns:
            whether it is: False where `owner`, an advisor, meters the turn already, as where a
            sub-agent has the same one.
        """
        return self.scope.meters.setdefault(id(owner), meter) is meter

    def respond(self, answer: str | Message, *, reason: str | None = None) -> TurnResponse:
        """Answers in place of all inner layers and the model; the turn is completed."""
        message = self.scope.log.own(as_answer(answer))
        return TurnResponse(
            id=self.scope.id,
            message=message,
            messages=(*self.messages, message),
            reason=reason,
            conversation=self.conversation,
            state=self.state,
            context=self.context,
            form=self.output,
        )

    def refuse(self, reason: str, *, answer: str | Message = "") -> TurnResponse:
        """Ends the turn as blocked; the caller is told `answer`.

        Nothing of a turn that no model was asked in is stored. What the log has already stays
        there, and is not sent in later turns.
        """
        return TurnResponse(
            id=self.scope.id,
            status="blocked",
            message=as_answer(answer) if answer else None,
            messages=self.messages,
            reason=reason,
            conversation=self.conversation,
            state=self.state,
            context=self.context,
        )
