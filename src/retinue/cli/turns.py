"""One turn on the command line: its events go to a view, Ctrl-C goes to the turn."""

import time
from typing import Protocol

from retinue.agent import Agent, Turn
from retinue.chains import TurnResponse
from retinue.chains.events import Event, TurnEnded
from retinue.cli.foreground import Foreground
from retinue.cli.wording import usage_words
from retinue.errors import MissingExtraError
from retinue.models import cost


class View(Protocol):
    """Shows turns to somebody."""

    def show(self, event: Event) -> None:
        """Shows one event. The last one of a turn is `TurnEnded`."""
        ...

    def note(self, text: str) -> None:
        """Says something about a turn, such as what it cost."""
        ...

    def close(self) -> None:
        """The turn is over, in whatever way: nothing half drawn is left."""
        ...


async def run_turn(
    agent: Agent,
    question: str,
    view: View,
    front: Foreground,
    *,
    conversation: str | None,
    owner: str | None,
) -> TurnResponse:
    """Runs one turn and shows it; see `show_turn`."""
    turn = agent.stream(question, conversation=conversation, owner=owner)
    return await show_turn(turn, view, front)


async def show_turn(turn: Turn, view: View, front: Foreground) -> TurnResponse:
    """Runs a turn that was begun, shows it, and says what it has used.

    Ctrl-C cancels the turn, which then ends in order.

    Raises:
        Exception: what made the turn fail.
    """
    began = time.monotonic()
    try:
        with front.stopping(turn):
            async for event in turn:
                view.show(event)
            return await turn.result()
    finally:
        view.close()
        if turn.outcome is not None:
            spent = time.monotonic() - began
            view.note(usage_words(turn.outcome.usage, _price_of(turn.outcome), spent))


def ending_words(event: TurnEnded) -> str | None:
    """How the turn ended, where a user must be told; a failure is told as an error."""
    if event.status in ("completed", "failed"):
        return None
    if event.status == "blocked":
        return f"Blocked by {event.blocked_by or 'a layer'}: {event.reason or 'no reason given'}"
    if event.status == "cancelled":
        return "Cancelled. What had come is kept."
    what = {"limit": "Stopped", "paused": "Paused"}[event.status]
    return f"{what}: {event.reason or 'no reason given'}"


def _price_of(outcome: TurnResponse) -> float | None:
    """US dollars, or None where tokens or prices are not known, or there is no price table."""
    if not outcome.spent:
        return None
    try:
        return cost(outcome.spent)
    except MissingExtraError:
        return None
