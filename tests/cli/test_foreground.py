"""Ctrl-C in a command, pressed at moments that no pseudo-terminal can hit on purpose."""

import asyncio
import signal
import weakref
from collections.abc import Iterator

import pytest

from retinue import Agent, tool
from retinue.chains import TurnResponse
from retinue.chains.events import Event, TurnEnded
from retinue.cli.foreground import Foreground
from retinue.cli.turns import View, run_turn
from retinue.models.scripted import Scripted, Step, call


@pytest.fixture
def front() -> Iterator[Foreground]:
    with Foreground() as front:
        yield front


def press() -> None:
    signal.raise_signal(signal.SIGINT)


class Silent:
    """A view that shows nothing."""

    def show(self, event: Event) -> None:
        """Shows nothing."""

    def note(self, text: str) -> None:
        """Notes nothing."""

    def close(self) -> None:
        """There is nothing to close."""


class Late(Silent):
    """Ctrl-C is pressed when the turn is over."""

    def show(self, event: Event) -> None:
        """Presses at the last event."""
        if isinstance(event, TurnEnded):
            press()


@tool
async def hang() -> None:
    """Waits for what does not come; Ctrl-C is pressed meanwhile."""
    press()
    await asyncio.Event().wait()


async def turn_in(front: Foreground, *steps: Step, view: View | None = None) -> TurnResponse:
    agent = Agent(Scripted(*steps), tools=[hang])
    return await run_turn(agent, "x", view or Silent(), front, conversation=None, owner=None)


def typed() -> str:
    return "typed"


def test_a_press_inside_a_finaliser_is_not_lost_but_ends_the_next_waiting(
    front: Foreground,
) -> None:
    class Dying:
        pass

    dying = Dying()
    weakref.finalize(dying, press)
    del dying
    with pytest.raises(KeyboardInterrupt):
        front.wait(typed)
    assert front.wait(typed) == "typed"


def test_a_press_ends_the_waiting(front: Foreground) -> None:
    with pytest.raises(KeyboardInterrupt):
        front.wait(press)
    assert front.wait(typed) == "typed"


def test_a_press_cancels_what_runs(front: Foreground) -> None:
    with pytest.raises(KeyboardInterrupt):
        front.run(hang.function())
    assert front.wait(typed) == "typed"


@pytest.mark.rule("R-LOOP-8")
def test_a_press_cancels_the_turn_and_nothing_else(front: Foreground) -> None:
    assert front.run(turn_in(front, call("hang"))).status == "cancelled"
    assert front.wait(typed) == "typed"
    assert front.run(turn_in(front, "fine")).status == "completed"


def test_a_press_just_before_a_turn_cancels_it(front: Foreground) -> None:
    press()
    assert front.run(turn_in(front, "fine")).status == "cancelled"
    assert front.wait(typed) == "typed"


def test_a_press_that_is_too_late_for_the_turn_ends_the_next_waiting(front: Foreground) -> None:
    assert front.run(turn_in(front, "fine", view=Late())).status == "completed"
    with pytest.raises(KeyboardInterrupt):
        front.wait(typed)


def test_the_handler_before_it_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Foreground():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_where_ctrl_c_is_ignored_as_in_the_background_of_a_script_it_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Foreground() as front:
            press()
            assert front.wait(typed) == "typed"
            assert front.run(turn_in(front, "fine")).status == "completed"
    finally:
        signal.signal(signal.SIGINT, before)
