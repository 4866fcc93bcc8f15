"""`Validate(hold=True)`: a reader is shown an answer when it fits, and nothing of any other."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, Layer, Limits, Usage, events, tool
from retinue.advisors import Memory, Validate
from retinue.chains.events import Event, final_text
from retinue.errors import ModelBroken, OutputError
from retinue.messages import TextDelta, ToolCallDelta
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, kept, soon
from tests.agent.reading import read

Form = dict[str, int]
RIGHT, WRONG = '{"size": 7}', '{"size": "big"}'


@tool
def look() -> str:
    """Looks."""
    return "seen"


def shown(seen: Sequence[Event]) -> list[str]:
    """All text that a reader was ever shown, chunk by chunk."""
    return [event.text for event in seen if isinstance(event, events.TextChunk)]


async def streamed(agent: Agent, **options: Any) -> tuple[list[Event], Any]:
    """The events of a turn, and how it ended, also where it raised."""
    turn = agent.stream("?", **options)
    seen = await read(turn)
    return seen, turn.outcome


def holding(model: Scripted, *layers: object, **options: Any) -> Agent:
    return Agent(model, tools=[look], advisors=[*layers, Validate(Form, hold=True, **options)])


@pytest.mark.rule("R-STREAM-5")
async def test_nothing_of_an_attempt_that_does_not_fit_is_shown() -> None:
    script = [Say(text=["Oh, ", "7."]), Say(text=[WRONG[:5], WRONG[5:]]), Say(text=list(RIGHT))]
    seen, result = await streamed(holding(Scripted(*script)))
    assert shown(seen) == [RIGHT]
    assert (result.text, result.output) == (RIGHT, {"size": 7})
    open_, _ = await streamed(Agent(Scripted(*script), advisors=[Validate(Form)]))
    assert "Oh, " in shown(open_)


@given(st.lists(st.integers(1, 12), max_size=6), st.booleans())
def test_however_the_answer_is_cut_the_reader_sees_the_same(cuts: list[int], fits: bool) -> None:
    text = RIGHT if fits else WRONG
    places = sorted({min(sum(cuts[:n]), len(text)) for n in range(len(cuts) + 1)} | {len(text)})
    chunks = [text[a:b] for a, b in zip([0, *places], places, strict=False) if a < b]
    model = Scripted(Say(text=chunks), RIGHT)
    seen, result = asyncio.run(streamed(holding(model)))
    assert (shown(seen), result.text) == ([RIGHT], RIGHT)
    assert len(model.requests) == (1 if fits else 2)


@pytest.mark.behaviour("B-ST-5")
@pytest.mark.parametrize("said", ["I look.", "", " "])
@pytest.mark.parametrize("final_only", [False, True])
async def test_what_is_said_before_a_call_is_shown_when_the_call_comes(
    said: str, final_only: bool
) -> None:
    model = Scripted(Say(text=said, calls=[call("look")]), WRONG, RIGHT)
    seen, result = await streamed(holding(model), final_only=final_only)
    assert shown(seen) == ([said] if said and not final_only else []) + [RIGHT]
    if said and not final_only:
        kinds = [type(event) for event in seen]
        assert kinds.index(events.TextChunk) < kinds.index(events.ToolStarted)
    assert result.text == RIGHT
    assert [m.text for m in result.messages if m.tool_calls] == [said]


@pytest.mark.rule("R-STREAM-3")
@pytest.mark.parametrize("ask", WAYS)
async def test_what_is_shown_is_what_is_returned_and_stored(ask: Way) -> None:
    class Louder:
        def feed(self, delta: Any) -> Any:
            return (TextDelta(delta.text.replace("7", "8")),)

        def flush(self) -> Any:
            return (TextDelta(" "),)

    store = InMemory()
    loud = Layer("loud", stream=lambda request: Louder())
    agent = holding(Scripted(WRONG, RIGHT), Memory(store), loud)
    result = await ask(agent, "?", conversation="c")
    assert result.text == RIGHT.replace("7", "8") + " "
    assert (await kept(store))[-1] == f"assistant: {result.text}"


async def test_reasoning_is_shown_while_the_answer_waits() -> None:
    thought = asyncio.Event()

    async def check(value: Any) -> None:
        await thought.wait()

    turn = holding(Scripted(Say(thinking="hm", text=RIGHT)), check=check).stream("?")

    async def reading() -> list[type[Event]]:
        seen: list[type[Event]] = []
        async for event in turn:
            seen.append(type(event))
            if isinstance(event, events.ThinkingChunk):
                thought.set()
        return seen

    assert events.TextChunk in await soon(reading())


@pytest.mark.parametrize("ask", WAYS)
async def test_an_answer_that_never_fits_is_shown_once_and_marked(ask: Way) -> None:
    model = Scripted(WRONG, repeat=True)
    result = await ask(holding(model), "?")
    assert (result.text, len(model.requests)) == (WRONG, 3)
    assert result.reason is not None
    seen, _ = await streamed(holding(Scripted(WRONG, repeat=True)))
    assert shown(seen) == [WRONG]


async def test_an_answer_that_is_raised_is_never_shown() -> None:
    seen, outcome = await streamed(holding(Scripted(WRONG, repeat=True), exhausted="raise"))
    assert shown(seen) == []
    assert (outcome.status, outcome.text) == ("failed", "")
    assert isinstance(outcome.error, OutputError)


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.parametrize("ending", ["fails", "limit"])
async def test_half_an_answer_is_kept_in_the_log_and_not_shown(ending: str) -> None:
    store = InMemory()
    if ending == "fails":
        model = Scripted(Say(text='{"size": ', error=ModelBroken("it broke")))
        limits = None
    else:
        model = Scripted(Say(text=['{"size": ', "1" * 400]))
        limits = Limits(tokens=50)
    agent = Agent(model, advisors=[Memory(store), Validate(Form, hold=True)], limits=limits)
    seen, outcome = await streamed(agent, conversation="c")
    assert shown(seen) == []
    assert (outcome.status, outcome.text) == ("failed" if ending == "fails" else "limit", "")
    log = await kept(store)
    assert log[-1].startswith('assistant: {"size": ')
    assert log[-1].endswith("…")


async def test_a_second_attempt_that_fails_leaves_the_first_unseen() -> None:
    model = Scripted(WRONG, ModelBroken("it broke"))
    seen, outcome = await streamed(holding(model))
    assert (shown(seen), outcome.text, outcome.status) == ([], "", "failed")


async def test_a_cancel_while_the_check_thinks_shows_nothing() -> None:
    turn: Any = None

    async def check(value: Any) -> None:
        turn.cancel()
        await asyncio.Event().wait()

    turn = holding(Scripted(RIGHT), check=check).stream("?")
    seen = await read(turn)
    assert (shown(seen), turn.outcome.status, turn.outcome.text) == ([], "cancelled", "")


@pytest.mark.rule("R-STREAM-8")
@pytest.mark.parametrize("hook", ["turn", "chat"])
async def test_an_answer_that_a_layer_changes_is_shown_as_changed_only(hook: str) -> None:
    async def change(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=response.message.with_text('{"size": 8}'))

    hooks: dict[str, Any] = {hook: change}
    seen, result = await streamed(holding(Scripted(RIGHT), Layer("x", **hooks)))
    assert shown(seen) == ['{"size": 8}']
    assert result.output == {"size": 8}


@pytest.mark.rule("R-STREAM-8")
async def test_an_answer_that_a_chat_layer_spoils_is_not_shown() -> None:
    answers = iter([WRONG, RIGHT])

    async def change(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.with_(message=response.message.with_text(next(answers)))

    seen, _ = await streamed(holding(Scripted("a", "b"), Layer("x", chat=change)))
    assert shown(seen) == [RIGHT]


async def test_words_before_a_call_are_kept_when_the_call_is_cut_off() -> None:
    half = ToolCallDelta(0, "c1", "look", "{")
    model = Scripted(Say(text="I look.", deltas=[half], error=ModelBroken("it broke")))
    seen, outcome = await streamed(holding(model))
    assert (shown(seen), outcome.text) == (["I look."], "I look.")


@pytest.mark.parametrize("hook", ["round", "chat"])
async def test_the_words_of_a_layer_that_refuses_are_shown(hook: str) -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return request.refuse("no", answer="Not that.")

    hooks: dict[str, Any] = {hook: refuse}
    seen, result = await streamed(holding(Scripted(RIGHT), Layer("x", **hooks)))
    assert (shown(seen)[-1], final_text(seen), result.status) == (
        "Not that.",
        "Not that.",
        "blocked",
    )


async def test_a_long_answer_that_waits_does_not_stop_a_slow_reader() -> None:
    text = f"[{', '.join('1' for _ in range(2_000))}]"
    agent = Agent(Scripted(Say(text=list(text))), advisors=[Validate(list[int], hold=True)])
    seen, _ = await streamed(agent)
    assert shown(seen) == [text]


async def test_a_sub_agent_holds_its_answer_for_itself() -> None:
    child = Agent(
        Scripted(WRONG, RIGHT), output=Form, advisors=[Validate(hold=True)], name="helper"
    )
    parent = Agent(Scripted(call("helper", task="x"), "done"), tools=[child.as_tool()])
    seen, result = await streamed(parent)
    assert shown(seen) == [RIGHT, "done"]
    assert result.text == "done"


def test_explain_says_that_it_holds_answers_back() -> None:
    picture = str(holding(Scripted()).explain())
    assert "shows an answer only when the turn ends with it" in picture


async def test_usage_of_every_attempt_counts() -> None:
    say = [Say(text=text, usage=Usage(input=10, output=5)) for text in (WRONG, RIGHT)]
    _, result = await streamed(holding(Scripted(*say)))
    assert result.usage == Usage(input=20, output=10)
