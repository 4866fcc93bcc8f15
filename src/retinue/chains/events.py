"""What happens in a turn, as its reader sees it (R-STREAM-1).

Every event has a number (`seq`, from 1, without gaps in a turn), the round and the attempt it
belongs to, and `path`: the ids of the calls that lead to the sub-agent it comes from, empty for
the agent itself. The first event is `TurnStarted`, the last is `TurnEnded`, always and once.

An attempt is one go at an answer; its number only rises. The text chunks of the last attempt,
joined, are the final text, exactly. Text of earlier attempts is what the model said before it
called a tool, unless `AttemptDiscarded` took it back.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from retinue.messages import Message, Usage
from retinue.tools import PendingCall

Status = Literal["completed", "paused", "blocked", "limit", "cancelled", "failed"]
"""How a turn ended (R-LOOP-4)."""


class Event(Struct, frozen=True, tag_field="type"):
    """What all events have."""

    seq: int
    round: int
    attempt: int
    path: tuple[str, ...]


class TurnStarted(Event, frozen=True, tag="turn_started"):
    """The turn begins."""

    turn: str
    conversation: str | None = None


class RoundStarted(Event, frozen=True, tag="round_started"):
    """A round begins: one model call and what it asks for."""


class AttemptStarted(Event, frozen=True, tag="attempt_started"):
    """A model is asked, or a layer's own answer is about to be delivered."""


class AttemptDiscarded(Event, frozen=True, tag="attempt_discarded"):
    """The text of this attempt does not count; take back what was shown of it."""

    reason: str


class TextChunk(Event, frozen=True, gc=False, tag="text"):
    """More text."""

    text: str


class ThinkingChunk(Event, frozen=True, gc=False, tag="thinking"):
    """More reasoning; never part of the text."""

    text: str


class ToolArguments(Event, frozen=True, gc=False, tag="tool_arguments"):
    """More of a call that the model is writing: its number in the answer, and a fragment.

    The id and the name stand in the first fragment of each call.
    """

    index: int
    call_id: str
    name: str
    fragment: str


class ToolStarted(Event, frozen=True, tag="tool_started"):
    """A tool is about to run. `arguments` is None where the model wrote no JSON object."""

    call_id: str
    name: str
    arguments: Mapping[str, Any] | None


class ToolRetried(Event, frozen=True, tag="tool_retried"):
    """A transient failure; the call runs again after `wait` seconds."""

    call_id: str
    name: str
    error: str
    wait: float


class ToolFinished(Event, frozen=True, tag="tool_finished"):
    """A call has its result: what the model is told, and the seconds it took.

    A call that the gate has decided, or that a limit has closed, never started.
    """

    call_id: str
    name: str
    ok: bool
    text: str
    seconds: float
    blocked_by: str | None = None


class ModelRetried(Event, frozen=True, tag="model_retried"):
    """A model call failed before its first token; it is tried again after `wait` seconds."""

    error: str
    wait: float


class UsageReported(Event, frozen=True, tag="usage"):
    """Tokens of one model call, and of the turn so far.

    In a turn that is measured, `cost` is what the call cost in US dollars, where that is known.
    """

    usage: Usage
    total: Usage
    cost: float | None = None


class LayerTime(Struct, frozen=True):
    """What one layer took of a turn in one of its hooks.

    Attributes:
        name: the layer, or the model.
        hook: the hook, or `model`.
        calls: how often it was called.
        seconds: its own time, without that of the layers inside it. Calls at the same time add up.
    """

    name: str
    hook: str
    calls: int
    seconds: float


class LayersTimed(Event, frozen=True, tag="layers_timed"):
    """What the layers took, those of one hook from the outside in. A turn that is measured tells
    it before its end."""

    layers: tuple[LayerTime, ...]


class Paused(Event, frozen=True, tag="paused"):
    """The turn waits for answers; `pending` says to what."""

    reason: str
    pending: tuple[PendingCall, ...] = ()


class TurnEnded(Event, frozen=True, tag="turn_ended"):
    """The turn is over. Nothing comes after it."""

    turn: str
    status: Status
    text: str = ""
    message: Message | None = None
    usage: Usage = Usage()
    reason: str | None = None
    blocked_by: str | None = None
    error: str | None = None


AnyEvent = (
    TurnStarted | RoundStarted | AttemptStarted | AttemptDiscarded | TextChunk | ThinkingChunk
    | ToolArguments | ToolStarted | ToolRetried | ToolFinished | ModelRetried | UsageReported
    | LayersTimed | Paused | TurnEnded
)  # fmt: skip


def final_text(events: Iterable[Event]) -> str:
    """The text a reader is left with: the chunks of the last attempt that was not taken back."""
    chunks: dict[int, list[str]] = {}
    last = 0
    for event in events:
        if event.path:
            continue
        if isinstance(event, AttemptStarted):
            last = event.attempt
        elif isinstance(event, AttemptDiscarded):
            chunks.pop(event.attempt, None)
        elif isinstance(event, TextChunk):
            chunks.setdefault(event.attempt, []).append(event.text)
    return "".join(chunks.get(last, []))
