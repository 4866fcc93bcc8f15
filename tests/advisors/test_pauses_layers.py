"""What layers, windows, accounts and readers see of a turn that pauses and goes on."""

from typing import Any

import pytest

from retinue import Agent, Approve, Limits, Usage
from retinue.advisors import (
    Memory,
    QuestionAnswer,
    Quota,
    Safeguard,
    Summarizer,
    UsageCollector,
    Validate,
)
from retinue.chains.events import (
    AttemptStarted,
    Paused,
    RoundStarted,
    TextChunk,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from retinue.errors import PauseNotFound
from retinue.messages import Thinking
from retinue.models.scripted import Say, Scripted, call
from retinue.retrieval import Document
from retinue.stores import Store
from tests.advisors.metering import limited, used
from tests.advisors.pausing import Desk
from tests.advisors.talking import sent, strictly
from tests.agent.reading import read

PAY = call("pay", amount=1)


async def approved(desk: Desk, agent: Agent, **options: Any) -> Any:
    """Goes on with all approved."""
    waiting = await desk.agent().pending("c")
    return await agent.resume("c", {one.id: Approve() for one in waiting}, **options)


@pytest.mark.behaviour("B-PA-7")
@pytest.mark.rule("R-HITL-4")
async def test_retrieval_and_entry_guards_do_not_run_again_and_validators_do(store: Store) -> None:
    looked: list[str] = []
    guarded: list[str] = []
    judged: list[str] = []

    def look_up(question: str) -> list[Document]:
        looked.append(question)
        return [Document("Oslo lies in Norway.", score=1.0)]

    def guard(text: str) -> None:
        guarded.append(text)

    def check(text: str) -> str | None:
        judged.append(text)
        return None if text == "paid" else "Say paid."

    def layers() -> dict[str, list[Any]]:
        inside = [QuestionAnswer(look_up), Validate(check=check)]
        return {"outside": [Safeguard([guard])], "advisors": inside}

    desk = Desk(store)
    await desk.paused(PAY, **layers())
    model = Scripted("It is paid.", "paid")
    result = await approved(desk, desk.agent(model, **layers()))
    assert (result.text, looked, guarded) == ("paid", ["Pay."], ["Pay."])
    assert judged == ["It is paid.", "paid"]
    assert [source.text for source in result.context["sources"]] == ["Oslo lies in Norway."]
    assert all("Oslo lies in Norway." in request.messages[0].text for request in model.requests)
    strictly(model)


@pytest.mark.behaviour("B-PA-6")
@pytest.mark.rule("R-HITL-4", "R-MEM-3")
async def test_an_answer_after_a_resume_is_judged_and_the_bad_one_is_not_sent_again(
    store: Store,
) -> None:
    model = Scripted(PAY, "It is 42.", "42", "yes")
    desk = Desk(store)
    agent = desk.agent(model, advisors=[Validate(int)])
    await agent.run("Pay.", conversation="c")
    result = await approved(desk, agent)
    assert (result.output, len(model.requests)) == (42, 3)
    await agent.with_(advisors=[Memory(store)]).run("sure?", conversation="c")
    assert sent(model) == [
        "user: Pay.", "assistant: +pay", "tool: paid 1", "assistant: 42", "user: sure?",
    ]  # fmt: skip
    strictly(model)


@pytest.mark.behaviour("B-TH-2")
@pytest.mark.rule("R-STREAM-7")
async def test_signed_thinking_goes_back_verbatim_after_a_pause_and_from_the_store(
    store: Store,
) -> None:
    desk = Desk(store)
    say = Say(thinking=["I ", "pay."], signature="proof", text="Paying", calls=[PAY])
    await desk.agent(say).run("Pay.", conversation="c")
    model = Scripted("done", "yes")
    await approved(desk, desk.agent(model))
    await desk.agent(model).run("sure?", conversation="c")
    for request in model.requests:
        thought = request.messages[1].parts[0]
        assert thought == Thinking("I pay.", signature="proof", provider="scripted")


# -- what is sent ----------------------------------------------------------------------------------


@pytest.mark.rule("R-MEM-4", "R-HITL-4")
async def test_the_history_and_its_window_are_those_of_any_turn(store: Store) -> None:
    desk = Desk(store)
    window = {"memory": {"max_messages": 6}}
    for number in range(4):
        await desk.agent(f"a{number}", **window).run(f"q{number}", conversation="c")
    await desk.paused(PAY, **window)
    model = Scripted("done")
    await approved(desk, desk.agent(model, **window))
    assert sent(model) == [
        "user: q3", "assistant: a3", "user: Pay.", "assistant: +pay", "tool: paid 1",
    ]  # fmt: skip
    strictly(model)


@pytest.mark.rule("R-MEM-4")
async def test_a_turn_longer_than_the_window_is_gone_on_with(store: Store) -> None:
    desk = Desk(store)
    window = {"memory": {"max_messages": 4}, "limits": Limits(rounds=20, repeats=None)}
    await desk.agent("hello", **window).run("hi", conversation="c")
    script = [*[[call("count")] for _ in range(8)], PAY]
    await desk.agent(*script, **window).run("Pay.", conversation="c")
    desk.till.did.clear()
    model = Scripted("done", "yes")
    result = await approved(desk, desk.agent(model, **window))
    assert (result.text, result.rounds, desk.till.did) == ("done", 10, ["pay 1"])
    await desk.agent(model).run("sure?", conversation="c")
    strictly(model)
    assert len(sent(model)) == 2 + 1 + 2 * 9 + 2


@pytest.mark.rule("R-MEM-4")
async def test_a_summary_stands_in_the_prompt_after_a_resume_too(store: Store) -> None:
    notes = Scripted("minutes", repeat=True)
    summed = {"memory": {"max_messages": 6, "summary": Summarizer(model=notes)}}
    desk = Desk(store)
    for number in range(4):
        await desk.agent(f"a{number}", **summed).run(f"q{number}", conversation="c")
    await desk.paused(PAY, **summed)
    asked = len(notes.requests)
    model = Scripted("done")
    await approved(desk, desk.agent(model, **summed))
    assert "assistant: minutes" in sent(model)
    assert len(notes.requests) - asked <= 1
    strictly(model)


# -- what is counted -------------------------------------------------------------------------------


@pytest.mark.rule("R-USAGE-2", "R-HITL-4")
async def test_nothing_is_counted_twice_over_a_pause(store: Store) -> None:
    collector = UsageCollector()
    desk = Desk(store)
    first = desk.agent(used(10, text="", calls=[PAY]), advisors=[collector])
    paused = await first.run("Pay.", conversation="c")
    second = desk.agent(used(20, text="done"), advisors=[collector])
    result = await approved(desk, second)
    assert paused.usage == Usage(input=9, output=1)
    assert result.usage == Usage(input=28, output=2)
    assert [one.round for one in result.spent] == [1, 2]
    total = collector.total
    assert (total.turns, total.calls, total.usage) == (1, 2, Usage(input=28, output=2))
    assert collector.of_turn(result.id).usage == result.usage
    assert list(collector.rounds(result.id)) == [1, 2]


@pytest.mark.rule("R-HITL-4", "R-USAGE-4")
async def test_a_quota_that_is_used_up_ends_the_resumed_turn_and_its_pause(store: Store) -> None:
    quotas = limited(Quota(tokens=1_000))
    desk = Desk(store)
    first = desk.agent(used(990, text="", calls=[PAY]), advisors=[quotas])
    await first.run("Pay.", conversation="c")
    result = await approved(desk, desk.agent("never", advisors=[quotas]))
    assert (result.status, desk.till.did) == ("limit", ["pay 1"])
    with pytest.raises(PauseNotFound):
        await desk.agent().resume("c")
    model = Scripted("yes")
    await desk.agent(model).run("sure?", conversation="c")
    assert sent(model)[:3] == ["user: Pay.", "assistant: +pay", "tool: paid 1"]
    strictly(model)


# -- what is streamed ------------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-1", "R-HITL-2", "R-HITL-4")
@pytest.mark.behaviour("B-ST-13")
async def test_a_pause_and_its_resume_are_streams_of_their_own(store: Store) -> None:
    desk = Desk(store)
    before = await read(
        desk.agent(Say(text="I pay.", calls=[PAY])).stream("Pay.", conversation="c")
    )
    assert [type(event) for event in before[-2:]] == [Paused, TurnEnded]
    after = await read(await desk.agent("done").stream_resume("c", {PAY.id: Approve()}))
    assert [type(event) for event in after] == [
        TurnStarted, RoundStarted, ToolStarted, ToolFinished, RoundStarted,
        AttemptStarted, TextChunk, TurnEnded,
    ]  # fmt: skip
    first, second = before[0], after[0]
    assert isinstance(first, TurnStarted)
    assert isinstance(second, TurnStarted)
    assert first.turn == second.turn
    assert [event.round for event in after] == [1, 1, 1, 1, 2, 2, 2, 2]
    assert [event.attempt for event in after][-1] == 2


@pytest.mark.rule("R-STREAM-5")
@pytest.mark.parametrize("final_only", [False, True])
async def test_what_is_said_before_later_calls_may_be_left_out_of_a_resumed_stream(
    store: Store, final_only: bool
) -> None:
    desk = Desk(store)
    await desk.paused(PAY)
    script = (Say(text="And I count.", calls=[call("count")]), "done")
    turn = await desk.agent(*script).stream_resume("c", {PAY.id: Approve()}, final_only=final_only)
    texts = [event.text for event in await read(turn) if isinstance(event, TextChunk)]
    assert texts == (["done"] if final_only else ["And I count.", "done"])


@pytest.mark.behaviour("B-PA-8")
@pytest.mark.rule("R-TOOL-12", "R-STREAM-1")
async def test_a_sub_agent_that_goes_on_streams_under_its_call(store: Store) -> None:
    desk = Desk(store)
    going = Scripted(PAY, "the child has paid")

    def parent(*script: Any) -> Agent:
        child = Agent(going, name="child", tools=desk.till.tools, gate="sensitive")
        return desk.agent(*script, tools=[child.as_tool()])

    asked = call("child", task="pay")
    paused = await parent([asked, call("count")]).run("Go.", conversation="c")
    assert [one.id for one in paused.pending] == [f"{asked.id}/{PAY.id}"]
    assert desk.till.did == ["count"]
    events = await read(
        await parent("all done").stream_resume("c", {paused.pending[0].id: Approve({"amount": 5})})
    )
    assert desk.till.did == ["count", "pay 5"]
    nested = [event for event in events if event.path]
    assert {event.path for event in nested} == {(asked.id,)}
    assert "the child has paid" in [e.text for e in nested if isinstance(e, TextChunk)]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].text == "all done"
    model = Scripted("yes")
    await parent(model).run("sure?", conversation="c")
    strictly(model)
    assert sent(model)[1:4] == [
        "assistant: +child +count", "tool: the child has paid", "tool: counted",
    ]  # fmt: skip
