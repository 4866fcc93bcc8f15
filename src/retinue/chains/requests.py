"""The requests that the hooks see: turn ⊃ round ⊃ chat, and tool.

All are frozen; a layer passes on a copy (`with_`). What must be shared by the whole turn, such as
its token count and its reader, hangs on the hidden `scope`, which every copy keeps. So a request
is only ever made by the loop, or from another one by `with_`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct, structs

from retinue.chains.output import Output
from retinue.chains.responses import ChatResponse, RoundResponse, Spent, TurnResponse
from retinue.chains.settings import Settings
from retinue.chains.taps import Tap
from retinue.errors import ConfigError
from retinue.messages import Input, Message, ToolCall, as_messages, assistant
from retinue.tools import NOTHING, Tool, ToolResponse, as_result

if TYPE_CHECKING:
    from retinue.chains.log import Journal
    from retinue.chains.meter import Meter
    from retinue.chains.scope import Scope
    from retinue.chains.taps import Pump


class Request(Struct, frozen=True, kw_only=True):
    """What all requests have in common. `scope` is the library's own."""

    scope: "Scope"
    state: Mapping[str, Any] = NOTHING
    context: Mapping[str, Any] = NOTHING

    def with_(self, **changes: Any) -> Self:
        """A changed copy. Fields that it does not name stay as they are.

        Raises:
            ConfigError: a field that holds several things was given one, or things of a wrong kind.
        """
        for name in changes.keys() & _KINDS.keys():
            changes[name] = _several(name, changes[name])
        return structs.replace(self, **changes)

    def with_context(self, **values: Any) -> Self:
        """A copy with more context. Inner layers see it; what a turn layer adds, every round and
        the caller see too."""
        return structs.replace(self, context={**self.context, **values})

    def reworded(self, answer: Message, text: str) -> Message:
        """An answer with another text for the reader and the caller; the log keeps its own."""
        return self.scope.log.reworded(answer, text)

    def local(self, owner: object) -> dict[str, Any]:
        """The scratch of `owner` (an advisor) for this turn; nobody else sees it (R-ONION-12)."""
        return self.scope.local(owner)

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        return self.scope.id

    @property
    def agent(self) -> str:
        """The name of the agent whose turn it is."""
        return self.scope.agent

    @property
    def own_model(self) -> Any:
        """The agent's own model, which answers where no layer names another."""
        return self.scope.model

    @property
    def spent(self) -> Sequence[Spent]:
        """The model calls of the turn so far and their tokens, also where they failed."""
        return self.scope.spent

    async def consult(
        self,
        question: Input,
        *,
        model: Any = None,
        instructions: str | None = None,
        settings: Settings | None = None,
        output: Output | None = None,
    ) -> ChatResponse:
        """Asks a model on the side (R-USAGE-4).

        The call counts in the turn's usage and budgets and ends when the turn is cancelled, but
        none of it is in the turn's stream or log, and no layer sees it.

        Args:
            question: what to ask.
            model: which model to ask, an object or a "provider:model" string; the turn's own by
                default.
            instructions: a system prompt for this call.
            settings: how it shall answer.
            output: the form that the answer must have.
        """
        return await self.scope.consult(
            self.scope, as_messages(question), model, instructions, settings, output
        )


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
        resumed: whether the turn goes on after a pause.
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


class InnerRequest(Request, frozen=True, kw_only=True):
    """What the requests inside a turn have in common.

    Attributes:
        turn: the turn it belongs to, as the innermost turn layer passed it on.
        round: the number of the round, 1 for the first of the turn.
    """

    turn: TurnRequest
    round: int

    @property
    def conversation(self) -> str | None:
        """The id under which the turn is stored, or None."""
        return self.turn.conversation

    @property
    def owner(self) -> str | None:
        """Whose conversation it is, or None."""
        return self.turn.owner

    @property
    def data(self) -> Any:
        """The caller's object."""
        return self.turn.data


class RoundRequest(InnerRequest, frozen=True, kw_only=True):
    """One model call and the tool calls it asks for, as `round` hooks see it.

    Attributes:
        messages: the messages of the turn so far. What a layer adds here stays for every later
            round (R-LOOP-6) and goes into the log.
        remaining: rounds left after this one; with 0, calls of this round are not run.
    """

    messages: tuple[Message, ...]
    remaining: int = 0
    instructions: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    settings: Settings = Settings()
    output: Output | None = None

    def respond(self, answer: str | Message, *, reason: str | None = None) -> RoundResponse:
        """Answers in place of the model; the turn is completed."""
        message = self.scope.log.own(as_answer(answer))
        return RoundResponse(
            messages=(*self.messages, message),
            message=message,
            state=self.state,
            status="completed",
            reason=reason,
        )

    def refuse(self, reason: str, *, answer: str | Message = "") -> RoundResponse:
        """Ends the turn as blocked."""
        return RoundResponse(
            messages=self.messages,
            message=as_answer(answer) if answer else None,
            state=self.state,
            status="blocked",
            reason=reason,
        )


class ChatRequest(InnerRequest, frozen=True, kw_only=True):
    """One model call, as `chat` hooks and models see it.

    Attributes:
        messages: what is sent, the history first. Changes go to the model only, not to the log.
        model: another model for this call, an object or a "provider:model" string; None for the
            agent's own.
        instructions: the system prompt in pieces, the stable ones first.
        tools: the tools on offer, in the order they are sent.
        settings: how the model shall answer.
        output: the form that the answer must have, or None.
        stream: whether somebody reads along, or a budget may cut the answer short. A model that is
            cheaper to ask without a stream may do so when this is false.
    """

    messages: tuple[Message, ...]
    model: Any = None
    instructions: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    settings: Settings = Settings()
    output: Output | None = None
    stream: bool = False

    @property
    def transcript(self) -> tuple[Message, ...]:
        """The messages of the turn so far as the log has them, whatever layers send instead."""
        return self.scope.log.transcript

    def respond(self, answer: str | Message, *, reason: str | None = None) -> ChatResponse:
        """Answers in place of the model; the turn goes on from it as from any answer."""
        return ChatResponse(message=as_answer(answer), tools=self.tools, reason=reason)

    def refuse(self, reason: str, *, answer: str | Message = "") -> ChatResponse:
        """Ends the turn as blocked."""
        return ChatResponse(message=as_answer(answer), reason=reason, refused=True)


class ToolRequest(InnerRequest, frozen=True, kw_only=True):
    """One tool call, as `tool` hooks and gates see it.

    Attributes:
        call: the call as the model wrote it.
        tool: the tool it names, or None if there is no such tool.
        arguments: the arguments as JSON values, not yet checked against the tool; None where the
            model wrote no JSON object.
        attempt: 1, and one more for each retry of a transient failure.
        tools: the tools on offer.
    """

    call: ToolCall
    tool: Tool | None
    arguments: Mapping[str, Any] | None
    attempt: int = 1
    tools: tuple[Tool, ...] = ()

    def respond(self, value: Any, *, reason: str | None = None) -> ToolResponse:
        """Gives a result in place of the tool, which does not run."""
        return ToolResponse(result=as_result(self.call, value), reason=reason)

    def refuse(self, reason: str) -> ToolResponse:
        """Tells the model that this call is not allowed; the tool does not run."""
        return ToolResponse(
            result=as_result(self.call, reason, ok=False), failure="semantic", reason=reason
        )


def as_answer(answer: str | Message) -> Message:
    """The assistant message that a layer's answer stands for."""
    return answer if isinstance(answer, Message) else assistant(answer)


_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "messages": (Message, "messages"),
    "history": (Message, "messages"),
    "instructions": (str, "texts"),
    "tools": (Tool, "tools"),
}


def _several(name: str, value: object) -> tuple[Any, ...]:
    kind, what = _KINDS[name]
    items: tuple[object, ...] = ()
    if isinstance(value, Iterable) and not isinstance(value, str):
        items = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if all(isinstance(item, kind) for item in items):
            return items
    raise ConfigError(f"with_({name}={value!r}) cannot be used; give a list of {what}.")
