"""The gate: asked about each call of a batch before any of them runs."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, Proceed, Reject, Reply, ToolRequest, tool
from retinue.chains.events import ToolFinished, ToolStarted
from retinue.messages import ToolCall
from retinue.models.scripted import Scripted, call
from tests.agent.log import Log
from tests.agent.toolbox import look, told
from tests.strict import check_transcript


def batch() -> list[ToolCall]:
    return [call("look", at=at) for at in ("a", "b", "c", "d")]


def verdicts(request: ToolRequest) -> Any:
    arguments = request.arguments or {}
    return {"a": Proceed(), "b": Reject("not b"), "c": Reply({"c": 3}), "d": Proceed()}[
        arguments["at"]
    ]


@pytest.mark.rule("R-HITL-1")
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_gate_decides_call_by_call(is_async: bool) -> None:
    async def later(request: ToolRequest) -> Any:
        await asyncio.sleep(0)
        return verdicts(request)

    model = Scripted(batch(), "done")
    agent = Agent(model, tools=[look], gate=later if is_async else verdicts)
    result = await agent.run("?")
    assert told(result) == [
        (True, "a is here"), (False, "not b"), (True, '{"c":3}'), (True, "d is here"),
    ]  # fmt: skip
    check_transcript(model.requests[1].messages)
    assert result.text == "done"


@pytest.mark.rule("R-HITL-1", "R-LOOP-1")
async def test_every_call_is_asked_about_once_in_call_order_before_any_runs() -> None:
    notes: list[str] = []
    asking = 0

    async def gate(request: ToolRequest) -> Proceed:
        nonlocal asking
        asking += 1
        assert asking == 1, "two questions at once"
        await asyncio.sleep(0)
        notes.append(f"ask {(request.arguments or {})['name']}")
        asking -= 1
        return Proceed()

    @tool
    async def act(name: str) -> str:
        """Acts."""
        notes.append(f"run {name}")
        return name

    model = Scripted([call("act", name="a"), call("act", name="b")], "done")
    await Agent(model, tools=[act], gate=gate).run("?")
    assert notes == ["ask a", "ask b", "run a", "run b"]


@pytest.mark.rule("R-HITL-1")
async def test_a_retry_does_not_ask_again() -> None:
    asked: list[int] = []

    def gate(request: ToolRequest) -> Proceed:
        asked.append(request.attempt)
        return Proceed()

    tries: list[int] = []

    @tool(retry=2)
    def flaky() -> str:
        """Fails once."""
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionResetError("gone")
        return "there"

    result = await Agent(Scripted(call("flaky"), "ok"), tools=[flaky], gate=gate).run("?")
    assert (asked, told(result)) == ([1], [(True, "there")])


@pytest.mark.behaviour("B-PA-3")
@pytest.mark.rule("R-HITL-1")
async def test_a_gate_that_raises_pauses_and_lets_nothing_through() -> None:
    ran: list[str] = []

    @tool
    def act(name: str) -> str:
        """Acts."""
        ran.append(name)
        return name

    def gate(request: ToolRequest) -> Proceed:
        if (request.arguments or {})["name"] == "bad":
            raise LookupError("the policy server is away, token=abc")
        return Proceed()

    model = Scripted([call("act", name="good"), call("act", name="bad")], "done")
    result = await Agent(model, tools=[act], gate=gate).run("?")
    assert ran == []
    assert result.status == "paused"
    assert [(one.arguments, one.kind) for one in result.pending] == [({"name": "bad"}, "approval")]
    assert "LookupError" in result.pending[0].why
    assert "abc" not in result.pending[0].why


@pytest.mark.rule("R-HITL-1")
@pytest.mark.parametrize("verdict", [None, True, "yes"])
async def test_a_gate_that_answers_otherwise_is_a_fault_of_the_program(verdict: Any) -> None:
    ran: list[str] = []

    @tool
    def act() -> str:
        """Acts."""
        ran.append("act")
        return "acted"

    log = Log()
    agent = Agent(Scripted(call("act")), tools=[act], gate=lambda request: verdict, advisors=[log])
    with pytest.raises(ConfigError, match=r"The gate returned .* for 'act'; it must return"):
        await agent.run("?")
    assert ran == []
    check_transcript(log.valid)


@pytest.mark.rule("R-HITL-1")
async def test_a_call_that_the_gate_decides_never_reaches_the_tool_layers() -> None:
    seen: list[str] = []

    async def watch(request: Any, call_next: Any) -> Any:
        seen.append(request.arguments["at"])
        return await call_next(request)

    agent = Agent(
        Scripted(batch(), "done"),
        tools=[look],
        gate=verdicts,
        advisors=[Layer("watch", tool=watch)],
    )
    events = [event async for event in agent.stream("?")]
    assert seen == ["a", "d"]
    started = {e.call_id for e in events if isinstance(e, ToolStarted)}
    finished = [e for e in events if isinstance(e, ToolFinished)]
    assert len(started) == 2
    assert len(finished) == 4


@pytest.mark.rule("R-HITL-1", "R-LOOP-1")
async def test_what_the_gate_replied_stands_even_where_no_round_is_left() -> None:
    result = await Agent(
        Scripted(batch()), tools=[look], gate=verdicts, limits=Limits(rounds=1)
    ).run("?")
    not_run = (False, "Not run. The limit of 1 round is reached.")
    assert result.status == "limit"
    assert told(result) == [not_run, (False, "not b"), (True, '{"c":3}'), not_run]


@pytest.mark.rule("R-HITL-1", "R-TOOL-7")
async def test_a_rejected_call_keeps_a_batch_from_being_the_answer() -> None:
    direct = look.with_(return_direct=True)
    model = Scripted([call("look", at="a"), call("look", at="b")], "in my words")
    result = await Agent(model, tools=[direct], gate=verdicts).run("?")
    assert result.text == "in my words"


@pytest.mark.rule("R-HITL-1", "R-TOOL-4")
async def test_a_gate_sees_the_state_the_context_and_a_call_of_no_known_tool() -> None:
    seen: list[tuple[Any, Any, Any]] = []

    def gate(request: ToolRequest) -> Proceed:
        seen.append((request.tool, dict(request.state), dict(request.context)))
        return Proceed()

    model = Scripted([call("glance"), call("look", at="a")], "done")
    agent = Agent(model, tools=[look], gate=gate)
    await agent.run("?", state={"s": 1}, context={"c": 2})
    assert seen == [(None, {"s": 1}, {"c": 2}), (look, {"s": 1}, {"c": 2})]
