"""Turn layers that ask once more: what is sent and logged, and which budgets are renewed."""

from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, Settings, Usage, tool
from retinue.models.scripted import Say, Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look
from tests.strict import check_transcript


class Insist:
    """Asks again until the answer ends in a full stop."""

    name = "insist"

    def __init__(self, notes: list[str] | None = None) -> None:
        self.notes = [] if notes is None else notes

    async def turn(self, request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        while response.status == "completed" and not response.text.endswith("."):
            self.notes.append(f"no full stop: {response.text}")
            request = request.again("End it with a full stop.")
            response = await call_next(request)
        return response


def tracing(name: str, notes: list[str]) -> Layer:
    async def note(request: Any, call_next: Any) -> Any:
        notes.append(f"{name} {request.reentry}")
        return await call_next(request)

    return Layer(name, turn=note)


@pytest.mark.rule("R-LOOP-5", "R-ONION-3")
@pytest.mark.behaviour("B-ON-3")
@pytest.mark.parametrize("with_log", [True, False])
async def test_a_turn_re_entered_twice_runs_inner_layers_again_and_outer_ones_once(
    with_log: bool,
) -> None:
    notes: list[str] = []
    log = Log()
    model = Scripted("one", "two", "three.")
    layers = [tracing("outer", notes), Insist(), tracing("inner", notes)]
    agent = Agent(model, advisors=[log, *layers] if with_log else layers)
    result = await agent.run("count")
    assert notes == ["outer 0", "inner 0", "inner 1", "inner 2"]
    assert result.text == "three."
    sent = [[m.text for m in request.messages] for request in model.requests]
    feedback = "End it with a full stop."
    assert sent == [
        ["count"],
        ["count", "one", feedback],
        ["count", "one", feedback, "two", feedback],
    ]
    for request in model.requests:
        check_transcript(request.messages)
    assert [m.text for m in result.messages].count("count") == 1
    if with_log:
        assert [m.text for m in log.messages].count("count") == 1
        assert [m.text for m in log.valid] == ["count", "three."]


@pytest.mark.rule("R-LOOP-5")
async def test_the_next_turn_is_not_sent_what_was_given_up() -> None:
    model = Scripted("one", "two.", "hello.")
    agent = Agent(model, advisors=[Log(), Insist()])
    await agent.run("count")
    await agent.run("hi")
    assert [m.text for m in model.requests[-1].messages] == ["count", "two.", "hi"]


@pytest.mark.rule("R-LOOP-5")
async def test_a_re_entry_does_not_run_the_tools_again() -> None:
    ran: list[str] = []

    @tool
    def save(text: str) -> str:
        """Saves."""
        ran.append(text)
        return "saved"

    model = Scripted(call("save", text="x"), "saved it", "Saved it.")
    log = Log()
    result = await Agent(model, tools=[save], advisors=[log, Insist()]).run("save x")
    assert ran == ["x"]
    assert result.text == "Saved it."
    check_transcript(model.requests[-1].messages)
    check_transcript(log.valid)
    assert [m.role for m in log.valid] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.rule("R-LOOP-5", "R-LOOP-3")
async def test_each_re_entry_has_a_fresh_round_budget() -> None:
    looking = [call("look", at="it") for _ in range(4)]
    model = Scripted(looking[0], looking[1], "no", looking[2], looking[3], "Yes.")
    agent = Agent(model, tools=[look], advisors=[Insist()], limits=Limits(rounds=3))
    result = await agent.run("?")
    assert (result.status, result.text, result.rounds) == ("completed", "Yes.", 6)


@pytest.mark.rule("R-LOOP-5", "R-LOOP-3")
async def test_a_re_entry_does_not_renew_the_token_budget() -> None:
    say = Say(text="no", usage=Usage(input=30, output=10))
    model = Scripted(say, repeat=True)
    agent = Agent(model, advisors=[Insist()], limits=Limits(tokens=100))
    result = await agent.run("?")
    assert (result.status, len(model.requests)) == ("limit", 3)
    assert result.reason == "The budget of 100 tokens is used up."
    assert result.usage == Usage(input=90, output=30)


@pytest.mark.rule("R-LOOP-4")
@pytest.mark.parametrize(
    ("way", "message"),
    [("again", "ended as limit is not re-entered"), ("call_next", "a layer must pass that on")],
)
async def test_a_turn_that_did_not_complete_is_not_re_entered(way: str, message: str) -> None:
    async def stubborn(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("go on") if way == "again" else request)

    looping = Scripted(call("look", at="it"), repeat=True)
    agent = Agent(
        looping, tools=[look], advisors=[Layer("x", turn=stubborn)], limits=Limits(rounds=2)
    )
    with pytest.raises(ConfigError, match=message):
        await agent.run("?")
    assert len(looping.requests) == 2


@pytest.mark.rule("R-LOOP-4")
async def test_a_limit_inside_passes_a_layer_that_would_ask_again() -> None:
    notes: list[str] = []
    model = Scripted(call("look", at="it"), repeat=True)
    agent = Agent(model, tools=[look], advisors=[Insist(notes)], limits=Limits(rounds=2))
    result = await agent.run("?")
    assert (result.status, notes) == ("limit", [])


@pytest.mark.rule("R-LOOP-5")
async def test_a_forced_tool_is_not_forced_again_by_a_re_entry() -> None:
    model = Scripted(call("look", at="it"), "no", "Yes.")
    agent = Agent(
        model, tools=[look], advisors=[Insist()], settings=Settings(tool_choice="required")
    )
    await agent.run("?")
    choices = [request.settings.tool_choice for request in model.requests]
    assert choices == ["required", None, None]


@pytest.mark.rule("R-LOOP-5")
async def test_feedback_may_follow_a_chosen_one_of_several_answers() -> None:
    async def best(request: Any, call_next: Any) -> Any:
        first = await call_next(request)
        await call_next(request)
        return await call_next(request.again("Better?", after=first))

    model = Scripted("a", "b", "A!")
    log = Log()
    result = await Agent(model, advisors=[log, Layer("best", turn=best)]).run("?")
    assert [m.text for m in model.requests[-1].messages] == ["?", "a", "Better?"]
    assert result.text == "A!"
    assert [m.text for m in log.valid] == ["?", "A!"]


@pytest.mark.rule("R-LOOP-5")
async def test_a_turn_answered_directly_by_a_tool_can_be_re_entered() -> None:
    @tool(return_direct=True)
    def raw() -> str:
        """Raw."""
        return "raw"

    model = Scripted(call("raw"), "Cooked.")
    log = Log()
    result = await Agent(model, tools=[raw], advisors=[log, Insist()]).run("?")
    assert result.text == "Cooked."
    check_transcript(model.requests[-1].messages)
    check_transcript(log.valid)


@pytest.mark.rule("R-LOOP-5")
async def test_feedback_says_what_it_is_and_is_not_taken_for_the_user_s_words() -> None:
    model = Scripted("one", "two.")
    result = await Agent(model, advisors=[Insist()]).run("count")
    assert [m.origin for m in result.messages] == ["", "", "feedback", ""]
