"""What clients send and are sent: the one description that requests are checked by, and that the
OpenAPI document is made of."""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from retinue.chains import Status
from retinue.messages import Content, Usage
from retinue.serve.cards import AgentCard
from retinue.serve.dispatch import WorkerLoad
from retinue.serve.faults import Fault
from retinue.serve.jobs import Answered, Choices, ClientTool
from retinue.stores import Branch, Entry, Point, Summary
from retinue.tools import PendingCall

ConversationId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._~:@-]{1,200}$")]
RequestId = Annotated[str, Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Asking(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What asking for a turn and answering a pause have in common.

    Attributes:
        agent: the agent; it may be left out where there is only one.
        request_id: the client's own id of this request. The same id again joins what it started.
        stream: whether the answer is a stream of events, or JSON when the turn has ended.
        detached: whether the turn goes on when its reader leaves.
        timeout: seconds that the turn may take.
        measure: whether the events tell what layers took and what model calls cost.
    """

    agent: str | None = None
    request_id: RequestId | None = None
    stream: bool = False
    detached: bool = False
    timeout: Seconds | None = None
    measure: bool = False
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    choices: Choices = Choices()


class TurnBody(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks for a turn.

    Attributes:
        input: a text, or parts of a message.
        conversation: the id of the conversation that it belongs to.
        final_only: leave out text that the model says before it calls a tool.
        tools: tools that the client runs itself; the turn pauses for them.
        output: JSON Schema of the answer.
    """

    input: Annotated[str, Meta(min_length=1)] | Annotated[list[Content], Meta(min_length=1)]
    conversation: ConversationId | None = None
    final_only: bool = False
    tools: tuple[ClientTool, ...] = ()
    output: dict[str, Any] | None = None


class AnswersBody(Asking, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Goes on with a paused turn. Calls without an answer stay pending."""

    answers: dict[str, Answered]


class ForkBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Makes a fork of a conversation.

    Attributes:
        at: the turn that is the last which both have; by default all, and a pause with it.
        id: the id of the fork; a new one by default.
    """

    at: str | None = None
    id: ConversationId | None = None


class RollbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Removes what came after a turn; with `to` null, all of it."""

    to: str | None


class EventsQuery(Struct, frozen=True):
    """Where a reader goes on: behind the event of this id, as frames have it, or of this number."""

    after: Annotated[str, Meta(pattern="^([^:]+:)?[0-9]{1,15}$")] = "0"


class ListQuery(Struct, frozen=True):
    """How many are listed."""

    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class MessagesQuery(ListQuery, frozen=True):
    """How many messages are given, and below which position."""

    before: Annotated[int, Meta(ge=0, le=2**62)] | None = None


class TurnResult(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How a turn ended.

    Attributes:
        pending: what it waits for, where its status is `paused`.
    """

    turn: str
    status: Status
    text: str
    usage: Usage
    conversation: str | None = None
    reason: str | None = None
    blocked_by: str | None = None
    error: str | None = None
    pending: tuple[PendingCall, ...] = ()


class CancelResult(Struct, frozen=True):
    """The turn was asked to end, or has ended: then its status is there."""

    turn: str
    status: Status | None = None


class AgentList(Struct, frozen=True):
    """The agents that can be asked for."""

    agents: list[AgentCard]


class ConversationList(Struct, frozen=True):
    """Conversations, the one written last first."""

    conversations: list[Summary]


class ConversationTree(Struct, frozen=True):
    """Conversations, each with its forks."""

    tree: list[Branch]


class ConversationView(Struct, frozen=True):
    """One conversation: the ends of its turns, and what a paused one waits for.

    Attributes:
        running: the turn that is going on in it, as far as this server knows.
    """

    id: str
    points: list[Point]
    pending: tuple[PendingCall, ...] = ()
    running: str | None = None


class MessageList(Struct, frozen=True):
    """Messages of a conversation, the oldest first.

    Attributes:
        before: what gives the page before this one; None if there is none.
    """

    messages: list[Entry]
    before: int | None = None


class ForkResult(Struct, frozen=True):
    """The id of the fork."""

    id: str


class LoadView(Struct, frozen=True):
    """How busy the server is, and who runs its turns."""

    running: int
    queued: int
    capacity: int | None
    draining: bool
    workers: tuple[WorkerLoad, ...]


class Health(Struct, frozen=True):
    """Whether the server lives, or takes new turns."""

    status: str


class ErrorBody(Struct, frozen=True):
    """What went wrong."""

    error: Fault
