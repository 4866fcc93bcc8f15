"""What the engine's tables keep of a durable turn: the question, each step's outcome, the end.

Plain JSON, one document each, `{"format": 1, ...}` for what is read long after. None of them holds
code, `data`, settings or a key: only what was said, asked, answered and written.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

from retinue import errors
from retinue.chains import Spent, TurnResponse, asjson
from retinue.chains.events import Status
from retinue.chains.snapshot import Kept, Snapshot, kept, restored
from retinue.errors import ConfigError, ModelError
from retinue.messages import (
    Content,
    Delta,
    FinishDelta,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
)
from retinue.tools import Answer, Approve, PendingCall, Proceed, Reject, Reply, Retry, ToolResponse
from retinue.tools.asking import Waiting
from retinue.tools.results import as_content

FORMAT: Final = 1


class Answered(Struct, frozen=True, omit_defaults=True):
    """An answer to a pending call; `content` is what a `Reply` gives."""

    kind: Literal["Approve", "Reject", "Reply", "Retry", "Proceed"]
    args: Mapping[str, Any] | None = None
    reason: str = ""
    content: tuple[Content, ...] = ()

    @classmethod
    def of(cls, answer: Answer) -> "Answered":
        """The document of an answer."""
        match answer:
            case Approve(args):
                return cls("Approve", args)
            case Reject(reason):
                return cls("Reject", reason=reason)
            case Reply(value):
                return cls("Reply", content=as_content(value))
            case Retry():
                return cls("Retry")
            case Proceed():
                return cls("Proceed")

    @property
    def answer(self) -> Answer:
        """The answer that it was made of."""
        match self.kind:
            case "Approve":
                return Approve(self.args)
            case "Reject":
                return Reject(self.reason)
            case "Reply":
                return Reply(list(self.content))
            case "Retry":
                return Retry()
            case "Proceed":
                return Proceed()


class Asked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a durable turn begins with: a question, or a pause and the answers to it."""

    format: int = FORMAT
    messages: tuple[Message, ...] = ()
    conversation: str | None = None
    owner: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    paused: str | None = None
    answers: Mapping[str, Answered] = field(default_factory=dict[str, Answered])


class Ended(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a durable turn ended. `failed` names the exception, if it raised one."""

    format: int = FORMAT
    turn: str
    status: Status
    message: Message | None = None
    messages: tuple[Message, ...] = ()
    usage: Usage = Usage()
    spent: tuple[Spent, ...] = ()
    rounds: int = 0
    reason: str | None = None
    blocked_by: str | None = None
    conversation: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    paused: str | None = None
    failed: str | None = None
    formed: bool = False

    @classmethod
    def of(cls, response: TurnResponse) -> "Ended":
        """The document of a response. What JSON cannot hold of the state and the context is left
        out."""
        snapshot = response.snapshot
        return cls(
            turn=response.id,
            status=response.status,
            message=response.message,
            messages=response.messages,
            usage=response.usage,
            spent=response.spent,
            rounds=response.rounds,
            reason=response.reason,
            blocked_by=response.blocked_by,
            conversation=response.conversation,
            state=asjson.fitting(response.state),
            context=asjson.fitting(response.context),
            paused=None if snapshot is None else snapshot.dump().decode(),
            formed=response.form is not None,
        )

    def response(self, form: Any) -> TurnResponse:
        """The response that it was made of; `form` is the one that the agent asks for."""
        return TurnResponse(
            id=self.turn,
            status=self.status,
            message=self.message,
            messages=self.messages,
            usage=self.usage,
            spent=self.spent,
            rounds=self.rounds,
            reason=self.reason,
            blocked_by=self.blocked_by,
            conversation=self.conversation,
            state=self.state,
            context=self.context,
            form=form if self.formed else None,
            snapshot=None if self.paused is None else Snapshot.load(self.paused),
        )


class Texts(Struct, frozen=True, tag="texts"):
    """Pieces of text that came one after another."""

    pieces: list[str]


class Thoughts(Struct, frozen=True, tag="thoughts"):
    """Pieces of reasoning that came one after another."""

    pieces: list[str]


class Fragments(Struct, frozen=True, tag="fragments"):
    """Pieces of the arguments of one call that came one after another."""

    index: int
    pieces: list[str]


Recorded = (
    Texts | Thoughts | Fragments | TextDelta | ThinkingDelta | ToolCallDelta | UsageDelta
    | FinishDelta
)  # fmt: skip
"""Deltas as they are kept: with their boundaries, since a transform may look at them."""


class Fault(Struct, frozen=True, omit_defaults=True):
    """An exception of a model, by its name and its words."""

    kind: str
    text: str
    status: int | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: Exception) -> "Fault":
        """The document of an exception."""
        notes = tuple(getattr(error, "__notes__", ()))
        return cls(type(error).__name__, str(error), getattr(error, "status", None), notes)

    @property
    def error(self) -> Exception:
        """The exception again. It asks for no wait: that was waited for the first time."""
        kind = getattr(errors, self.kind, None)
        error: Exception = errors.TurnFailed(f"{self.kind}: {self.text}")
        if isinstance(kind, type) and issubclass(kind, ModelError):
            error = kind(self.text, status=self.status, retry_after=0.0)
        for note in self.notes:
            error.add_note(note)
        return error


class Said(Struct, frozen=True, omit_defaults=True):
    """One model call: what it sent, and how it ended if not well.

    Attributes:
        refused: a transform gave the call up: its name, why, and what the caller is told.
    """

    deltas: list[Recorded]
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fault: Fault | None = None
    refused: tuple[str, str, str] | None = None


class Ran(Struct, frozen=True, omit_defaults=True):
    """One tool call: what came of it, what it waits for, and the model calls made in it."""

    kept: Kept
    pending: tuple[PendingCall, ...] | None = None
    nested: str | None = None
    spent: tuple[Spent, ...] = ()

    @classmethod
    def of(cls, response: ToolResponse, spent: Sequence[Spent]) -> "Ran":
        """The document of a response."""
        waiting: Waiting | None = response.waiting
        nested = None if waiting is None else waiting.nested
        return cls(
            kept(response),
            None if waiting is None else waiting.pending,
            None if nested is None else nested.dump().decode(),
            tuple(spent),
        )

    @property
    def response(self) -> ToolResponse:
        """The response that it was made of, without its exception."""
        response = restored(self.kept)
        if self.pending is None:
            return response
        nested = None if self.nested is None else Snapshot.load(self.nested)
        return response.with_(waiting=Waiting(self.pending, nested))


def packed(deltas: Sequence[Delta]) -> list[Recorded]:
    """Deltas in little room: pieces that follow each other under one head."""
    found: list[Recorded] = []
    for delta in deltas:
        last = found[-1] if found else None
        if isinstance(delta, TextDelta):
            if isinstance(last, Texts):
                last.pieces.append(delta.text)
            else:
                found.append(Texts([delta.text]))
        elif isinstance(delta, ThinkingDelta) and delta.signature is None and delta.opaque is None:
            if isinstance(last, Thoughts):
                last.pieces.append(delta.text)
            else:
                found.append(Thoughts([delta.text]))
        elif isinstance(delta, ToolCallDelta) and not delta.id and not delta.name:
            if isinstance(last, Fragments) and last.index == delta.index:
                last.pieces.append(delta.arguments)
            else:
                found.append(Fragments(delta.index, [delta.arguments]))
        else:
            found.append(delta)
    return found


def unpacked(recorded: Sequence[Recorded]) -> list[Delta]:
    """The deltas that `packed` was given."""
    found: list[Delta] = []
    for one in recorded:
        match one:
            case Texts(pieces):
                found += [TextDelta(piece) for piece in pieces]
            case Thoughts(pieces):
                found += [ThinkingDelta(piece) for piece in pieces]
            case Fragments(index, pieces):
                found += [ToolCallDelta(index, arguments=piece) for piece in pieces]
            case _:
                found.append(one)
    return found


def encode(document: Struct) -> str:
    """A document as JSON text. TypeError, ValueError: it holds what JSON cannot."""
    return asjson.encode(document).decode()


def check_plain(what: str, values: Mapping[str, Any]) -> None:
    """Refuses values that could not be kept.

    Raises:
        ConfigError: names the value that JSON cannot hold.
    """
    for name, value in values.items():
        if not asjson.fits(value):
            raise ConfigError(
                f"A durable turn keeps its {what}, and JSON cannot hold {name!r}, which is"
                f" {type(value).__name__}; give texts, numbers, lists or dicts."
            )


asked_in: Final = msgspec.json.Decoder(Asked).decode
ended_in: Final = msgspec.json.Decoder(Ended).decode
said_in: Final = msgspec.json.Decoder(Said).decode
ran_in: Final = msgspec.json.Decoder(Ran).decode
