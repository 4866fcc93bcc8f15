"""The states of a round, and the moves between them. The loop makes no other move.

    READY ─▶ ANSWERED ─▶ GATED ─▶ EXECUTED ─▶ READY       the results go back to the model
                 │          │          ├────▶ COMPLETED   every call's result is the answer
                 │          │          └────▶ PAUSED      a person must mend something first
                 │          ├───────────────▶ PAUSED      a person must decide first
                 │          └───────────────▶ LIMIT       no round is left for the results
                 ├──────────────────────────▶ COMPLETED   no calls, or they are not eligible
                 └──────────────────────────▶ BLOCKED     a layer refused in place of the model

A turn that was paused goes on from READY ─▶ GATED, with the calls that it waited for.

A budget that is used up ends the turn before its next round begins. The statuses cancelled and
failed, and a limit of time or tokens, are reached from everywhere, by an exception.
"""

from enum import Enum
from typing import Final

from retinue.errors import InternalError


class Phase(Enum):
    """Where a turn stands."""

    READY = "ready"
    ANSWERED = "answered"
    GATED = "gated"
    EXECUTED = "executed"
    COMPLETED = "completed"
    PAUSED = "paused"
    BLOCKED = "blocked"
    LIMIT = "limit"


MOVES: Final[dict[Phase, frozenset[Phase]]] = {
    Phase.READY: frozenset({Phase.ANSWERED, Phase.GATED}),
    Phase.ANSWERED: frozenset({Phase.GATED, Phase.COMPLETED, Phase.BLOCKED}),
    Phase.GATED: frozenset({Phase.EXECUTED, Phase.PAUSED, Phase.LIMIT}),
    Phase.EXECUTED: frozenset({Phase.READY, Phase.COMPLETED, Phase.PAUSED}),
    Phase.COMPLETED: frozenset(),
    Phase.PAUSED: frozenset(),
    Phase.BLOCKED: frozenset(),
    Phase.LIMIT: frozenset(),
}


class Course:
    """The way of one round through the table."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = Phase.READY

    def to(self, phase: Phase) -> None:
        """Moves on.

        Raises:
            InternalError: the table has no such move.
        """
        if phase not in MOVES[self.at]:
            raise InternalError(f"The loop moved from {self.at.name} to {phase.name}.")
        self.at = phase
