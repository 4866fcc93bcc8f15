"""Turns that pause for answers and go on from plain data, here without any store (R-HITL)."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from retinue import (
    Agent,
    Approve,
    ConfigError,
    Layer,
    Pause,
    Proceed,
    Reject,
    Reply,
    Retry,
    ToolReturn,
    tool,
)
from retinue.chains.events import Paused, ToolFinished, TurnEnded
from retinue.errors import ConversationNotFound
from retinue.messages import ToolCall
from retinue.models.scripted import Say, Scripted, call
from retinue.tools import Answer, ask_user
from tests.agent.reading import read
from tests.agent.till import Till, asking, later
from tests.agent.toolbox import told
from tests.strict import check_transcript


def batch() -> list[ToolCall]:
    return [call("pay", amount=1), call("count"), call("pay", amount=2), call("pay", amount=3)]


@pytest.mark.rule("R-HITL-1", "R-HITL-2", "R-LOOP-1")
async def test_a_sensitive_call_pauses_the_turn_and_nothing_of_its_batch_has_run() -> None:
    till = Till()
    result = await asking(Scripted(batch()), till).run("Pay.")
    assert result.status == "paused"
    assert till.did == []
    assert [(one.tool, one.kind, one.arguments) for one in result.pending] == [
        ("pay", "approval", {"amount": 1}),
        ("pay", "approval", {"amount": 2}),
        ("pay", "approval", {"amount": 3}),
    ]
    assert result.pending[0].answers == ("Approve", "Reject", "Reply")
    assert "amount" in (result.pending[0].parameters or {})["properties"]


async def test_without_a_gate_sensitive_tools_run() -> None:
    till = Till()
    agent = Agent(Scripted(call("pay", amount=1), "done"), tools=till.tools)
    assert (await agent.run("Pay.")).text == "done"
    assert till.did == ["pay 1"]


def answers(ids: Sequence[str]) -> dict[str, Answer]:
    return {ids[0]: Approve(), ids[1]: Reject("not two"), ids[2]: Reply("three, by hand")}


PLANS = [*itertools.permutations([[0], [1], [2]]), [[2, 1], [0]], [[0, 1, 2]]]


@pytest.mark.behaviour("B-PA-1", "B-PA-2")
@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize("plan", PLANS, ids=str)
async def test_answers_may_come_in_any_order_apart_and_together(plan: Any) -> None:
    till = Till()
    model = Scripted(batch(), "done")
    agent = asking(model, till)
    result = await agent.run("Pay.")
    given = answers([one.id for one in result.pending])
    ids = list(given)
    for step in plan:
        assert result.status == "paused"
        assert till.did == []
        result = await agent.resume(later(result), {ids[at]: given[ids[at]] for at in step})
    assert result.text == "done"
    assert sorted(till.did) == ["count", "pay 1"]
    assert told(result) == [
        (True, "paid 1"), (True, "counted"), (False, "not two"), (True, "three, by hand"),
    ]  # fmt: skip
    assert len(model.requests) == 2
    check_transcript(model.requests[1].messages)


async def test_the_gate_is_asked_about_each_call_once_also_over_a_pause() -> None:
    asked: list[Any] = []
    till = Till()

    def gate(request: Any) -> Pause | Proceed:
        asked.append(request.call.name)
        return Pause("Really?") if request.tool.sensitive else Proceed()

    agent = Agent(Scripted(batch()[:2], "done"), tools=till.tools, gate=gate)
    result = await agent.run("Pay.")
    assert result.pending[0].why == "Really?"
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert (result.text, asked) == ("done", ["pay", "count"])


@pytest.mark.behaviour("B-PA-4")
async def test_what_was_approved_is_what_runs() -> None:
    till = Till()
    agent = asking(Scripted(call("pay", amount=1), "done"), till)
    result = await agent.run("Pay.")
    events = await read(
        await agent.stream_resume(later(result), {result.pending[0].id: Approve({"amount": 70})})
    )
    assert till.did == ["pay 70"]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].text == "done"


@pytest.mark.behaviour("B-PA-4")
async def test_a_layer_that_changes_approved_arguments_asks_again() -> None:
    till = Till()

    async def double(request: Any, call_next: Any) -> Any:
        amount = request.arguments.get("amount", 0)
        return await call_next(request.with_(arguments={"amount": max(amount, 100)}))

    agent = asking(
        Scripted([call("pay", amount=1)], "done"), till, advisors=[Layer("more", tool=double)]
    )
    result = await agent.run("Pay.")
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert (result.status, till.did) == ("paused", [])
    assert [one.arguments for one in result.pending] == [{"amount": 100}]
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert (result.text, till.did) == ("done", ["pay 100"])


async def test_calls_that_cannot_run_are_nobody_s_to_approve() -> None:
    till = Till()
    calls = [call("pay", amount="much"), call("paid"), ToolCall("c3", "pay", "[")]
    result = await asking(Scripted(calls, "done"), till).run("Pay.")
    assert result.text == "done"
    assert [ok for ok, _ in told(result)] == [False, False, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nobody": Approve()}, r"No call 'nobody' waits .*; those that do: 'c1'"),
        ({"c1": Retry()}, r"'c1' of 'pay' \(approval\) takes Approve, Reject, Reply, not Retry"),
        ({"c1": Approve({"amount": "much"})}, r"Approve\(args=...\) for the call 'c1': .*amount"),
    ],
)
async def test_answers_that_fit_nothing_are_refused_and_the_pause_stands(
    given: Mapping[str, Answer], message: str
) -> None:
    till = Till()
    agent = asking(Scripted(ToolCall("c1", "pay", '{"amount": 1}'), "done"), till)
    result = await agent.run("Pay.")
    with pytest.raises(ConfigError, match=message):
        await agent.resume(later(result), given)
    assert till.did == []
    assert (await agent.resume(later(result), {"c1": Approve()})).text == "done"


@pytest.mark.rule("R-HITL-4")
@pytest.mark.behaviour("B-PA-6")
async def test_a_resumed_turn_goes_through_the_turn_chain_and_is_validated() -> None:
    seen: list[bool] = []

    async def valid(request: Any, call_next: Any) -> Any:
        seen.append(request.resumed)
        response = await call_next(request)
        if response.status == "completed" and response.text != "42":
            response = await call_next(request.again("Just the number."))
        return response

    till = Till()
    model = Scripted(call("pay", amount=1), "It is 42.", "42")
    agent = asking(model, till, advisors=[Layer("valid", turn=valid)])
    result = await agent.run("Pay.")
    result = await agent.resume(later(result), {result.pending[0].id: Approve()})
    assert (result.text, len(model.requests), seen) == ("42", 3, [False, True])
    check_transcript(model.requests[2].messages)


async def test_a_pause_is_the_last_event_but_one_and_tells_what_is_pending() -> None:
    till = Till()
    events = await read(asking(Scripted(Say(text="I pay.", calls=batch())), till).stream("Pay."))
    assert isinstance(events[-2], Paused)
    assert len(events[-2].pending) == 3
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].status == "paused"
    assert [one for one in events if isinstance(one, ToolFinished)] == []


@pytest.mark.behaviour("B-PA-9")
@pytest.mark.rule("R-HITL-3", "R-LOOP-2")
async def test_an_environment_failure_pauses_and_a_retry_runs_only_the_failed_call() -> None:
    did: list[str] = []
    broken = [True]

    @tool
    def write(name: str) -> str:
        """Writes."""
        did.append(name)
        if name == "bad" and broken[0]:
            raise PermissionError("read-only")
        return f"wrote {name}"

    calls = [call("write", name="good"), call("write", name="bad"), call("write", name="last")]
    model = Scripted(calls, "done")
    agent = Agent(model, tools=[write], gate="sensitive")
    result = await agent.run("Write.")
    assert [(one.kind, one.answers) for one in result.pending] == [
        ("environment", ("Retry", "Proceed"))
    ]
    assert sorted(did) == ["bad", "good", "last"]
    paused, did[:], broken[0] = later(result), [], False
    result = await agent.resume(paused, {result.pending[0].id: Retry()})
    assert (result.text, did) == ("done", ["bad"])
    assert [text for _, text in told(result)] == ["wrote good", "wrote bad", "wrote last"]
    check_transcript(model.requests[1].messages)


@pytest.mark.rule("R-HITL-3", "R-HITL-6")
async def test_proceed_goes_on_with_the_failure_and_the_writes_of_the_others() -> None:
    @tool
    def write(name: str) -> ToolReturn:
        """Writes."""
        if name == "bad":
            raise PermissionError("read-only")
        return ToolReturn("wrote", writes={"last": name})

    agent = Agent(
        Scripted([call("write", name="good"), call("write", name="bad")], "done"),
        tools=[write],
        gate="sensitive",
    )
    result = await agent.run("Write.")
    assert dict(result.state) == {}
    result = await agent.resume(later(result), {result.pending[0].id: Proceed()})
    assert (result.text, dict(result.state)) == ("done", {"last": "good"})
    assert [ok for ok, _ in told(result)] == [True, False]


@pytest.mark.rule("R-HITL-6", "R-TOOL-7")
async def test_a_resumed_batch_may_be_the_answer_itself() -> None:
    @tool(sensitive=True, return_direct=True)
    def fetch(name: str) -> str:
        """Fetches."""
        return f"the {name}"

    model = Scripted([call("fetch", name="a"), call("fetch", name="b")])
    agent = Agent(model, tools=[fetch], gate="sensitive")
    result = await agent.run("Fetch.")
    result = await agent.resume(later(result), {one.id: Approve() for one in result.pending})
    assert (result.text, len(model.requests)) == ("the a\nthe b", 1)


async def test_the_model_asks_the_user_and_an_external_tool_runs_elsewhere() -> None:
    @tool(asks="external")
    def pick(kind: str) -> str:
        """Lets the user pick a file."""
        raise AssertionError("it runs elsewhere")

    model = Scripted([call("ask_user", question="Which?"), call("pick", kind="pdf")], "done")
    agent = Agent(model, tools=[ask_user(), pick])
    result = await agent.run("Go.")
    first, second = result.pending
    assert [(one.kind, one.answers) for one in result.pending] == [
        ("question", ("Reply", "Reject")), ("external", ("Reply", "Reject")),
    ]  # fmt: skip
    assert first.arguments == {"question": "Which?"}
    result = await agent.resume(
        later(result), {first.id: Reply("the red one"), second.id: Reject("The user cancelled.")}
    )
    assert told(result) == [(True, "the red one"), (False, "The user cancelled.")]


@pytest.mark.behaviour("B-PA-8")
@pytest.mark.rule("R-TOOL-12")
async def test_a_sub_agent_that_pauses_pauses_its_parent_and_the_resume_reaches_it() -> None:
    till = Till()
    inner = Scripted(call("pay", amount=1), "paid it")
    child = Agent(inner, name="child", tools=till.tools, gate="sensitive")
    outer = Scripted([call("child", task="pay"), call("count")], "all done")
    parent = Agent(outer, tools=[child.as_tool(), till.tools[1]])
    result = await parent.run("Go.")
    assert (result.status, till.did) == ("paused", ["count"])
    (one,) = result.pending
    assert one.id.count("/") == 1
    result = await parent.resume(later(result), {one.id: Approve()})
    assert (result.text, till.did) == ("all done", ["count", "pay 1"])
    assert told(result) == [(True, "paid it"), (True, "counted")]
    assert (len(inner.requests), len(outer.requests)) == (2, 2)
    check_transcript(inner.requests[1].messages)


@pytest.mark.behaviour("B-PA-4")
@pytest.mark.rule("R-TOOL-12")
async def test_edited_arguments_of_a_sub_agents_call_are_checked_by_its_own_tool() -> None:
    @tool(name="pay")
    def pay_in_words(words: str) -> str:
        """Pays."""
        return words

    till = Till()
    child = Agent(
        Scripted(call("pay", amount=1), "paid it"), name="child", tools=till.tools, gate="sensitive"
    )
    outer = Scripted(call("child", task="pay"), "all done")
    parent = Agent(outer, tools=[child.as_tool(), pay_in_words])
    result = await parent.run("Go.")
    (one,) = result.pending
    result = await parent.resume(later(result), {one.id: Approve({"amount": 2})})
    assert (result.text, till.did) == ("all done", ["pay 2"])


@pytest.mark.rule("R-MEM-9")
@pytest.mark.behaviour("B-PA-5")
async def test_a_snapshot_of_another_owner_is_not_found() -> None:
    till = Till()
    agent = asking(Scripted(call("pay", amount=1), "done"), till)
    result = await agent.run("Pay.", owner="ada")
    answers = {result.pending[0].id: Approve()}
    with pytest.raises(ConversationNotFound):
        await agent.resume(later(result), answers, owner="bob")
    assert till.did == []
    assert (await agent.resume(later(result), answers, owner="ada")).text == "done"
