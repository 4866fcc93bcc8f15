"""Tokens: added up over rounds, kept on error and cancel, and calls made on the side."""

import asyncio
import contextlib
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, ModelError, Settings, Usage
from retinue.chains import Output
from retinue.chains.events import Event, TextChunk, UsageReported
from retinue.errors import ModelRefused
from retinue.models.scripted import Say, Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look
from tests.virtual_time import virtual_time


def using(n: int, *, cached: int | None = None, **more: Any) -> Say:
    return Say(usage=Usage(input=n, output=1, cache_read=cached), **more)


def watching(seen: list[Any]) -> Layer:
    """Keeps how the turn stood for an outer layer when it ended."""

    async def watch(request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        finally:
            seen.append([one.usage for one in request.spent])

    return Layer("watch", turn=watch)


@pytest.mark.rule("R-USAGE-1", "R-USAGE-2", "R-USAGE-3")
@pytest.mark.behaviour("B-US-2")
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_rounds_of_a_turn_add_up_cached_prompts_included(streamed: bool) -> None:
    model = Scripted(
        using(100, calls=[call("look", at="a")]),
        using(120, cached=100, calls=[call("look", at="b")]),
        using(140, cached=120, text="done"),
    )
    agent = Agent(model, tools=[look])
    result = await (agent.stream("?").result() if streamed else agent.run("?"))
    assert result.usage == Usage(input=360, output=3, cache_read=220)
    assert [(one.round, one.usage.input) for one in result.spent] == [(1, 100), (2, 120), (3, 140)]
    assert {(one.provider, one.model) for one in result.spent} == {("scripted", "script")}
    assert [m.usage for m in result.messages if m.role == "assistant"] == [
        one.usage for one in result.spent
    ]


@pytest.mark.rule("R-USAGE-3")
async def test_a_reader_is_told_after_each_call_what_it_took_and_the_sum() -> None:
    model = Scripted(using(10, calls=[call("look", at="a")]), using(20, text="done"))
    events = [event async for event in Agent(model, tools=[look]).stream("?")]
    told = [(e.usage.input, e.total.input) for e in events if isinstance(e, UsageReported)]
    assert told == [(10, 10), (20, 30)]


@pytest.mark.rule("R-USAGE-1")
async def test_what_no_provider_reports_is_unknown_and_not_nothing() -> None:
    result = await Agent(Scripted("hi")).run("?")
    assert result.usage == Usage(None, None, None, None, None)
    assert result.spent == ()
    model = Scripted(Say(usage=Usage(input=5), calls=[call("look", at="a")]), "done")
    assert (await Agent(model, tools=[look]).run("?")).usage == Usage(input=5)


@pytest.mark.rule("R-USAGE-2")
@pytest.mark.behaviour("B-US-3")
async def test_usage_survives_an_error_in_the_second_round() -> None:
    seen: list[Any] = []
    model = Scripted(
        using(10, calls=[call("look", at="a")]), using(20, error=ModelRefused("no more"))
    )
    agent = Agent(model, tools=[look], advisors=[watching(seen)])
    turn = agent.stream("?")
    with pytest.raises(ModelRefused, match="no more"):
        await turn.result()
    assert seen == [[Usage(input=10, output=1), Usage(input=20, output=1)]]
    assert turn.outcome is not None
    assert turn.outcome.usage == Usage(input=30, output=2)


@pytest.mark.rule("R-USAGE-2")
@pytest.mark.behaviour("B-US-3")
@virtual_time
async def test_usage_survives_a_cancel_in_the_third_round() -> None:
    seen: list[Any] = []
    model = Scripted(
        using(10, calls=[call("look", at="a")]),
        using(20, calls=[call("look", at="b")]),
        Say(text=["x", "y"], delay=60.0),
    )
    agent = Agent(model, tools=[look], advisors=[watching(seen)])
    turn = agent.stream("?")
    asyncio.get_running_loop().call_later(90, turn.cancel)
    result = await turn.result()
    assert (result.status, result.text) == ("cancelled", "x")
    assert result.usage == Usage(input=30, output=2)
    assert seen == [[Usage(input=10, output=1), Usage(input=20, output=1)]]


@pytest.mark.rule("R-USAGE-2")
async def test_every_try_of_a_layer_that_asks_again_counts() -> None:
    async def twice(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    model = Scripted(using(10, text="a"), using(20, text="b"))
    result = await Agent(model, advisors=[Layer("twice", chat=twice)]).run("?")
    assert result.usage == Usage(input=30, output=2)
    assert [one.round for one in result.spent] == [1, 1]


# -- calls on the side ---------------------------------------------------------------------------


def consulting(hook: str, **options: Any) -> Layer:
    """Asks a model on the side in each run of a hook."""

    async def consult(request: Any, call_next: Any) -> Any:
        response = await request.consult("Is it harmless?", **options)
        assert response.text == "yes"
        return await call_next(request)

    hooks: dict[str, Any] = {hook: consult}
    return Layer("judge", **hooks)


@pytest.mark.rule("R-USAGE-4")
@pytest.mark.behaviour("B-ST-6")
@pytest.mark.parametrize("hook", ["turn", "round", "chat", "tool"])
async def test_a_call_on_the_side_is_counted_and_seen_by_nobody(hook: str) -> None:
    judge = Scripted(using(7, text="yes"), repeat=True, name="judge")
    log, seen = Log(), []

    async def watch(request: Any, call_next: Any) -> Any:
        seen.append(request.messages)
        return await call_next(request)

    model = Scripted(using(10, calls=[call("look", at="a")]), using(20, text="done"))
    layers = [log, consulting(hook, model=judge), Layer("watch", chat=watch)]
    events: list[Event] = []
    turn = Agent(model, tools=[look], advisors=layers).stream("?")
    async for event in turn:
        events.append(event)
    assert turn.outcome is not None
    times = {"turn": 1, "round": 2, "chat": 2, "tool": 1}[hook]
    assert turn.outcome.usage == Usage(input=30 + 7 * times, output=2 + times)
    assert [one.model for one in turn.outcome.spent].count("judge") == times
    assert "".join(e.text for e in events if isinstance(e, TextChunk)) == "done"
    assert all("harmless" not in m.text and m.text != "yes" for m in log.messages)
    assert [len(messages) for messages in seen] == [1, 3]


@pytest.mark.rule("R-USAGE-4")
async def test_a_call_on_the_side_is_asked_as_the_layer_says() -> None:
    judge = Scripted('{"ok": true}')
    kept: list[Any] = []

    async def consult(request: Any, call_next: Any) -> Any:
        kept.append(
            await request.consult(
                "?",
                model=judge,
                instructions="You judge.",
                settings=Settings(temperature=0.0),
                output=Output.of(dict[str, bool]),
            )
        )
        return await call_next(request)

    agent = Agent(
        Scripted("hi"),
        instructions="You chat.",
        tools=[look],
        settings=Settings(temperature=1.0),
        advisors=[Layer("judge", turn=consult)],
    )
    await agent.run("hello")
    (asked,) = judge.requests
    assert [m.text for m in asked.messages] == ["?"]
    assert (asked.instructions, asked.tools) == (("You judge.",), ())
    assert asked.settings == Settings(temperature=0.0)
    assert asked.output == Output.of(dict[str, bool])
    assert kept[0].text == '{"ok": true}'


@pytest.mark.rule("R-USAGE-4")
async def test_without_a_model_the_agent_s_own_is_asked_on_the_side() -> None:
    model = Scripted("yes", "hi")
    assert (await Agent(model, advisors=[consulting("turn")]).run("?")).text == "hi"
    assert [m.text for m in model.requests[0].messages] == ["Is it harmless?"]


@pytest.mark.rule("R-USAGE-4", "R-LOOP-3")
@pytest.mark.parametrize("hook", ["turn", "round", "chat", "tool"])
async def test_a_call_on_the_side_is_bound_by_the_budgets_of_the_turn(hook: str) -> None:
    async def ask_for_ever(request: Any, call_next: Any) -> Any:
        for _ in range(50):
            await request.consult("again?", model=judge)
        raise AssertionError("the budget stopped nothing")

    judge = Scripted(using(29, text="yes"), repeat=True)
    model = Scripted(Say(calls=[call("look", at="a")], usage=Usage(input=0, output=0)))
    hooks: dict[str, Any] = {hook: ask_for_ever}
    log = Log()
    agent = Agent(
        model,
        tools=[look],
        advisors=[log, Layer("judge", **hooks)],
        limits=Limits(tokens=100),
    )
    result = await agent.run("?")
    assert (result.status, len(judge.requests)) == ("limit", 4)
    assert result.reason == "The budget of 100 tokens is used up."
    assert result.usage == Usage(input=4 * 29, output=4)


@pytest.mark.rule("R-USAGE-4", "R-LOOP-3")
async def test_a_side_call_whose_provider_reports_nothing_is_estimated_for_the_budget() -> None:
    async def ask_for_ever(request: Any, call_next: Any) -> Any:
        for _ in range(50):
            await request.consult("again?", model=judge)
        raise AssertionError("the budget stopped nothing")

    judge = Scripted("x" * 200, repeat=True)  # about 50 tokens
    agent = Agent(
        Scripted(), advisors=[Layer("judge", turn=ask_for_ever)], limits=Limits(tokens=100)
    )
    result = await agent.run("?")
    assert (result.status, len(judge.requests)) == ("limit", 2)
    assert result.usage == Usage()


@pytest.mark.rule("R-USAGE-4")
@virtual_time
async def test_a_call_on_the_side_is_cancelled_with_the_turn() -> None:
    judge = Scripted(Say(text="yes", delay=60.0))
    agent = Agent(Scripted("hi"), advisors=[consulting("turn", model=judge)])
    task = asyncio.create_task(agent.run("?"))
    await asyncio.sleep(1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert asyncio.get_running_loop().time() == pytest.approx(1)


@pytest.mark.rule("R-USAGE-4", "R-USAGE-2")
async def test_a_side_call_that_fails_is_the_layer_s_to_handle_and_is_counted() -> None:
    async def consult(request: Any, call_next: Any) -> Any:
        with contextlib.suppress(ModelError):
            await request.consult("?", model=broken)
        return await call_next(request)

    broken = Scripted(using(7, error=ModelRefused("no")))
    result = await Agent(Scripted("hi"), advisors=[Layer("judge", turn=consult)]).run("?")
    assert (result.text, result.usage) == ("hi", Usage(input=7, output=1))
