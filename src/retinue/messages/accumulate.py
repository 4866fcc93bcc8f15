"""Deltas in, one message out. No I/O, no clock: the same deltas always give the same message."""

from retinue.errors import ConfigError
from retinue.messages.delta import (
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
)
from retinue.messages.estimate import size
from retinue.messages.message import Message, new_id
from retinue.messages.parts import Part, Text, Thinking, ToolCall
from retinue.messages.usage import Usage


class _Said:
    """Text that has come so far."""

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []


class _Thought:
    """Reasoning that has come so far, and the provider's proof of it."""

    __slots__ = ("opaque", "pieces", "signature")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.opaque: str | None = None


class _Asked:
    """A call that has come so far."""

    __slots__ = ("id", "name", "pieces")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []


class Accumulator:
    """Folds the deltas of one model call.

    Text and reasoning that follow each other are one part each; a call stands where its first
    fragment came. Empty text makes no part.
    """

    __slots__ = ("_calls", "_said", "_segments", "_thought", "finish", "usage")

    def __init__(self) -> None:
        self._segments: list[_Said | _Thought | _Asked] = []
        self._said: _Said | None = None  # the segment that more text goes to
        self._thought: _Thought | None = None  # the segment that more reasoning goes to
        self._calls: dict[int, _Asked] = {}
        self.usage: Usage | None = None
        self.finish: str | None = None

    def add(self, delta: Delta) -> None:
        """Takes one more delta."""
        if type(delta) is TextDelta:  # the hot path: one test, one append
            said = self._said
            if said is None:
                if not delta.text:
                    return
                said = self._open_text()
            said.pieces.append(delta.text)
        elif type(delta) is ThinkingDelta:
            self._think(delta)
        elif type(delta) is ToolCallDelta:
            self._ask(delta)
        elif type(delta) is UsageDelta:
            self._report(delta)
        elif type(delta) is FinishDelta:
            self.finish = delta.reason or self.finish
        else:
            raise ConfigError(
                f"{delta!r} is no delta; models and transforms give TextDelta and the like."
            )

    def restart(self) -> Usage | None:
        """Forgets the reports of a try that failed before it said a word; gives its tokens."""
        usage, self.usage, self.finish = self.usage, None, None
        return usage

    @property
    def text(self) -> str:
        """All text so far, joined with nothing between."""
        return "".join("".join(s.pieces) for s in self._segments if type(s) is _Said)

    @property
    def size(self) -> int:
        """Bytes of all that was said, thought and asked so far."""
        return sum(size(piece) for segment in self._segments for piece in segment.pieces)

    def message(
        self, *, model: str | None = None, provider: str | None = None, partial: bool = False
    ) -> Message:
        """The message so far. A partial one leaves out calls, whose arguments may be cut off."""
        parts = tuple(
            part
            for segment in self._segments
            if not (partial and type(segment) is _Asked)
            and (part := _part(segment, provider)) is not None
        )
        if self._calls:
            parts = _told_apart(parts)
        return Message(
            "assistant",
            parts,
            partial=partial,
            finish=self.finish,
            model=model,
            usage=self.usage,
        )

    def _open_text(self) -> _Said:
        self._said = _Said()
        self._thought = None
        self._segments.append(self._said)
        return self._said

    def _think(self, delta: ThinkingDelta) -> None:
        closes = delta.signature is not None or delta.opaque is not None
        thought = self._thought
        if thought is None:
            if not (delta.text or closes):
                return
            thought = self._thought = _Thought()
            self._said = None
            self._segments.append(thought)
        thought.pieces.append(delta.text)
        if closes:
            thought.signature, thought.opaque = delta.signature, delta.opaque
            self._thought = None

    def _ask(self, delta: ToolCallDelta) -> None:
        call = self._calls.get(delta.index)
        if call is None:
            call = self._calls[delta.index] = _Asked()
            self._said = self._thought = None
            self._segments.append(call)
        call.id = delta.id or call.id
        call.name = delta.name or call.name
        call.pieces.append(delta.arguments)

    def _report(self, delta: UsageDelta) -> None:
        if self.usage is None:
            self.usage = delta.usage
        elif delta.additive:
            self.usage = self.usage + delta.usage
        else:
            self.usage = self.usage.overlaid(delta.usage)


def _part(segment: _Said | _Thought | _Asked, provider: str | None) -> Part | None:
    text = "".join(segment.pieces)
    if isinstance(segment, _Asked):
        return ToolCall(segment.id, segment.name, text or "{}")
    if isinstance(segment, _Said):
        return Text(text) if text else None
    if text or segment.signature is not None or segment.opaque is not None:
        return Thinking(text, segment.signature, segment.opaque, provider)
    return None


def _told_apart(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Gives calls an id where the provider gave none, or the same one twice."""
    seen: set[str] = set()
    apart: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            if not part.id or part.id in seen:
                part = ToolCall(f"call_{new_id()}", part.name, part.arguments)
            seen.add(part.id)
        apart.append(part)
    return tuple(apart)
