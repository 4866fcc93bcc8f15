"""A transform that gives the model call up: the turn is blocked, and nobody keeps its text."""

from collections.abc import Awaitable, Iterable

import pytest

from retinue import Advisor, Agent, ChatRequest, Layer
from retinue.advisors import Memory
from retinue.chains import Refusal, Transform
from retinue.chains.events import AttemptDiscarded, TurnEnded, final_text
from retinue.messages import Delta, TextDelta
from retinue.models import Say, Scripted
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, by_parent, kept
from tests.agent.reading import read


class Stop:
    """Refuses as soon as it sees the word, or only when the model has ended."""

    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end
        self.seen = ""

    def feed(self, delta: Delta) -> Iterable[Delta]:
        if isinstance(delta, TextDelta):
            self.seen += delta.text
            if not self.at_end:
                self.check()
        return (delta,)

    async def flush(self) -> Iterable[Delta]:
        self.check()
        return ()

    def check(self) -> None:
        if "secret" in self.seen:
            raise Refusal("Stopper", "It said secret.", answer="No.")


class Stopper(Advisor):
    def __init__(self, at_end: bool = False) -> None:
        self.at_end = at_end

    def stream(self, request: ChatRequest) -> Transform:
        return Stop(self.at_end)


@pytest.mark.rule("R-ONION-7", "R-STREAM-3")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at_end", [False, True])
async def test_a_transform_that_refuses_blocks_the_turn_in_its_advisor_s_name(
    way: Way, at_end: bool
) -> None:
    seen: list[str | None] = []

    async def look(request, call_next):
        response = await call_next(request)
        seen.append(response.blocked_by)
        return response

    store = InMemory()
    model = Scripted(Say(text=["the ", "secret", " is out"]), "hello")
    layers = [Memory(store), Layer("look", chat=look), Stopper(at_end)]
    agent = Agent(model, advisors=layers)
    response = await way(agent, "Tell me.", conversation="c")
    assert (response.status, response.blocked_by) == ("blocked", "Stopper")
    assert (response.text, response.reason) == ("No.", "It said secret.")
    assert seen == ["Stopper"]
    assert (await way(agent, "Hi.", conversation="c")).text == "hello"
    assert [line for line in await kept(store) if "secret" in line] == []


async def test_a_reader_takes_back_what_it_was_shown_before_the_refusal() -> None:
    model = Scripted(Say(text=["the ", "secret", " is out"]))
    events = await read(Agent(model, advisors=[Stopper()]).stream("Tell me."))
    assert final_text(events) == "No."
    assert [type(one) for one in events if isinstance(one, AttemptDiscarded)] == [AttemptDiscarded]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].status == "blocked"


async def test_a_layer_that_hides_errors_does_not_hide_a_refusal() -> None:
    async def hide(request, call_next):
        try:
            return await call_next(request)
        except Exception:
            return request.respond("all is well")

    agent = Agent(Scripted("secret"), advisors=[Layer("hide", chat=hide), Stopper()])
    assert (await agent.run("Tell me.")).blocked_by == "Stopper"


async def test_a_refusal_in_a_sub_agent_reaches_its_caller_as_a_failed_call() -> None:
    response = await by_parent(Agent(Scripted("secret"), advisors=[Stopper()]), "Tell me.")
    results = [one for message in response.messages for one in message.tool_results]
    assert [one.ok for one in results] == [False]


class Slowly:
    """Decides over each delta with an `async` check."""

    async def feed(self, delta: Delta) -> Iterable[Delta]:
        return (TextDelta(delta.text.upper()),) if isinstance(delta, TextDelta) else (delta,)

    def flush(self) -> Iterable[Delta] | Awaitable[Iterable[Delta]]:
        return (TextDelta("!"),)


@pytest.mark.parametrize("way", WAYS)
async def test_a_transform_may_await_in_feed_and_those_behind_it_see_what_it_gave(way: Way) -> None:
    class Twice:
        def feed(self, delta: Delta) -> Iterable[Delta]:
            return (delta, delta)

        def flush(self) -> Iterable[Delta]:
            return ()

    layers = [
        Layer("outer", stream=lambda _: Slowly()),
        Layer("inner", stream=lambda _: Twice()),
    ]
    agent = Agent(Scripted(Say(text=["a", "b"])), advisors=layers)
    assert (await way(agent, "Go.")).text == "AABB!"
