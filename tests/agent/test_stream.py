"""What a reader is told, in which order, and how it can tell the answer from the rest."""

from collections.abc import Callable
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, Message, Usage, tool
from retinue.advisors import Memory
from retinue.chains.events import (
    AttemptDiscarded,
    AttemptStarted,
    RoundStarted,
    TextChunk,
    ThinkingChunk,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
)
from retinue.messages import Delta, FinishDelta, TextDelta, Thinking, UsageDelta
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import InMemory
from tests.agent.reading import kinds, read


@tool
async def look(at: str = "here") -> str:
    """Looks."""
    return f"seen {at}"


@tool(return_direct=True)
async def show() -> str:
    """Shows."""
    return "as it is"


class Redact:
    """Holds words back until they are whole, and hides e-mail addresses."""

    def __init__(self) -> None:
        self.word = ""

    def feed(self, delta: Delta) -> list[Delta]:
        if not isinstance(delta, TextDelta):
            return [delta]
        *whole, self.word = (self.word + delta.text).split(" ")
        return [TextDelta(hidden(word) + " ") for word in whole]

    async def flush(self) -> list[Delta]:
        return [TextDelta(hidden(self.word))]


def hidden(word: str) -> str:
    return "***" if "@" in word else word


@pytest.mark.rule("R-STREAM-1")
async def test_a_turn_with_a_tool_is_told_from_beginning_to_end() -> None:
    asked = call("look", at="home")
    model = Scripted(
        Say(text="let me see", calls=[asked], usage=Usage(input=5, output=2)),
        Say(thinking="hm", text=["ho", "me"], usage=Usage(input=9, output=1)),
    )
    turn = Agent(model, tools=[look]).stream("q", conversation="c")
    events = await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.usage == Usage(input=14, output=3)
    assert events == [
        TurnStarted(1, 0, 0, (), turn.id, "c"),
        RoundStarted(2, 1, 0, ()),
        AttemptStarted(3, 1, 1, ()),
        TextChunk(4, 1, 1, (), "let me see"),
        ToolArguments(5, 1, 1, (), 0, asked.id, "look", '{"at":"home"}'),
        UsageReported(6, 1, 1, (), Usage(input=5, output=2), Usage(input=5, output=2)),
        ToolStarted(7, 1, 1, (), asked.id, "look", {"at": "home"}),
        ToolFinished(8, 1, 1, (), asked.id, "look", True, "seen home", events[7].seconds),  # type: ignore[attr-defined]
        RoundStarted(9, 2, 1, ()),
        AttemptStarted(10, 2, 2, ()),
        ThinkingChunk(11, 2, 2, (), "hm"),
        TextChunk(12, 2, 2, (), "ho"),
        TextChunk(13, 2, 2, (), "me"),
        UsageReported(14, 2, 2, (), Usage(input=9, output=1), Usage(input=14, output=3)),
        TurnEnded(
            15, 2, 2, (), turn.id, "completed", "home", turn.outcome.message, turn.outcome.usage
        ),
    ]


@pytest.mark.rule("R-STREAM-1", "R-TOOL-12")
async def test_events_of_a_sub_agent_stand_under_its_call_and_share_the_numbering() -> None:
    inner = Agent(Scripted(call("look"), "inner answer"), tools=[look], name="scout")
    asked = call("scout", task="go")
    outer = Agent(Scripted(asked, "outer answer"), tools=[inner.as_tool()])
    turn = outer.stream("q")
    events = await read(turn)
    nested = [event for event in events if event.path]
    assert {event.path for event in nested} == {(asked.id,)}
    assert [e.text for e in nested if isinstance(e, TextChunk)] == ["inner answer"]
    assert kinds(nested)[0] == "RoundStarted"
    assert turn.outcome is not None
    assert turn.outcome.text == "outer answer"


@pytest.mark.rule("R-STREAM-5")
@pytest.mark.behaviour("B-ST-5")
@pytest.mark.parametrize("before", ["", " ", "Let me see. "])
async def test_text_before_a_call_is_commentary_of_its_round_and_the_answer_the_answer(
    before: str,
) -> None:
    ran: list[str] = []

    @tool
    async def act() -> str:
        """Acts."""
        ran.append("act")
        return "done"

    def agent() -> Agent:
        return Agent(Scripted(Say(text=before, calls=[call("act")]), "Done."), tools=[act])

    turn = agent().stream("q")
    events = await read(turn)
    said = {e.round: e.text for e in events if isinstance(e, TextChunk)}
    assert said == ({1: before, 2: "Done."} if before else {2: "Done."})
    assert not [event for event in events if isinstance(event, AttemptDiscarded)]
    assert turn.outcome is not None
    assert turn.outcome.text == "Done."
    assert ran == ["act"]
    final = await read(agent().stream("q", final_only=True))
    assert [e.text for e in final if isinstance(e, TextChunk)] == ["Done."]


@pytest.mark.rule("R-TOOL-7", "R-STREAM-5")
async def test_a_direct_result_is_the_last_attempt_and_takes_nothing_back() -> None:
    turn = Agent(Scripted(Say(text="Here:", calls=[call("show")])), tools=[show]).stream("q")
    events = await read(turn)
    assert [e.text for e in events if isinstance(e, TextChunk)] == ["Here:", "as it is"]
    assert not [event for event in events if isinstance(event, AttemptDiscarded)]


@pytest.mark.rule("R-STREAM-2", "R-STREAM-3")
@pytest.mark.behaviour("B-ST-1", "B-ST-4")
@pytest.mark.parametrize("cut", [1, 2, 3, 5, 7])
async def test_what_is_redacted_over_split_chunks_is_redacted_everywhere(cut: int) -> None:
    text = "Write to ann@example.org today"
    chunks = [text[at : at + cut] for at in range(0, len(text), cut)]
    layer = Layer("redact", stream=lambda request: Redact())
    store = InMemory()
    agent = Agent(Scripted(Say(text=chunks), repeat=True), advisors=[Memory(store), layer])
    turn = agent.stream("q", conversation="streamed")
    events = await read(turn)
    ran = await agent.run("q", conversation="run")
    shown = "".join(e.text for e in events if isinstance(e, TextChunk))
    assert turn.outcome is not None
    assert shown == turn.outcome.text == ran.text == "Write to *** today"
    for conversation in ("streamed", "run"):
        assert (await store.tail(conversation))[-1].message.text == shown


@pytest.mark.rule("R-STREAM-3")
async def test_a_delivery_only_transform_leaves_the_log_as_the_model_said_it() -> None:
    class Late(Redact):
        delivery_only = True

    store = InMemory()
    layer = Layer("redact", stream=lambda request: Late())
    model = Scripted("to ann@example.org", "next")
    agent = Agent(model, advisors=[Memory(store), layer])
    turn = agent.stream("q", conversation="c")
    await read(turn)
    assert turn.outcome is not None
    assert turn.outcome.text == "to ***"
    assert turn.outcome.messages[-1].text == "to ann@example.org"
    await agent.run("again", conversation="c")
    assert model.requests[1].messages[1].text == "to ann@example.org"


@pytest.mark.rule("R-STREAM-2")
async def test_transforms_apply_from_the_innermost_outwards_and_are_made_anew() -> None:
    made: list[str] = []

    def adding(mark: str) -> Layer:
        class Adds:
            def feed(self, delta: Delta) -> tuple[Delta]:
                return (TextDelta(delta.text + mark) if isinstance(delta, TextDelta) else delta,)

            def flush(self) -> tuple[()]:
                return ()

        def stream(request: Any) -> Adds:
            made.append(mark)
            return Adds()

        return Layer(mark, stream=stream)

    advisors = [adding("outer"), adding("inner"), Layer("none", stream=lambda request: None)]
    agent = Agent(Scripted(call("look"), "x"), tools=[look], advisors=advisors)
    assert (await agent.run("q")).text == "xinnerouter"
    assert sorted(made) == ["inner", "inner", "outer", "outer"]


@pytest.mark.rule("R-ONION-5")
@pytest.mark.behaviour("B-ST-7")
@pytest.mark.parametrize("finish", [[], [""], ["stop"], ["stop", "stop", "stop"], ["", "odd"]])
@pytest.mark.parametrize("streamed", [True, False])
async def test_what_follows_call_next_runs_once_whatever_finish_reason_comes(
    finish: list[str], streamed: bool
) -> None:
    after: list[str] = []

    async def chat(request: Any, call_next: Any) -> Any:
        answer = await call_next(request)
        after.append(answer.text)
        return answer

    deltas: list[Delta] = [TextDelta("a")]
    deltas += [each for reason in finish for each in (FinishDelta(reason), TextDelta("b"))]
    model = Scripted(Say(deltas=deltas, finish=""))
    agent = Agent(model, advisors=[Layer("after", chat=chat)])
    if streamed:
        await read(agent.stream("q"))
    else:
        await agent.run("q")
    assert after == ["a" + "b" * len(finish)]


# -- every way to end --------------------------------------------------------------------------


def refusing(hook: str) -> Layer:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("not here", answer="I may not.")

    return Layer("guard", **{hook: refuse})  # type: ignore[arg-type]


def responding(hook: str) -> Layer:
    async def respond(request: Any, call_next: Any) -> Any:
        return request.respond("from a layer")

    return Layer("cache", **{hook: respond})  # type: ignore[arg-type]


@pytest.mark.rule("R-STREAM-1", "R-LOOP-4", "R-STREAM-8")
@pytest.mark.behaviour("B-ST-13")
@pytest.mark.parametrize("final_only", [True, False])
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
@pytest.mark.parametrize(
    ("make", "status", "text"),
    [(refusing, "blocked", "I may not."), (responding, "completed", "from a layer")],
)
async def test_the_words_of_a_layer_that_answers_itself_are_delivered(
    make: Callable[[str], Layer], status: str, text: str, hook: str, final_only: bool
) -> None:
    model = Scripted("never")
    turn = Agent(model, advisors=[make(hook)]).stream("q", final_only=final_only)
    events = await read(turn)
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert (end.status, end.text) == (status, text)
    assert end.blocked_by == ("guard" if status == "blocked" else "cache")
    assert [e.text for e in events if isinstance(e, TextChunk)] == [text]
    assert not model.requests


@pytest.mark.rule("R-STREAM-8", "R-STREAM-5")
@pytest.mark.parametrize("hook", ["turn", "round", "chat"])
async def test_an_answer_that_a_layer_rewrites_is_taken_back_and_delivered_anew(hook: str) -> None:
    async def rewrite(request: Any, call_next: Any) -> Any:
        answer = await call_next(request)
        return answer.with_(message=answer.message.with_text("better"))

    layer = Layer("rewrites", **{hook: rewrite})  # type: ignore[arg-type]
    events = await read(Agent(Scripted("draft"), advisors=[layer]).stream("q"))
    assert kinds(events)[-5:] == [
        "TextChunk",
        "AttemptDiscarded",
        "AttemptStarted",
        "TextChunk",
        "TurnEnded",
    ]


@pytest.mark.rule("R-STREAM-8", "R-LOOP-5")
async def test_of_an_answer_that_is_asked_for_again_only_the_last_stands() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Shorter, please."))

    agent = Agent(Scripted("a long answer", "short"), advisors=[Layer("again", turn=again)])
    turn = agent.stream("q")
    events = await read(turn)
    assert [e.attempt for e in events if isinstance(e, AttemptDiscarded)] == [1]
    assert turn.outcome is not None
    assert turn.outcome.text == "short"


@pytest.mark.rule("R-STREAM-1", "R-LOOP-3")
@pytest.mark.behaviour("B-ST-13")
async def test_a_turn_that_runs_out_of_rounds_ends_with_what_was_said_last() -> None:
    model = Scripted(Say(text="once more", calls=[call("look")]), repeat=True)
    turn = Agent(model, tools=[look], limits=Limits(rounds=2)).stream("q")
    events = await read(turn)
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert (end.status, end.text) == ("limit", "once more")


# -- thinking ----------------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-1", "B-TH-2")
async def test_signed_thinking_goes_back_in_the_next_round_and_from_memory() -> None:
    first = Say(thinking=[" hm", "\n"], signature="sig", text="well", calls=[call("look")])
    model = Scripted(first, Say(thinking="so", text="done"), "next")
    agent = Agent(model, tools=[look], advisors=[Memory(InMemory())])
    turn = agent.stream("q", conversation="c")
    events = await read(turn)
    assert "".join(e.text for e in events if isinstance(e, ThinkingChunk)) == " hm\nso"
    assert "".join(e.text for e in events if isinstance(e, TextChunk)) == "welldone"
    assert turn.outcome is not None
    assert turn.outcome.text == "done"
    assert turn.outcome.message is not None
    assert turn.outcome.message.thinking == "so"
    await agent.run("and?", conversation="c")
    signed = Thinking(" hm\n", "sig", provider="scripted")
    assert thoughts(model.requests[1].messages) == [signed]
    assert thoughts(model.requests[2].messages) == [signed, Thinking("so", provider="scripted")]


def thoughts(messages: Any) -> list[Thinking]:
    said: list[Message] = list(messages)
    return [part for message in said for part in message.parts if isinstance(part, Thinking)]


# -- tokens ------------------------------------------------------------------------------------

REPORTS: dict[str, list[Usage]] = {
    "at the start and the end": [Usage(input=10, output=1), Usage(output=7)],
    "in each chunk": [Usage(input=10, output=3), Usage(input=10, output=7)],
    "at the end": [Usage(input=10, output=7)],
}


@pytest.mark.rule("R-USAGE-2", "R-USAGE-3")
@pytest.mark.behaviour("B-US-1")
@pytest.mark.parametrize("how", REPORTS)
async def test_a_stream_and_a_run_count_the_same_tokens(how: str) -> None:
    reports = [UsageDelta(usage) for usage in REPORTS[how]]
    model = Scripted(Say(text="a", deltas=reports, calls=[call("look")]), Say(deltas=reports))
    script = Agent(model, tools=[look])
    turn = script.stream("q")
    events = await read(turn)
    again = Scripted(Say(text="a", deltas=reports, calls=[call("look")]), Say(deltas=reports))
    ran = await script.with_(model=again).run("q")
    assert turn.outcome is not None
    assert turn.outcome.usage == ran.usage == Usage(input=20, output=14)
    assert turn.outcome.spent == ran.spent
    told = [(e.usage, e.total) for e in events if isinstance(e, UsageReported)]
    once = Usage(input=10, output=7)
    assert told == [(once, once), (once, ran.usage)]


@pytest.mark.rule("R-USAGE-1")
@pytest.mark.behaviour("B-US-1")
async def test_a_provider_that_reports_nothing_leaves_the_tokens_unknown() -> None:
    turn = Agent(Scripted("a")).stream("q")
    events = await read(turn)
    assert not [event for event in events if isinstance(event, UsageReported)]
    assert turn.outcome is not None
    assert turn.outcome.usage == Usage()
    assert turn.outcome.usage.input is None
