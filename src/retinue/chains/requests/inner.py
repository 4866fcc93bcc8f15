"""The requests inside a turn: a round, a model call, a tool call."""

from collections.abc import Mapping
from typing import Any

from retinue.chains.output import Output
from retinue.chains.requests.base import Request, as_answer
from retinue.chains.requests.turn import TurnRequest
from retinue.chains.responses import ChatResponse, RoundResponse
from retinue.chains.settings import Settings
from retinue.messages import Message, ToolCall
from retinue.tools import Tool, ToolResponse, as_result


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
