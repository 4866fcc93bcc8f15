"""A guard in the stream that trips on the last word: what had reached the reader by then."""

from collections.abc import Iterable

import pytest

from retinue import Advisor, Agent, ChatRequest
from retinue.advisors import Memory
from retinue.chains import Transform
from retinue.chains.events import TextChunk
from retinue.messages import Delta, TextDelta
from retinue.models import Say, Scripted
from retinue.stores import InMemory
from tests.agent.reading import read

REFUSED = "I must not say that."
ANSWER = ["The code ", "of the safe ", "is 1234"]


class Guard:
    """Holds the last `window` characters back (None: all) and gives up when it sees the word."""

    def __init__(self, word: str, window: int | None) -> None:
        self.word = word
        self.window = window
        self.held = ""
        self.tripped = False

    def feed(self, delta: Delta) -> Iterable[Delta]:
        if not isinstance(delta, TextDelta):
            return (delta,)
        self.held += delta.text
        self.tripped = self.tripped or self.word in self.held
        if self.tripped or self.window is None:
            return ()
        free, self.held = self.held[: -self.window], self.held[-self.window :]
        return (TextDelta(free),) if free else ()

    def flush(self) -> Iterable[Delta]:
        return (TextDelta(REFUSED if self.tripped else self.held),)


class Guarded(Advisor):
    traits = frozenset({"holds"})

    def __init__(self, window: int | None) -> None:
        self.window = window

    def stream(self, request: ChatRequest) -> Transform:
        return Guard("1234", self.window)


@pytest.mark.rule("R-STREAM-2", "R-STREAM-3")
@pytest.mark.behaviour("B-ST-3")
@pytest.mark.parametrize("window", [None, 8])
async def test_what_a_guard_holds_when_it_trips_never_reaches_anybody(window: int | None) -> None:
    store = InMemory()
    agent = Agent(
        Scripted(Say(text=ANSWER), repeat=True), advisors=[Memory(store), Guarded(window)]
    )
    events = await read(turn := agent.stream("What is the code?", conversation="c"))
    shown = "".join(event.text for event in events if isinstance(event, TextChunk))
    released = "" if window is None else "The code of t"
    assert shown == released + REFUSED
    assert "1234" not in shown
    assert turn.outcome is not None
    assert turn.outcome.text == shown
    stored = await store.tail("c")
    assert stored[-1].message.text == shown
    assert (await agent.run("What is the code?")).text == shown


@pytest.mark.behaviour("B-ST-3")
@pytest.mark.parametrize("window", [None, 8])
async def test_what_a_guard_holds_when_the_model_fails_is_not_shown(window: int | None) -> None:
    model = Scripted(Say(text=ANSWER, error=RuntimeError("gone")))
    turn = Agent(model, advisors=[Guarded(window)]).stream("What is the code?")
    events = await read(turn)
    shown = "".join(event.text for event in events if isinstance(event, TextChunk))
    assert shown == ("" if window is None else "The code of t")
    assert turn.outcome is not None
    assert turn.outcome.text == shown
