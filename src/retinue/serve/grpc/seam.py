"""Joins the events of one turn that several workers have run, so that its reader sees one turn.

Plain data in, plain data out. A turn that goes on elsewhere begins to number anew: the seam moves
its events on behind those that the reader has, and adds up what was used.
"""

from typing import Any, Final

from msgspec import structs

from retinue.chains.events import (
    AttemptDiscarded,
    AttemptStarted,
    Event,
    Status,
    TextChunk,
    ThinkingChunk,
    ToolArguments,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from retinue.messages import Usage

LOST: Final = "WorkerLost"
"""The `error` of a turn that was lost with its worker."""


class Seam:
    """The events of one turn, whoever ran it.

    Attributes:
        seq: the number of the last event that the reader has.
    """

    def __init__(self) -> None:
        self.seq = 0
        self._round = self._attempt = self._before = 0
        self._moved = False
        self._used = self._earlier = Usage()
        # The attempts whose text the reader holds, and no tool call has made final, by path.
        self._open: dict[tuple[str, ...], tuple[int, int]] = {}

    def take(self, event: Event) -> Event | None:
        """The event as the reader gets it, or None if he has it already."""
        if self._moved:
            if isinstance(event, TurnStarted):
                return None
            event = self._behind(event)
        self._note(event)
        return event

    def lose(self, reason: str) -> list[Event]:
        """The worker is gone: the events that take back what will be said again."""
        discarded = [
            AttemptDiscarded(self.seq + at, round, attempt, path, reason)
            for at, (path, (round, attempt)) in enumerate(reversed(self._open.items()), 1)
        ]
        self.seq += len(discarded)
        self._open.clear()
        self._moved, self._before, self._earlier = True, self._attempt, self._used
        return [*discarded]

    def end(self, turn: str, status: Status, reason: str, error: str | None = None) -> TurnEnded:
        """The last event of a turn that no worker ends."""
        self.seq += 1
        return TurnEnded(
            self.seq, self._round, self._attempt, (), turn, status,
            usage=self._used, reason=reason, error=error,
        )  # fmt: skip

    def _behind(self, event: Event) -> Event:
        changes: dict[str, Any] = {"seq": self.seq + 1, "attempt": event.attempt + self._before}
        if isinstance(event, UsageReported):
            changes["total"] = self._earlier + event.total
        elif isinstance(event, TurnEnded):
            changes["usage"] = self._earlier + event.usage
        return structs.replace(event, **changes)

    def _note(self, event: Event) -> None:
        self.seq = event.seq
        self._round = max(self._round, event.round)
        self._attempt = max(self._attempt, event.attempt)
        match event:
            case TextChunk() | ThinkingChunk() | ToolArguments() | AttemptStarted():
                self._open[event.path] = (event.round, event.attempt)
            case AttemptDiscarded() | ToolStarted():
                self._open.pop(event.path, None)
            case UsageReported():
                self._used = event.total
            case _:
                pass
