"""Layers that answer in place of what is inside them, at each level and through each way in."""

import asyncio
from typing import Any

import pytest

from retinue import (
    Agent,
    ChatResponse,
    Layer,
    RoundResponse,
    ToolResponse,
    TurnResponse,
    assistant,
    tool,
)
from retinue.chains.events import ToolFinished, TurnEnded
from retinue.messages import Text, ToolResult
from retinue.models.scripted import Say, Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look
from tests.strict import check_transcript

LEVELS = ["turn", "round", "chat"]


def guard(hook: str, function: Any) -> Layer:
    hooks: dict[str, Any] = {hook: function}
    return Layer("guard", **hooks)


async def responding(request: Any, call_next: Any) -> Any:
    return request.respond("a kept answer", reason="it was asked before")


async def refusing(request: Any, call_next: Any) -> Any:
    return request.refuse("rule 7", answer="I may not say.")


async def silently_refusing(request: Any, call_next: Any) -> Any:
    return request.refuse("rule 7")


@pytest.mark.rule("R-ONION-7")
@pytest.mark.behaviour("B-ON-4")
@pytest.mark.parametrize("hook", LEVELS)
async def test_a_layer_that_responds_completes_the_turn_without_the_model(hook: str) -> None:
    model, log = Scripted(), Log()
    result = await Agent(model, advisors=[log, guard(hook, responding)]).run("?")
    assert (result.status, result.text) == ("completed", "a kept answer")
    assert (result.blocked_by, result.reason) == ("guard", "it was asked before")
    assert model.requests == []
    assert [m.role for m in result.messages] == ["user", "assistant"]
    assert log.valid == list(result.messages)


@pytest.mark.rule("R-ONION-7", "R-LOOP-4")
@pytest.mark.behaviour("B-ON-4")
@pytest.mark.parametrize("hook", LEVELS)
async def test_a_layer_that_refuses_blocks_the_turn_and_nothing_of_it_is_kept(hook: str) -> None:
    model, log = Scripted("hello"), Log()
    blocking = Agent(model, advisors=[log, guard(hook, refusing)])
    result = await blocking.run("the secret?")
    assert (result.status, result.text) == ("blocked", "I may not say.")
    assert (result.blocked_by, result.reason) == ("guard", "rule 7")
    assert model.requests == []
    assert log.valid == []
    free = blocking.with_(advisors=[log])
    assert (await free.run("hi")).text == "hello"
    assert [m.text for m in model.requests[0].messages] == ["hi"]


@pytest.mark.rule("R-ONION-7")
@pytest.mark.parametrize("hook", LEVELS)
async def test_a_refusal_without_an_answer_has_no_message(hook: str) -> None:
    result = await Agent(Scripted(), advisors=[guard(hook, silently_refusing)]).run("?")
    assert (result.status, result.text) == ("blocked", "")
    assert result.blocked_by == "guard"


@pytest.mark.rule("R-ONION-7")
@pytest.mark.behaviour("B-ON-4")
async def test_a_tool_layer_that_refuses_tells_the_model_and_the_turn_goes_on() -> None:
    ran: list[str] = []

    @tool
    def erase(path: str) -> str:
        """Erases."""
        ran.append(path)
        return "erased"

    async def refuse(request: Any, call_next: Any) -> Any:
        if request.arguments["path"] == "/":
            return request.refuse("not the root")
        return await call_next(request)

    model = Scripted([call("erase", path="/"), call("erase", path="/old")], "done")
    agent = Agent(model, tools=[erase], advisors=[guard("tool", refuse)])
    turn = agent.stream("clean up")
    finished = [event async for event in turn if isinstance(event, ToolFinished)]
    assert ran == ["/old"]
    assert [(one.ok, one.blocked_by, one.text) for one in finished if not one.ok] == [
        (False, "guard", "not the root")
    ]
    results = [m.tool_results[0] for m in model.requests[1].messages if m.role == "tool"]
    assert [(one.ok, one.text) for one in results] == [(False, "not the root"), (True, "erased")]


@pytest.mark.rule("R-ONION-7")
async def test_a_tool_layer_may_give_the_result_itself() -> None:
    async def cached(request: Any, call_next: Any) -> Any:
        return request.respond({"cached": True})

    model = Scripted(call("look", at="it"), "done")
    result = await Agent(model, tools=[look], advisors=[guard("tool", cached)]).run("?")
    assert result.messages[2].tool_results[0].text == '{"cached":true}'
    assert result.messages[2].tool_results[0].ok


async def test_a_tool_layer_may_hand_out_the_response_that_it_kept_from_another_call() -> None:
    kept: list[ToolResponse] = []

    async def cached(request: Any, call_next: Any) -> Any:
        if not kept:
            kept.append(await call_next(request))
        return kept[0]

    model = Scripted(call("look", at="it"), call("look", at="it"), "done")
    agent = Agent(model, tools=[look], advisors=[guard("tool", cached)])
    result = await agent.run("?")
    check_transcript(result.messages)
    assert [m.text for m in result.messages if m.role == "tool"] == ["", ""]
    assert [r.text for m in result.messages for r in m.tool_results] == ["it is here"] * 2


async def _plain_turn(request: Any, call_next: Any) -> TurnResponse:
    return TurnResponse(id=request.turn_id, message=assistant("plain"))


async def _plain_round(request: Any, call_next: Any) -> RoundResponse:
    return RoundResponse(messages=request.messages, message=assistant("plain"), status="completed")


async def _plain_chat(request: Any, call_next: Any) -> ChatResponse:
    return ChatResponse(message=assistant("plain"))


@pytest.mark.rule("R-ONION-7", "R-STREAM-8")
@pytest.mark.parametrize(
    ("hook", "function"),
    [("turn", _plain_turn), ("round", _plain_round), ("chat", _plain_chat)],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_response_that_a_layer_makes_by_hand_does_as_well(
    hook: str, function: Any, streamed: bool
) -> None:
    log = Log()
    agent = Agent(Scripted(), advisors=[log, guard(hook, function)])
    result = await (agent.stream("?").result() if streamed else agent.run("?"))
    assert (result.status, result.text, result.blocked_by) == ("completed", "plain", "guard")
    assert [m.text for m in result.messages] == ["?", "plain"]
    assert log.valid == list(result.messages)


async def test_a_tool_response_that_a_layer_makes_by_hand_does_as_well() -> None:
    async def by_hand(request: Any, call_next: Any) -> ToolResponse:
        return ToolResponse(result=ToolResult(request.call.id, "look", (Text("by hand"),)))

    model = Scripted(call("look", at="it"), "done")
    result = await Agent(model, tools=[look], advisors=[guard("tool", by_hand)]).run("?")
    assert result.messages[2].tool_results[0].text == "by hand"


@pytest.mark.rule("R-ONION-7")
async def test_a_layer_may_answer_with_tool_calls_in_place_of_the_model() -> None:
    async def plan(request: Any, call_next: Any) -> Any:
        if request.round == 1:
            return request.respond(assistant(calls=[call("look", at="it")]))
        return await call_next(request)

    model = Scripted("it is here, I see")
    result = await Agent(model, tools=[look], advisors=[guard("chat", plan)]).run("?")
    assert result.text == "it is here, I see"
    assert result.blocked_by is None
    check_transcript(model.requests[0].messages)
    assert [m.role for m in model.requests[0].messages] == ["user", "assistant", "tool"]


@pytest.mark.rule("R-ONION-7")
async def test_a_guard_of_the_answer_takes_back_what_was_recorded() -> None:
    async def check(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        if "secret" in response.text:
            return request.refuse("a secret", answer="I may not say.")
        return response

    log = Log()
    agent = Agent(Scripted("the secret is 42", "hello"), advisors=[log, guard("turn", check)])
    result = await agent.run("what is it?")
    assert (result.status, result.text) == ("blocked", "I may not say.")
    assert log.valid == []
    assert (await agent.run("hi")).status == "completed"
    assert [m.text for m in log.valid] == ["hi", "hello"]


@pytest.mark.rule("R-ONION-7")
async def test_the_outermost_of_two_guards_is_the_one_that_is_named() -> None:
    agent = Agent(
        Scripted(),
        advisors=[
            Layer("left", turn=silently_refusing),
            Layer("right", turn=silently_refusing),
        ],
    )
    assert (await agent.run("?")).blocked_by == "left"


class TestEveryWayIn:
    """The same block holds however the turn is begun."""

    @pytest.mark.behaviour("B-ON-5")
    @pytest.mark.parametrize("hook", LEVELS)
    async def test_run_and_stream(self, hook: str) -> None:
        model = Scripted()
        agent = Agent(model, advisors=[guard(hook, refusing)])
        ran = await agent.run("?")
        events = [event async for event in agent.stream("?")]
        end = events[-1]
        assert isinstance(end, TurnEnded)
        assert (ran.status, ran.text, ran.blocked_by, ran.reason) == (
            end.status, end.text, end.blocked_by, end.reason,
        ) == ("blocked", "I may not say.", "guard", "rule 7")  # fmt: skip
        assert model.requests == []

    @pytest.mark.behaviour("B-ON-5")
    @pytest.mark.parametrize("hook", LEVELS)
    async def test_run_sync(self, hook: str) -> None:
        model = Scripted()
        agent = Agent(model, advisors=[guard(hook, refusing)])
        result = await asyncio.to_thread(agent.run_sync, "?")
        assert (result.status, result.blocked_by) == ("blocked", "guard")
        assert model.requests == []

    @pytest.mark.behaviour("B-ON-5")
    @pytest.mark.parametrize("hook", LEVELS)
    async def test_a_sub_agent(self, hook: str) -> None:
        child = Agent(Scripted(), name="child", advisors=[guard(hook, refusing)])
        model = Scripted(call("child", task="tell"), "it would not")
        result = await Agent(model, tools=[child.as_tool()]).run("?")
        (told,) = result.messages[2].tool_results
        assert not told.ok
        assert "child ended as blocked: rule 7" in told.text
        assert result.text == "it would not"


@pytest.mark.rule("R-LOOP-4")
async def test_every_turn_layer_sees_a_blocked_turn_and_who_blocked_it() -> None:
    seen: list[tuple[str, str | None]] = []

    async def watch(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        seen.append((response.status, response.blocked_by))
        return response

    agent = Agent(
        Scripted(Say(text="never")), advisors=[Layer("watch", turn=watch), guard("chat", refusing)]
    )
    await agent.run("?")
    assert seen == [("blocked", "guard")]
