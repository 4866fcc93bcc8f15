"""Calls that fail: what the model is told, what is retried, what ends the turn."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, Retry, ToolError, tool
from retinue.chains.events import ToolFinished, ToolRetried, ToolStarted
from retinue.messages import ToolCall
from retinue.models.scripted import Scripted, call
from retinue.tools import Concurrent, Sequential
from tests.agent.log import Log
from tests.agent.toolbox import look, told
from tests.strict import check_transcript
from tests.virtual_time import virtual_time


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-5")
async def test_an_invented_tool_is_answered_with_the_valid_names_and_the_turn_goes_on() -> None:
    model = Scripted([call("glance", at="x"), call("look", at="y")], "done")
    result = await Agent(model, tools=[look, look.with_(name="peer")]).run("?")
    (ok, text), other = told(result)
    assert not ok
    assert text == "There is no tool 'glance'. The tools are: look, peer."
    assert other == (True, "y is here")
    assert result.text == "done"


@pytest.mark.rule("R-TOOL-2")
@pytest.mark.behaviour("B-LO-6")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [("{at:", "JSON"), ("{}", "at"), ('{"at": 1}', "at"), ('{"at": "x", "to": 1}', "to")],
)
async def test_wrong_arguments_are_named_and_the_body_does_not_run(
    arguments: str, named: str
) -> None:
    ran: list[str] = []

    @tool
    def act(at: str) -> str:
        """Acts."""
        ran.append(at)
        return at

    model = Scripted(ToolCall("c1", "act", arguments), "done")
    result = await Agent(model, tools=[act]).run("?")
    ((ok, text),) = told(result)
    assert not ok
    assert named in text
    assert ran == []
    assert result.text == "done"


class Control(BaseException):
    """Control flow of a library, outside Exception."""


@pytest.mark.rule("R-TOOL-5", "R-FAIL-1")
@pytest.mark.behaviour("B-LO-7")
@pytest.mark.parametrize("engine", [Concurrent, Sequential])
async def test_a_failed_call_does_not_cancel_its_siblings(engine: Any) -> None:
    @tool
    async def act(how: str) -> str:
        """Acts."""
        await asyncio.sleep(0)
        if how == "plain":
            raise ValueError("plain trouble")
        if how == "group":
            raise ExceptionGroup("both", [ValueError("left"), OSError("right")])
        if how == "control":
            raise Control("elsewhere")
        if how == "assert":
            raise AssertionError("it is not so")
        await asyncio.sleep(0)
        return f"{how} done"

    hows = ["plain", "first", "group", "control", "assert", "last"]
    model = Scripted([call("act", how=how) for how in hows], "done")
    result = await Agent(model, tools=[act], engine=engine()).run("?")
    given = told(result)
    assert [ok for ok, _ in given] == [False, True, False, False, False, True]
    for (_, text), part in zip(
        given, ["plain trouble", "first done", "left", "elsewhere", "it is not so", "last done"],
        strict=True,
    ):  # fmt: skip
        assert part in text
    assert "right" in given[2][1]
    assert result.text == "done"


@pytest.mark.rule("R-FAIL-1")
@pytest.mark.parametrize("fatal", [MemoryError("none left"), SystemExit(3)])
async def test_a_fatal_failure_is_raised_as_it_is_and_the_log_stays_whole(
    fatal: BaseException,
) -> None:
    @tool
    async def act(how: str) -> str:
        """Acts."""
        if how == "fatal":
            raise fatal
        return "done"

    log = Log()
    model = Scripted([call("act", how="well"), call("act", how="fatal")])
    agent = Agent(model, tools=[act], engine=Sequential(), advisors=[log])
    if isinstance(fatal, Exception):
        with pytest.raises(type(fatal)) as caught:
            await agent.run("?")
        assert caught.value is fatal
        check_transcript(log.valid)
        assert log.valid[2].tool_results[0].text == "done"
    else:
        # Any task that raises SystemExit ends its loop, so a thread is where it can be looked at.
        with pytest.raises(SystemExit) as left:
            await asyncio.to_thread(agent.run_sync, "?")
        assert left.value.code == 3


@pytest.mark.rule("R-FAIL-1")
async def test_what_an_exception_says_of_itself_comes_first() -> None:
    tried: list[str] = []

    @tool(retry=Retry(attempts=2, base=0))
    def act(how: str) -> str:
        """Acts."""
        tried.append(how)
        if how == "semantic":
            raise ToolError("bad words", failure="semantic")
        if how == "transient":
            raise ToolError("later", failure="transient")
        if how == "connection":
            raise ConnectionResetError("gone")
        raise ToolError("no key", failure="environment")

    hows = ["semantic", "transient", "connection", "environment"]
    result = await Agent(
        Scripted([call("act", how=how) for how in hows], "done"),
        tools=[act],
        engine=Sequential(),
    ).run("?")
    assert tried == [
        "semantic",
        "transient",
        "transient",
        "connection",
        "connection",
        "environment",
    ]
    assert [ok for ok, _ in told(result)] == [False] * 4
    assert result.text == "done"


@pytest.mark.rule("R-TOOL-10")
@virtual_time
async def test_a_retry_runs_the_layers_again_and_is_seen_by_the_reader_not_the_model() -> None:
    attempts: list[int] = []
    ran: list[str] = []

    async def watch(request: Any, call_next: Any) -> Any:
        attempts.append(request.attempt)
        return await call_next(request)

    @tool(retry=True)
    async def flaky(what: str) -> str:
        """Fails twice."""
        ran.append(what)
        if len(ran) < 3:
            raise ToolError(f"not yet ({len(ran)})", failure="transient", retry_after=7.0)
        return "at last"

    model = Scripted(call("flaky", what="x"), "done")
    agent = Agent(model, tools=[flaky], advisors=[Layer("watch", tool=watch)])
    turn = agent.stream("?")
    events = [event async for event in turn]
    assert asyncio.get_running_loop().time() == pytest.approx(14)
    assert (attempts, ran) == ([1, 2, 3], ["x"] * 3)
    retried = [event for event in events if isinstance(event, ToolRetried)]
    assert [(one.wait, one.error) for one in retried] == [
        (7.0, "ToolError: not yet (1)"), (7.0, "ToolError: not yet (2)"),
    ]  # fmt: skip
    assert sum(isinstance(event, ToolStarted) for event in events) == 1
    assert [e.text for e in events if isinstance(e, ToolFinished)] == ["at last"]
    assert [m.tool_results[0].text for m in model.requests[1].messages if m.tool_results] == [
        "at last"
    ]


@pytest.mark.rule("R-TOOL-10")
@pytest.mark.parametrize("failure", ["semantic", "environment"])
async def test_only_transient_failures_are_retried(failure: Any) -> None:
    ran: list[str] = []

    @tool(retry=True)
    def act() -> str:
        """Fails."""
        ran.append("act")
        raise ToolError("no", failure=failure)

    result = await Agent(Scripted(call("act"), "done"), tools=[act]).run("?")
    assert len(ran) == 1
    assert result.text == "done"


@pytest.mark.rule("R-TOOL-10")
async def test_a_tool_that_promises_nothing_is_not_retried() -> None:
    ran: list[str] = []

    @tool
    def act() -> str:
        """Fails."""
        ran.append("act")
        raise ConnectionResetError("gone")

    await Agent(Scripted(call("act"), "done"), tools=[act]).run("?")
    assert len(ran) == 1
