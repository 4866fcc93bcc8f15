"""One turn on the command line: its events go to a view, Ctrl-C goes to the turn."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Protocol

from retinue.agent import Agent, Turn
from retinue.chains import TurnResponse
from retinue.chains.events import Event, TurnEnded
from retinue.cli.exits import INTERRUPTED
from retinue.cli.wording import usage_words
from retinue.errors import MissingExtraError
from retinue.models import cost

_SHOW_CURSOR: Final = b"\x1b[?25h\r\n"  # it is hidden while a turn is drawn


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
    agent: Agent, question: str, view: View, *, conversation: str | None, owner: str | None
) -> TurnResponse:
    """Runs one turn and shows it; see `show_turn`."""
    turn = agent.stream(question, conversation=conversation, owner=owner)
    return await show_turn(turn, view)


async def show_turn(turn: Turn, view: View) -> TurnResponse:
    """Runs a turn that was begun, shows it, and says what it has used.

    The first Ctrl-C cancels the turn, which then ends in order; a second one ends the process.

    Raises:
        Exception: what made the turn fail.
    """
    began = time.monotonic()
    try:
        with _interrupts(turn.cancel):
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


@contextmanager
def _interrupts(cancel: Callable[[], None]) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    loop = asyncio.get_running_loop()

    def interrupted(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, _leave)
        loop.call_soon_threadsafe(cancel)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    # An exception from here would strike the event loop at any point of its work, and the tasks
    # that would not stop before would be waited for again. The store is safe: it keeps each round
    # in one transaction.
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
    os._exit(INTERRUPTED)
