"""Reasoning apart from the answer: who sees it, what is kept of it, and how long it took."""

import asyncio
import itertools
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Usage
from retinue.advisors import HoldRelease, Memory, Thinking, Thoughts, Validate
from retinue.advisors.thinking.advisor import THINKING
from retinue.chains import OnionWarning
from retinue.chains.events import TextChunk, ThinkingChunk
from retinue.messages import TextDelta, ThinkingDelta
from retinue.messages import Thinking as Thought
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, by_parent, kept, soon
from tests.agent.reading import read

TAGGED = Say(text=["<th", "ink>I wonder", ".</thi", "nk>", "Oslo."])
TOLD_APART = Say(thinking=["I won", "der."], text="Oslo.")
SIGNED = Say(thinking="I wonder.", signature="proof", text="Oslo.")

FORMS = pytest.mark.parametrize("say", [TAGGED, TOLD_APART], ids=["tags", "told apart"])


def shown(seen: list[Any]) -> tuple[str, str]:
    """What a reader is shown: the reasoning, and the text."""
    return (
        "".join(one.text for one in seen if isinstance(one, ThinkingChunk)),
        "".join(one.text for one in seen if isinstance(one, TextChunk)),
    )


@FORMS
@pytest.mark.rule("R-STREAM-3", "R-STREAM-7")
@pytest.mark.behaviour("B-TH-1")
@pytest.mark.parametrize(
    ("show", "seen"), [("shown", "I wonder."), ("hidden", ""), ("summary", "It wondered.")]
)
async def test_shown_hidden_or_summed_up_the_text_is_clean_and_the_log_has_it_all(
    say: Say, show: Any, seen: str
) -> None:
    store = InMemory()
    own: dict[str, Any] = {"summarize": lambda text: "It wondered."} if show == "summary" else {}
    agent = Agent(Scripted(say, repeat=True), advisors=[Memory(store), Thinking(show, **own)])
    turn = agent.stream("Where?", conversation="c")
    assert shown(await read(turn)) == (seen, "Oslo.")
    streamed = await turn.result()
    run = await agent.run("Where?", conversation="d")
    for result in (streamed, run):
        assert result.message is not None
        assert (result.message.thinking, result.text) == (seen, "Oslo.")
        assert result.messages[-1].thinking == "I wonder."
        assert Thinking.of(result).text == "I wonder."
    assert await kept(store) == ["user: Where?", "assistant: Oslo."]
    (entry,) = [e for e in await store.tail("c") if e.message.role == "assistant"]
    assert entry.message.thinking == "I wonder."


@pytest.mark.parametrize("show", ["shown", "hidden", "summary"])
@pytest.mark.behaviour("B-TH-2")
async def test_signed_reasoning_goes_back_verbatim_in_the_next_round_and_from_memory(
    show: Any,
) -> None:
    own: dict[str, Any] = {"summarize": lambda text: "It wondered."} if show == "summary" else {}
    first = Say(thinking="I look.", signature="proof 1", calls=[call("none")])
    model = Scripted(first, SIGNED, "done")
    agent = Agent(model, advisors=[Memory(), Thinking(show, **own)])
    await agent.run("Go.", conversation="c")
    await agent.run("On.", conversation="c")
    seals = [Thought("I look.", "proof 1", None, "scripted")]
    for request in model.requests[1:]:
        given = [part for m in request.messages for part in m.parts if type(part) is Thought]
        assert given == seals
        seals = [*seals, Thought("I wonder.", "proof", None, "scripted")]


@FORMS
async def test_as_a_sub_agent_it_hides_the_childs_reasoning_from_the_parents_reader(
    say: Say,
) -> None:
    child = Agent(Scripted(say), advisors=[Thinking("hidden")], name="helper")
    parent = Agent(Scripted(call("helper", task="go"), "done"), tools=[child.as_tool()])
    assert shown(await read(parent.stream("Go."))) == ("", "Oslo.done")
    result = await by_parent(Agent(Scripted(say), advisors=[Thinking()]), "Go.")
    assert result.messages[2].tool_results[0].text == "Oslo."


@pytest.mark.parametrize("way", WAYS)
async def test_a_summary_comes_when_the_block_is_complete_by_a_model_on_the_side(way: Way) -> None:
    small = Scripted(" It wondered. ", name="small")
    agent = Agent(
        Scripted(Say(thinking=["I won", "der."], text=["Os", "lo."], usage=Usage(input=1))),
        advisors=[Thinking("summary", model=small)],
    )
    result = await way(agent, "Where?")
    assert result.message is not None
    assert [type(part).__name__ for part in result.message.parts] == ["Thinking", "Text"]
    assert result.message.thinking == "It wondered."
    assert small.requests[0].messages[0].text == "I wonder."
    assert "Sum up" in small.requests[0].instructions[0]


async def test_each_block_has_one_summary_shown_as_one_event_before_the_text() -> None:
    async def short(text: str) -> str:
        await asyncio.sleep(0)
        return f"[{len(text)}]"

    deltas = [
        ThinkingDelta("a"), ThinkingDelta("b", signature="x"), ThinkingDelta("c"),
        TextDelta("one "), ThinkingDelta("dd"), ThinkingDelta(" "), TextDelta("two"),
        ThinkingDelta("last"),
    ]  # fmt: skip
    agent = Agent(Scripted(Say(deltas=deltas)), advisors=[Thinking("summary", summarize=short)])
    seen = [
        one.text
        for one in await read(agent.stream("Go."))
        if isinstance(one, (TextChunk, ThinkingChunk))
    ]
    assert seen == ["[3]", "one ", "[3]", "two", "[4]"]


def _raises(text: str) -> str:
    raise LookupError("no token=abcdefgh")


@pytest.mark.parametrize(
    "summarize", [_raises, lambda text: 7, None], ids=["raises", "a number", "a broken model"]
)
async def test_an_answer_does_not_fail_for_want_of_a_summary(
    summarize: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = None if summarize else Scripted(LookupError("no token=abcdefgh"))
    thinking = Thinking("summary", summarize=summarize, model=model)
    turn = Agent(Scripted(TOLD_APART), advisors=[thinking]).stream("Go.")
    assert shown(await read(turn)) == ("", "Oslo.")
    assert "shows reasoning without a summary" in caplog.text
    assert "abcdefgh" not in caplog.text


async def test_no_summary_is_asked_for_where_nothing_was_thought() -> None:
    asked: list[str] = []
    deltas = [ThinkingDelta(signature="sealed"), ThinkingDelta("  "), TextDelta("hi")]
    agent = Agent(
        Scripted(Say(deltas=deltas)),
        advisors=[Thinking("summary", summarize=lambda t: asked.append(t) or "x")],
    )
    assert (await agent.run("Go.")).text == "hi"
    assert asked == []


@pytest.mark.parametrize("way", WAYS)
async def test_the_result_tells_what_was_thought_how_long_and_with_how_many_tokens(
    way: Way,
) -> None:
    ticks = itertools.count()
    model = Scripted(
        Say(thinking=["a", "b", "c"], calls=[call("none")], usage=Usage(output=9, reasoning=5)),
        Say(text=["<think>d", "e</think>", "Oslo."], usage=Usage(output=9, reasoning=2)),
    )
    agent = Agent(model, advisors=[Thinking(clock=lambda: float(next(ticks)))])
    result = await way(agent, "Where?")
    assert Thinking.of(result) == Thoughts("abc\n\nde", 3.0, 2, 7)
    assert result.context["thinking"] is Thinking.of(result)


async def test_where_nothing_is_thought_or_nobody_looks_there_is_nothing() -> None:
    plain = await Agent(Scripted("hi"), advisors=[Thinking()]).run("Go.")
    assert Thinking.of(plain) == Thoughts()
    assert Thinking.of(await Agent(Scripted(TOLD_APART)).run("Go.")) == Thoughts()
    theirs = await Agent(Scripted("hi")).run("Go.", context={"thinking": "mine"})
    assert Thinking.of(theirs) == Thoughts()


async def test_thoughts_of_a_turn_that_is_entered_again_are_all_there_once() -> None:
    model = Scripted(Say(thinking="a", text="x"), Say(thinking="b", text="1"))
    result = await Agent(model, advisors=[Validate(int), Thinking()]).run("Go.")
    assert (Thinking.of(result).text, Thinking.of(result).rounds) == ("a\n\nb", 2)


async def test_a_turn_that_goes_on_after_a_pause_adds_to_what_was_thought_before() -> None:
    async def resumed(request: Any, call_next: Any) -> Any:
        before = {"text": "a", "seconds": 1.0, "rounds": 1, "tokens": None}  # from a store
        return await call_next(request.with_(resumed=True).with_context(**{THINKING: before}))

    layers = [Layer("resume", turn=resumed), Thinking(clock=lambda: 0.0)]
    result = await Agent(Scripted(Say(thinking="b", text="x")), advisors=layers).run("Go.")
    assert Thinking.of(result) == Thoughts("a\n\nb", 1.0, 2)


async def test_what_a_layer_outside_takes_out_is_in_no_thought() -> None:
    class Mute:
        def feed(self, delta: Any) -> Any:
            return (ThinkingDelta("***"),) if isinstance(delta, ThinkingDelta) else (delta,)

        def flush(self) -> Any:
            return ()

    layers = [Layer("mute", stream=lambda request: Mute()), Thinking("hidden")]
    result = await Agent(Scripted(Say(text="<think>secret</think>x")), advisors=layers).run("Go.")
    assert Thinking.of(result).text == "***"


async def test_a_turn_that_is_cut_off_keeps_the_thought_and_shows_none_that_is_hidden() -> None:
    said = asyncio.Event()

    class Stuck(Scripted):
        async def generate(self, request: Any, send: Any) -> None:
            await send(TextDelta("<think>I wonder.</think>Os"))
            said.set()
            await asyncio.Event().wait()

    turn = Agent(Stuck(), advisors=[Thinking("hidden")]).stream("Go.")
    reading = asyncio.create_task(read(turn))
    await soon(said.wait())
    turn.cancel()
    assert shown(await soon(reading)) == ("", "Os")
    assert turn.outcome is not None
    assert turn.outcome.messages[-1].partial
    assert turn.outcome.messages[-1].thinking == "I wonder."


async def test_100_turns_at_once_share_no_thought() -> None:
    def think(request: Any) -> Say:
        return Say(text=["<thi", f"nk>{request.data}</th", "ink>", str(request.data)])

    agent = Agent(Scripted(think, repeat=True), advisors=[Thinking("hidden")])
    results = await asyncio.gather(*(agent.run("Go.", data=n) for n in range(100)))
    assert [Thinking.of(one).text for one in results] == [str(n) for n in range(100)]


def test_outside_a_layer_that_reads_the_text_on_its_way_it_is_warned_about() -> None:
    hold = HoldRelease(lambda text: None)
    with pytest.warns(OnionWarning, match="would take reasoning in tags for the answer"):
        Agent(Scripted(), advisors=[Thinking(), hold])
    checks = Layer("check", stream=lambda r: None, traits=frozenset({"validates-stream"}))
    with pytest.warns(OnionWarning, match="Thinking stands outside check"):
        Agent(Scripted(), advisors=[Thinking(), checks])
    Agent(Scripted(), advisors=[hold, Thinking()])
    Agent(Scripted(), advisors=[Thinking(tags=None), hold])


def test_a_stream_hook_may_give_several_transforms_in_the_order_an_answer_meets_them() -> None:
    class Add:
        def __init__(self, text: str) -> None:
            self._text = text

        def feed(self, delta: Any) -> Any:
            return (TextDelta(delta.text + self._text),)

        def flush(self) -> Any:
            return ()

    two = Layer("two", stream=lambda request: [Add("1"), Add("2")])
    assert Agent(Scripted("x"), advisors=[two]).run_sync("Go.").text == "x12"
    wrong: Any = Layer("wrong", stream=lambda request: [Add("1"), 7])  # pyright: ignore
    with pytest.raises(ConfigError, match=r"stream hook of wrong gave int, which has no feed\(\)"):
        Agent(Scripted("x"), advisors=[wrong]).run_sync("Go.")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"show": "maybe"}, "'maybe'"),
        ({"show": "summary", "summarize": 7}, "summarize=7"),
        ({"summarize": str}, "sums nothing up"),
        ({"show": "hidden", "model": "local"}, "sums nothing up"),
        ({"show": "summary", "model": "local", "summarize": str}, "give one of the two"),
        ({"tags": None, "anywhere": True}, "looks for no tags"),
        ({"tags": (), "opened": True}, "looks for no tags"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_built(options: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Thinking(**options)
