"""Pauses that a memory keeps: who goes on with them, how often, and what stays in the log."""

import itertools
from typing import Any

import pytest

from retinue import Agent, Approve, ConfigError, Reject, Reply, Retry, StoreError, ToolContext, tool
from retinue.errors import ConversationNotFound, PauseNotFound, SnapshotError
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory, Store, Timeline
from retinue.tools import Answer
from tests.advisors.pausing import Desk
from tests.advisors.talking import kept, layer, sent, strictly
from tests.agent.till import Till, asking
from tests.agent.toolbox import told

PLANS = [*itertools.permutations([[0], [1], [2]]), [[2, 1], [0]], [[0, 1, 2]]]


@pytest.mark.behaviour("B-PA-1", "B-PA-2")
@pytest.mark.rule("R-HITL-2", "R-HITL-3")
@pytest.mark.parametrize("plan", PLANS, ids=str)
async def test_each_answer_may_reach_another_agent(store: Store, plan: Any) -> None:
    desk = Desk(store)
    ids = await desk.paused()
    given: list[Answer] = [Approve(), Reject("not two"), Reply("three, by hand")]
    model = Scripted("done")
    result = None
    for step in plan:
        waiting = [one.id for one in await desk.agent().pending("c")]
        assert {ids[at] for at in step} <= set(waiting)
        assert desk.till.did == []
        result = await desk.agent(model).resume("c", {ids[at]: given[at] for at in step})
    assert result is not None
    assert (result.text, sorted(desk.till.did)) == ("done", ["count", "pay 1"])
    assert told(result) == [
        (True, "paid 1"), (True, "counted"), (False, "not two"), (True, "three, by hand"),
    ]  # fmt: skip
    strictly(model)
    assert await desk.agent().pending("c") == ()
    last = Scripted("yes")
    await desk.agent(last).run("sure?", conversation="c")
    strictly(last)
    assert sent(last) == [
        "user: Pay.", "assistant: +pay +count +pay +pay", "tool: paid 1", "tool: counted",
        "tool: not two", "tool: three, by hand", "assistant: done", "user: sure?",
    ]  # fmt: skip


@pytest.mark.behaviour("B-PA-5")
@pytest.mark.rule("R-HITL-4", "R-MEM-9")
async def test_a_pause_is_used_up_once_and_only_its_owner_finds_it(store: Store) -> None:
    desk = Desk(store)
    agent = desk.agent(call("pay", amount=1), "done", "more")
    result = await agent.run("Pay.", conversation="c", owner="ada")
    answer = {result.pending[0].id: Approve()}
    for owner in ("bob", None):
        with pytest.raises(ConversationNotFound):
            await agent.resume("c", answer, owner=owner)
        with pytest.raises(ConversationNotFound):
            await agent.pending("c", owner=owner)
    with pytest.raises(PauseNotFound, match="No turn of conversation 'd' waits"):
        await agent.resume("d", answer, owner="ada")
    assert await agent.pending("d", owner="ada") == ()
    assert (await agent.resume("c", answer, owner="ada")).text == "done"
    with pytest.raises(PauseNotFound, match="No turn of conversation 'c' waits"):
        await agent.resume("c", answer, owner="ada")
    with pytest.raises(PauseNotFound, match="has been gone on with elsewhere; nothing was done"):
        await agent.resume(result.snapshot or "", answer, owner="ada")
    assert desk.till.did == ["pay 1"]
    assert (await agent.run("?", conversation="c", owner="ada")).text == "more"


@pytest.mark.behaviour("B-PA-5")
async def test_an_answer_to_a_pause_that_has_become_another_is_refused(store: Store) -> None:
    desk = Desk(store)
    result = await desk.agent([call("pay", amount=1), call("pay", amount=2)]).run(
        "Pay.", conversation="c"
    )
    first, second = result.pending
    await desk.agent().resume("c", {first.id: Approve()})
    with pytest.raises(PauseNotFound):
        await desk.agent("done").resume(result.snapshot or "", {second.id: Approve()})
    assert desk.till.did == []
    assert [one.id for one in await desk.agent().pending("c")] == [second.id]


@pytest.mark.rule("R-HITL-5")
async def test_a_new_message_closes_the_pause_in_the_log(store: Store) -> None:
    desk = Desk(store)
    ids = await desk.paused()
    model = Scripted("as you like")
    agent = desk.agent(model)
    assert (await agent.run("Never mind.", conversation="c")).text == "as you like"
    strictly(model)
    closed = ["tool: Not run: a new message came in place of an answer to this call."] * 4
    assert await kept(store) == [
        "user: Pay.", "assistant: +pay +count +pay +pay", *closed,
        "user: Never mind.", "assistant: as you like",
    ]  # fmt: skip
    assert await agent.pending("c") == ()
    with pytest.raises(PauseNotFound):
        await agent.resume("c", {ids[0]: Approve()})
    assert desk.till.did == []


async def test_a_message_that_is_no_new_one_leaves_the_pause(store: Store) -> None:
    desk = Desk(store)
    first = desk.agent("hello", call("pay", amount=1))
    said = await first.run("hi", conversation="c")
    await first.run("Pay.", conversation="c")
    with pytest.raises(ConfigError, match="All messages of the input are answered already"):
        await desk.agent("x").run(said.messages, conversation="c")
    assert [one.tool for one in await desk.agent().pending("c")] == ["pay"]


# -- what goes wrong -------------------------------------------------------------------------------


class Failing:
    """Passes all on, but for one kind of write that fails as often as it is told."""

    def __init__(self, store: Store, write: str, times: int = 1) -> None:
        self._store = store
        self._write = write
        self._left = times

    def __getattr__(self, name: str) -> Any:
        if name == self._write and self._left:
            self._left -= 1
            return self._fail
        return getattr(self._store, name)

    async def _fail(self, *args: Any, **options: Any) -> None:
        raise StoreError("The disk is full.")


@pytest.mark.rule("R-HITL-2", "R-FAIL-3")
async def test_a_pause_that_cannot_be_kept_fails_the_turn_and_leaves_a_log_that_works(
    store: Store,
) -> None:
    failing: Any = Failing(store, "hold")
    desk = Desk(failing)
    with pytest.raises(StoreError, match="The disk is full"):
        await desk.agent([call("pay", amount=1), call("count")]).run("Pay.", conversation="c")
    assert desk.till.did == []
    assert await desk.agent().pending("c") == ()
    model = Scripted("hello again")
    await desk.agent(model).run("hi", conversation="c")
    strictly(model)
    assert [line[:28] for line in sent(model)] == [
        "user: Pay.", "assistant: +pay +count", *["tool: Not finished. The disk"] * 2, "user: hi",
    ]  # fmt: skip


@pytest.mark.rule("R-HITL-2", "R-HITL-3")
@pytest.mark.parametrize("write", ["hold", "append", "release"])
async def test_a_resume_whose_store_fails_can_be_made_again(store: Store, write: str) -> None:
    ids = await Desk(store).paused()
    failing: Any = Failing(store, write)
    desk = Desk(failing)
    given: dict[str, Answer] = {ids[0]: Approve(), ids[1]: Reject("no"), ids[2]: Reply("by hand")}
    some = {ids[0]: Approve()} if write == "hold" else given
    with pytest.raises(StoreError, match="The disk is full"):
        await desk.agent("done").resume("c", some)
    assert desk.till.did == []
    assert [one.id for one in await desk.agent().pending("c")] == ids
    said = ["tool: no", "tool: by hand"] if write == "release" else []
    assert await kept(store) == ["user: Pay.", "assistant: +pay +count +pay +pay", *said]
    given[ids[1]], given[ids[2]] = Reply("two, by hand"), Reject("not three")
    model = Scripted("done", "sure")
    result = await desk.agent(model).resume("c", given)
    assert told(result) == [
        (True, "paid 1"), (True, "counted"), (True, "two, by hand"), (False, "not three"),
    ]  # fmt: skip
    await desk.agent(model).run("sure?", conversation="c")
    strictly(model)
    assert sent(model)[2:6] == [
        "tool: paid 1", "tool: counted", "tool: two, by hand", "tool: not three",
    ]  # fmt: skip


@pytest.mark.rule("R-HITL-4")
@pytest.mark.parametrize("how", ["raise", "refuse"])
async def test_a_resume_that_ends_before_its_calls_run_leaves_the_pause(
    store: Store, how: str
) -> None:
    async def guard(request: Any, call_next: Any) -> Any:
        if how == "raise":
            raise ZeroDivisionError
        return request.refuse("You may not.")

    desk = Desk(store)
    ids = await desk.paused()
    agent = desk.agent("x", advisors=[layer("guard", "turn", guard)])
    answers = dict.fromkeys(ids, Approve())
    if how == "raise":
        with pytest.raises(ZeroDivisionError):
            await agent.resume("c", answers)
    else:
        assert (await agent.resume("c", answers)).status == "blocked"
    before = await kept(store)
    assert before == ["user: Pay.", "assistant: +pay +count +pay +pay"]
    assert (await desk.agent("done").resume("c", answers)).text == "done"


async def test_a_resume_that_is_cancelled_before_its_calls_run_leaves_the_pause(
    store: Store,
) -> None:
    desk = Desk(store)
    ids = await desk.paused()
    answers = dict.fromkeys(ids, Approve())
    turn = await desk.agent("x").stream_resume("c", answers)
    turn.cancel()
    assert (await turn.result()).status == "cancelled"
    assert (await desk.agent("done").resume("c", answers)).text == "done"


@pytest.mark.rule("R-ONION-7", "R-HITL-4")
async def test_a_layer_that_answers_on_resume_ends_the_pause(store: Store) -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        return request.respond("It is closed for today.")

    desk = Desk(store)
    ids = await desk.paused()
    agent = desk.agent(advisors=[layer("instead", "turn", instead)])
    result = await agent.resume("c", dict.fromkeys(ids, Approve()))
    assert (result.text, desk.till.did) == ("It is closed for today.", [])
    with pytest.raises(PauseNotFound):
        await desk.agent().resume("c", dict.fromkeys(ids, Approve()))
    model = Scripted("yes")
    await desk.agent(model).run("sure?", conversation="c")
    strictly(model)
    assert sent(model)[2:6] == ["tool: Not run: the turn ended before."] * 4


# -- failures that a person mends, and forks -------------------------------------------------------


@pytest.mark.behaviour("B-PA-9")
@pytest.mark.rule("R-HITL-3", "R-HITL-6", "R-MEM-1")
@pytest.mark.parametrize("answer", [Retry(), None])
async def test_after_an_environment_failure_the_log_has_each_result_once(
    store: Store, answer: Answer | None
) -> None:
    did: list[str] = []
    broken = [True]

    @tool
    def write(name: str) -> str:
        """Writes."""
        did.append(name)
        if name == "bad" and broken[0]:
            raise PermissionError("read-only")
        return f"wrote {name}"

    desk = Desk(store)
    batch = [call("write", name="good"), call("write", name="bad"), call("write", name="last")]
    paused = await desk.agent(batch, tools=[write]).run("Write.", conversation="c")
    assert [(one.kind, one.arguments) for one in paused.pending] == [
        ("environment", {"name": "bad"})
    ]
    assert sorted(await kept(store)) == [
        "assistant: +write +write +write", "tool: wrote good", "tool: wrote last", "user: Write.",
    ]  # fmt: skip
    broken[0], did[:] = False, []
    model = Scripted("done", "sure")
    agent = desk.agent(model, tools=[write])
    if answer is None:
        await agent.run("Stop.", conversation="c")
        assert sent(model)[3].startswith("tool: Not run")
    else:
        await agent.resume("c", {paused.pending[0].id: answer})
        assert did == ["bad"]
    await agent.run("sure?", conversation="c")
    strictly(model)
    results = [line for line in sent(model) if line.startswith("tool:")]
    assert (results[0], results[2], len(results)) == ("tool: wrote good", "tool: wrote last", 3)


@pytest.mark.rule("R-MEM-8")
async def test_a_fork_of_a_paused_conversation_is_resumed_on_its_own(store: Store) -> None:
    keys: list[str] = []

    @tool(sensitive=True)
    async def send(ctx: ToolContext) -> str:
        """Sends."""
        keys.append(ctx.idempotency_key)
        return "sent"

    desk = Desk(store)
    inner = Scripted(call("send"), "sent it", repeat=True)

    def parent(*script: Any) -> Agent:
        child = Agent(inner, name="child", tools=[send], gate="sensitive")
        return desk.agent(*script, tools=[send, child.as_tool()])

    paused = await parent([call("send"), call("child", task="Send.")]).run("?", conversation="c")
    paused = await parent().resume("c", {paused.pending[0].id: Approve()})
    assert len(keys) == 1
    keys.clear()
    answer = {paused.pending[0].id: Approve()}  # for the call of the sub-agent
    assert await Timeline(store).fork("c", "d") == "d"
    assert (await Timeline(store).points("d"))[-1].paused
    for place in ("d", "c"):
        result = await parent("done").resume(place, answer)
        assert (result.text, result.conversation) == ("done", place)
        with pytest.raises(PauseNotFound):
            await parent("done").resume(place, answer)
    assert len(set(keys)) == 2, "each branch has its own, that of a sub-agent too"
    assert await kept(store, "c") == await kept(store, "d")


async def test_without_a_memory_only_a_snapshot_can_be_resumed() -> None:
    agent = asking(Scripted(call("pay", amount=1)), Till())
    for work in (agent.pending("c"), agent.resume("c"), agent.recover("c"), agent.regenerate("c")):
        with pytest.raises(ConfigError, match=r"has no memory .*; add Memory"):
            await work


async def test_a_pause_of_a_later_version_is_refused_and_stands() -> None:
    store = InMemory()
    desk = Desk(store)
    await desk.paused()
    await store.hold("c", "p", b'{"format": 9}')
    with pytest.raises(SnapshotError, match="upgrade retinue"):
        await desk.agent().pending("c")
    assert await store.held("c") is not None
