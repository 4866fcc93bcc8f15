"""One turn and its view."""

import pytest

from retinue import Agent, events
from retinue.chains.events import Event
from retinue.cli.foreground import Foreground
from retinue.cli.turns import run_turn
from retinue.models.scripted import Scripted


class Torn:
    """A view that cannot show the answer."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def show(self, event: Event) -> None:
        """Fails at the first word."""
        if isinstance(event, events.TextChunk):
            raise OSError("the terminal is gone")

    def note(self, text: str) -> None:
        """Notes that it noted."""
        self.seen.append("note")

    def close(self) -> None:
        """Notes that it was closed."""
        self.seen.append("close")


@pytest.mark.rule("R-STREAM-6")
async def test_a_view_that_fails_is_closed_and_its_turn_is_cancelled() -> None:
    view = Torn()
    model = Scripted("one", "two")
    with pytest.raises(OSError, match="the terminal is gone"):
        await run_turn(Agent(model), "x", view, Foreground(), conversation=None, owner=None)
    assert view.seen == ["close", "note"]
