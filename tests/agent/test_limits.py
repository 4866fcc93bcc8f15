"""What a turn may use up: each limit ends it with a status, a reason, and all that was done."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, Usage, tool
from retinue.agent import agent as agent_module
from retinue.agent import building
from retinue.messages import ToolCall
from retinue.models.scripted import Say, Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look
from tests.strict import check_transcript
from tests.virtual_time import virtual_time


def looking_for_ever() -> Scripted:
    """Asks for another thing in every round."""
    return Scripted(lambda request: call("look", at=str(request.round)), repeat=True)


@pytest.mark.rule("R-LOOP-3")
async def test_ten_rounds_are_the_default() -> None:
    model = looking_for_ever()
    result = await Agent(model, tools=[look]).run("?")
    assert (result.status, result.rounds, len(model.requests)) == ("limit", 10, 10)
    assert result.reason == "The limit of 10 rounds is reached."


@pytest.mark.rule("R-LOOP-3", "R-LOOP-1")
@pytest.mark.behaviour("B-LO-16")
async def test_the_calls_of_the_last_round_do_not_run_and_the_next_turn_is_valid() -> None:
    ran: list[str] = []

    @tool
    def act(what: str) -> str:
        """Acts."""
        ran.append(what)
        return f"{what} done"

    log = Log()
    more = [call("act", what="b"), call("act", what="c")]
    model = Scripted(call("act", what="a"), Say(text="two more", calls=more), "hello")
    agent = Agent(model, tools=[act], advisors=[log], limits=Limits(rounds=2))
    result = await agent.run("?")
    assert ran == ["a"]
    assert (result.status, result.text) == ("limit", "two more")
    told = [(r.ok, r.text) for m in result.messages for r in m.tool_results]
    closed = (False, "Not run. The limit of 2 rounds is reached.")
    assert told == [(True, "a done"), closed, closed]
    assert log.valid == list(result.messages)
    assert (await agent.run("hi")).text == "hello"
    check_transcript(model.requests[-1].messages)


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-16")
async def test_a_provider_that_uses_one_call_id_in_every_round_leaves_no_call_open() -> None:
    same = ToolCall("call_0", "look", '{"at": "it"}')
    log = Log()
    model = Scripted(same, same, "hello")
    agent = Agent(model, tools=[look], advisors=[log], limits=Limits(rounds=2))
    assert (await agent.run("?")).status == "limit"
    await agent.run("hi")
    check_transcript(model.requests[-1].messages)


@pytest.mark.rule("R-LOOP-3")
async def test_an_answer_in_the_last_round_completes_the_turn() -> None:
    model = Scripted(call("look", at="a"), "done")
    result = await Agent(model, tools=[look], limits=Limits(rounds=2)).run("?")
    assert (result.status, result.text) == ("completed", "done")


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-4")
async def test_the_same_call_with_the_same_result_for_ever_ends_after_five_rounds() -> None:
    model = Scripted(call("look", at="it"), repeat=True)
    log = Log()
    result = await Agent(model, tools=[look], advisors=[log], limits=Limits(rounds=50)).run("?")
    assert (result.status, len(model.requests)) == ("limit", 5)
    assert result.reason == "The same calls gave the same results in 5 rounds running."
    check_transcript(log.valid)
    assert log.valid == list(result.messages)


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-4")
async def test_a_call_whose_result_changes_may_go_on() -> None:
    count = 0

    @tool
    def poll() -> int:
        """Polls."""
        nonlocal count
        count += 1
        return count // 4

    model = Scripted(call("poll"), repeat=True)
    result = await Agent(model, tools=[poll], limits=Limits(rounds=8)).run("?")
    assert (result.status, result.reason) == ("limit", "The limit of 8 rounds is reached.")


@pytest.mark.rule("R-LOOP-3")
async def test_rounds_that_differ_in_between_start_the_count_anew() -> None:
    steps = ["a", "a", "b", "a", "a"]
    model = Scripted(*(call("look", at=at) for at in steps), "done")
    result = await Agent(model, tools=[look], limits=Limits(repeats=3)).run("?")
    assert (result.status, result.text) == ("completed", "done")


@pytest.mark.rule("R-LOOP-3")
@virtual_time
async def test_the_time_limit_ends_a_slow_model_with_what_it_had_said() -> None:
    began = asyncio.get_running_loop().time()
    log = Log()
    model = Scripted(Say(text=["a", "b", "c", "d"], delay=1.0))
    agent = Agent(model, advisors=[log], limits=Limits(seconds=2.5))
    result = await agent.run("?")
    assert asyncio.get_running_loop().time() - began == pytest.approx(2.5)
    assert (result.status, result.text) == ("limit", "ab")
    assert result.reason == "The time limit of 2.5 seconds is reached."
    assert result.message is not None
    assert result.message.partial
    assert log.valid == list(result.messages)


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-16")
@virtual_time
async def test_the_time_limit_keeps_the_results_that_had_come_and_closes_the_others() -> None:
    @tool
    async def wait(seconds: float) -> str:
        """Waits."""
        await asyncio.sleep(seconds)
        return f"waited {seconds}"

    log = Log()
    model = Scripted([call("wait", seconds=1.0), call("wait", seconds=60.0)], "hello")
    agent = Agent(model, tools=[wait], advisors=[log], limits=Limits(seconds=5.0))
    result = await agent.run("?")
    assert result.status == "limit"
    told = [(r.ok, r.text) for m in result.messages for r in m.tool_results]
    assert told == [
        (True, "waited 1.0"),
        (False, "Not finished. The time limit of 5 seconds is reached."),
    ]
    assert (await agent.run("hi")).text == "hello"
    check_transcript(model.requests[-1].messages)


@pytest.mark.rule("R-LOOP-3", "R-LOOP-5")
@virtual_time
async def test_the_time_limit_is_the_turn_s_and_is_not_renewed_by_a_re_entry() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        while response.status == "completed":
            request = request.again("again")
            response = await call_next(request)
        return response

    model = Scripted(Say(text="a", delay=1.0), repeat=True)
    agent = Agent(model, advisors=[Layer("again", turn=again)], limits=Limits(seconds=4.9))
    result = await agent.run("?")
    assert (result.status, asyncio.get_running_loop().time()) == ("limit", pytest.approx(4.9))


@pytest.mark.rule("R-LOOP-1", "R-LOOP-3")
@virtual_time
async def test_a_layer_that_swallows_the_stop_does_not_go_on_for_ever() -> None:
    swallowed = 0

    async def stubborn(request: Any, call_next: Any) -> Any:
        nonlocal swallowed
        try:
            return await call_next(request)
        except BaseException:
            swallowed += 1
            return request.respond("never mind")

    @tool
    async def wait() -> str:
        """Waits."""
        await asyncio.sleep(60)
        return "waited"

    model = Scripted(lambda request: call("wait"), repeat=True)
    agent = Agent(
        model, tools=[wait], advisors=[Layer("x", tool=stubborn)], limits=Limits(seconds=5)
    )
    result = await agent.run("?")
    assert (result.status, swallowed) == ("limit", 1)
    assert len(model.requests) == 1
    check_transcript(result.messages)


@pytest.mark.rule("R-LOOP-1", "R-LOOP-8")
@virtual_time
async def test_a_tool_that_swallows_the_caller_s_timeout_does_not_outlive_it() -> None:
    @tool
    async def wait() -> str:
        """Waits."""
        try:
            await asyncio.sleep(60)
        except BaseException:
            return "never mind"
        return "waited"

    model = Scripted(call("wait"), "done")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await Agent(model, tools=[wait]).run("?")
    assert len(model.requests) == 1


@pytest.mark.rule("R-LOOP-3")
@virtual_time
async def test_a_turn_within_its_time_is_left_alone() -> None:
    agent = Agent(Scripted(Say(text=["a", "b"], delay=1.0)), limits=Limits(seconds=3.5))
    assert (await agent.run("?")).status == "completed"
    await asyncio.sleep(60)


@pytest.mark.rule("R-LOOP-3")
async def test_the_token_limit_counts_what_was_used_and_stops_before_the_next_call() -> None:
    using = Usage(input=40, output=10)
    model = Scripted(lambda r: Say(calls=[call("look", at=str(r.round))], usage=using), repeat=True)
    result = await Agent(model, tools=[look], limits=Limits(tokens=100)).run("?")
    assert (result.status, len(model.requests)) == ("limit", 2)
    assert result.reason == "The budget of 100 tokens is used up."
    assert result.usage.total == 100
    check_transcript(result.messages)


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-15")
async def test_the_token_limit_stops_a_long_answer_near_it() -> None:
    model = Scripted(Say(text=["word"] * 11_000))
    result = await Agent(model, limits=Limits(tokens=100)).run("?")
    assert (result.status, result.reason) == ("limit", "The budget of 100 tokens is used up.")
    assert 90 <= len(result.text) / 4 <= 110


@pytest.mark.rule("R-LOOP-3")
async def test_the_cost_limit_stops_before_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def a_cent_a_call(spent: Any) -> float:
        return 0.01 * len(spent)

    for module in (agent_module, building):
        monkeypatch.setattr(module, "cost", a_cent_a_call)
    using = Usage(input=1, output=1)
    model = Scripted(lambda r: Say(calls=[call("look", at=str(r.round))], usage=using), repeat=True)
    result = await Agent(model, tools=[look], limits=Limits(cost=0.03)).run("?")
    assert (result.status, len(model.requests)) == ("limit", 3)
    assert result.reason == "The budget of $0.03 is used up."


@pytest.mark.rule("R-LOOP-3")
async def test_a_limit_is_no_exception_and_passes_every_turn_layer() -> None:
    seen: list[str] = []

    async def watch(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        seen.append(response.status)
        return response

    agent = Agent(
        looking_for_ever(),
        tools=[look],
        advisors=[Layer("watch", turn=watch)],
        limits=Limits(rounds=1),
    )
    assert (await agent.run("?")).status == "limit"
    assert seen == ["limit"]


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"rounds": 0}, r"rounds=0\): the limit is a whole number above 0"),
        ({"rounds": 2.5}, r"rounds=2.5\): the limit is a whole number"),
        ({"rounds": None}, r"rounds=None\)"),
        ({"rounds": True}, r"rounds=True\)"),
        ({"repeats": -1}, r"repeats=-1\)"),
        ({"seconds": 0}, r"seconds=0\): the limit is a number above 0"),
        ({"seconds": "5"}, r"seconds='5'\)"),
        ({"seconds": float("nan")}, r"seconds=nan\)"),
        ({"tokens": 1.5}, r"tokens=1.5\): the limit is a whole number"),
        ({"cost": -0.1}, r"cost=-0.1\)"),
    ],
)
def test_a_limit_that_nothing_could_run_under_is_refused_by_name(
    limits: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        Agent(Scripted(), limits=Limits(**limits))


def test_limits_of_every_allowed_kind_are_taken() -> None:
    Limits(rounds=1, seconds=0.5, tokens=1, cost=1, repeats=2)
    Limits(seconds=None, tokens=None, cost=None, repeats=None)


@pytest.mark.rule("R-LOOP-8", "R-ONION-5")
@pytest.mark.parametrize("streamed", [False, True])
@virtual_time
async def test_a_turn_layer_that_swallows_the_stop_answers_and_stops_nothing_after_the_turn(
    streamed: bool,
) -> None:
    async def swallow(request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except asyncio.CancelledError:
            return request.respond("I was told to stop.")

    log = Log()
    model = Scripted(Say(text=["a", "b"], delay=60.0))
    agent = Agent(model, advisors=[log, Layer("swallow", turn=swallow)])
    if streamed:
        turn = agent.stream("?")
        asyncio.get_running_loop().call_later(90, turn.cancel)
        result = await turn.result()
    else:
        task = asyncio.create_task(agent.run("?"))
        asyncio.get_running_loop().call_later(90, task.cancel)
        result = await task
    assert (result.status, result.text) == ("completed", "I was told to stop.")
    assert log.valid == list(result.messages)
    check_transcript(log.valid)
    await asyncio.sleep(1)  # nothing of the cancel is left in this task
