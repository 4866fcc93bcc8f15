"""What a durable turn gives where nobody dies."""

import asyncio
from typing import Any

import pytest

from retinue import Advisor, Agent, Approve, Limits, ToolReturn, Usage, events, tool
from retinue.advisors import Memory
from retinue.chains import CallNext, ChatRequest, TurnRequest, TurnResponse
from retinue.chains.events import Event
from retinue.durable.turns import Turns
from retinue.errors import ModelRefused, TurnFailed, TurnNotFound
from retinue.models import Scripted
from retinue.models.scripted import Say, call
from retinue.stores import InMemory
from tests.durable.handing import BOUND, USED, Blocks, Opening


async def test_a_durable_turn_gives_what_the_agent_gives(opened: Opening) -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    def agent() -> Agent:
        script = Say(calls=[call("add", a=1, b=2)], usage=USED), Say(text="3", usage=USED)
        return Agent(Scripted(*script), tools=[add], output=int)

    plain = await agent().run("1 + 2?", context={"tenant": "a"})
    durable = await opened(agent())
    ended = await durable.run("1 + 2?", context={"tenant": "a"}, workflow_id="sum")
    assert (ended.id, ended.status, ended.output) == ("sum", "completed", 3)
    assert [m.text for m in ended.messages] == [m.text for m in plain.messages]
    assert (ended.usage, ended.rounds, ended.context) == (plain.usage, 2, {"tenant": "a"})
    assert await (await durable.handle("sum")).status() == "completed"


@pytest.mark.rule("R-STREAM-1", "R-STREAM-5")
async def test_its_events_can_be_read_where_it_runs(opened: Opening) -> None:
    durable = await opened(Agent(Scripted(Say(text=["Hel", "lo."]))))
    seen: list[Event] = [event async for event in durable.stream("Hi.")]
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert [event.text for event in seen if isinstance(event, events.TextChunk)] == ["Hel", "lo."]
    assert isinstance(seen[0], events.TurnStarted)
    assert isinstance(seen[-1], events.TurnEnded)


async def test_a_reader_that_leaves_does_not_end_it(opened: Opening) -> None:
    go = asyncio.Event()

    async def answer(_: ChatRequest) -> str:
        await go.wait()
        return "done"

    durable = await opened(Agent(Scripted(answer)))
    reading = durable.stream("Go.", workflow_id="t")
    await anext(reading)
    await reading.aclose()
    go.set()
    assert (await asyncio.wait_for(durable.result("t"), BOUND)).text == "done"


async def test_a_turn_that_raised_says_so_also_where_it_did_not_run(
    opened: Opening,
) -> None:
    agent = Agent(Scripted(ModelRefused("The key is wrong.", status=401)))
    durable = await opened(agent)
    with pytest.raises(TurnFailed, match=r"ModelRefused: The key is wrong\."):
        await durable.run("Go.", workflow_id="t")
    later = await opened(agent)
    assert await (await later.handle("t")).status() == "failed"
    with pytest.raises(TurnFailed, match=r"The key is wrong\."):
        await later.result("t")


async def test_a_turn_of_the_same_id_is_begun_once(opened: Opening) -> None:
    model = Scripted("one", "two")
    durable = await opened(Agent(model))
    first = await durable.run("Go.", workflow_id="t")
    second = await durable.run("Go.", workflow_id="t")
    assert (first.text, second.text, len(model.requests)) == ("one", "one", 1)


@pytest.mark.rule("R-LOOP-8")
async def test_a_cancelled_turn_leaves_a_log_that_the_next_can_use(
    opened: Opening,
) -> None:
    block = Blocks()

    @tool
    async def wait() -> str:
        """Waits."""
        await block()
        return "never"

    model = Scripted(call("wait"), "next")
    durable = await opened(Agent(model, tools=[wait], advisors=[Memory(InMemory())]))
    handle = await durable.start("Go.", conversation="c")
    await asyncio.wait_for(block.reached.wait(), BOUND)
    assert await handle.status() == "running"
    await durable.cancel(handle.id)
    assert (await asyncio.wait_for(handle.result(), BOUND)).status == "cancelled"
    assert await handle.status() == "cancelled"
    ended = await asyncio.wait_for(durable.run("And now?", conversation="c"), BOUND)
    assert ended.text == "next"
    (result,) = model.requests[-1].messages[2].tool_results
    assert "cancelled" in result.text


@pytest.mark.rule("R-LOOP-3")
async def test_a_limit_ends_a_durable_turn_as_any_other(opened: Opening) -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    agent = Agent(Scripted(call("look"), repeat=True), tools=[look], limits=Limits(rounds=2))
    ended = await (await opened(agent)).run("Go.")
    assert (ended.status, ended.rounds) == ("limit", 2)


async def test_what_json_cannot_hold_is_refused_before_anything_is_begun(
    opened: Opening,
) -> None:
    model = Scripted("never")
    durable = await opened(Agent(model))
    with pytest.raises(Exception, match=r"JSON cannot hold 'pool', which is object"):
        await durable.run("Go.", context={"pool": object()})
    assert not model.requests


async def test_a_write_that_json_cannot_hold_fails_the_turn_and_names_the_slot(
    opened: Opening,
) -> None:
    @tool
    def keep() -> ToolReturn:
        """Keeps."""
        return ToolReturn("kept", {"pool": object()})

    durable = await opened(Agent(Scripted(call("keep")), tools=[keep]))
    with pytest.raises(TurnFailed, match=r"'keep' wrote.*'pool'"):
        await durable.run("Go.")


async def test_an_id_that_no_turn_has_is_not_found(opened: Opening) -> None:
    durable = await opened(Agent(Scripted("never")))
    for ask in (durable.handle, durable.result, durable.cancel):
        with pytest.raises(TurnNotFound, match="'gone'"):
            await ask("gone")


async def test_data_is_made_where_the_turn_runs(opened: Opening) -> None:
    seen: list[Any] = []

    class Looks(Advisor):
        async def turn(
            self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
        ) -> TurnResponse:
            seen.append(request.data)
            return await call_next(request)

    agent = Agent(Scripted("done"), advisors=[Looks()])
    durable = await opened(agent, data=lambda conversation, owner: {"for": (conversation, owner)})
    await durable.run("Go.", conversation="c", owner="ada")
    assert seen == [{"for": ("c", "ada")}]


@pytest.mark.rule("R-TOOL-12", "R-HITL-2")
async def test_a_sub_agent_that_pauses_is_gone_on_with_by_another_worker(opened: Opening) -> None:
    paid: list[int] = []

    @tool(sensitive=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    helper = Agent(
        Scripted(Say(calls=[call("pay", amount=7)], usage=USED), Say(text="done", usage=USED)),
        tools=[pay],
        gate="sensitive",
        name="helper",
    )
    script = Say(calls=[call("helper", task="pay")], usage=USED), Say(text="All paid.", usage=USED)
    agent = Agent(Scripted(*script), tools=[helper.as_tool()], advisors=[Memory(InMemory())])
    first = await opened(agent)
    paused = await first.run("Pay.", conversation="c")
    assert (paused.status, paid) == ("paused", [])
    (pending,) = paused.pending
    second = await opened(agent)
    ended = await second.resume("c", {pending.id: Approve({"amount": 5})})
    assert (ended.text, paid) == ("All paid.", [5])
    assert ended.usage == Usage(input=40, output=4)


@pytest.mark.rule("R-MEM-8", "R-HITL-2")
async def test_a_fork_of_a_paused_conversation_is_gone_on_with_on_its_own(opened: Opening) -> None:
    paid: list[int] = []

    @tool(sensitive=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    store = InMemory()
    model = Scripted(call("pay", amount=7), "done", "done, too")
    agent = Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(store)])
    durable = await opened(agent)
    paused = await durable.run("Pay.", conversation="c")
    await store.fork("c", "f")
    for conversation, amount in (("f", 1), ("c", 2)):
        answers = {paused.pending[0].id: Approve({"amount": amount})}
        ended = await durable.resume(conversation, answers)
        assert (ended.status, ended.conversation) == ("completed", conversation)
        log = [entry.message for entry in await store.tail(conversation)]
        assert log == [*ended.messages]
    assert paid == [1, 2]


async def test_a_turn_that_comes_while_its_worker_closes_is_left_to_another(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    came, go = asyncio.Event(), asyncio.Event()
    work, close = Turns.work, Turns.close

    async def late(self: Turns, *given: Any) -> str:
        came.set()
        await go.wait()
        return await work(self, *given)

    async def closing(self: Turns, grace: float) -> None:
        await close(self, grace)
        go.set()

    monkeypatch.setattr(Turns, "work", late)
    monkeypatch.setattr(Turns, "close", closing)
    agent = Agent(Scripted("done"), advisors=[Memory(InMemory())])
    first = await opened(agent)
    handle = await first.start("Go.", conversation="c")
    await asyncio.wait_for(came.wait(), BOUND)
    second = await opened(agent)
    assert (await asyncio.wait_for(second.result(handle.id), BOUND)).text == "done"
