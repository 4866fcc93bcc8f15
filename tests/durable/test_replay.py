"""A worker closes, and the next one runs its turn again from the record."""

import asyncio
from typing import Any

import pytest

from retinue import Advisor, Agent, Slot, ToolReturn, Usage, tool
from retinue.advisors import Memory
from retinue.agent.pause import UNKNOWN
from retinue.chains import CallNext, ChatRequest, ChatResponse, TurnRequest, TurnResponse
from retinue.chains.send import Refusal
from retinue.errors import ModelOverloaded, TurnFailed
from retinue.messages import TextDelta
from retinue.models import ModelRetry, Scripted
from retinue.models.base import Send
from retinue.models.scripted import Say, Step, call
from retinue.stores import InMemory
from tests.advisors.talking import strictly
from tests.durable.handing import BOUND, USED, Blocks, Opening, blocking, handed_on


@pytest.mark.rule("R-TOOL-4", "R-TOOL-5")
async def test_what_was_done_is_not_done_again_by_the_next_worker(
    opened: Opening,
) -> None:
    block, ran = Blocks(), list[int]()
    both = asyncio.Barrier(2)

    @tool
    async def note(number: int) -> ToolReturn:
        """Notes a number. The calls of a batch run at once, or this would wait for ever."""
        await both.wait()
        ran.append(number)
        return ToolReturn(f"noted {number}", {"numbers": [number]})

    calls = Say(calls=[call("note", number=1), call("note", number=2)], usage=USED)
    model = blocking(block, calls, Say(text="done", usage=USED), at=1)
    agent = Agent(
        model, tools=[note], slots=[Slot("numbers", lambda old, new: old + new, default=[])]
    )
    ended = await handed_on(opened, agent, block)
    assert sorted(ran) == [1, 2]
    assert ended.state == {"numbers": [1, 2]}
    assert [m.text or m.tool_results[0].text for m in ended.messages if m.role == "tool"] == [
        "noted 1", "noted 2",
    ]  # fmt: skip
    assert ended.usage == Usage(input=20, output=2)
    assert len(model.requests) == 3  # the one that was broken off was asked again


@pytest.mark.rule("R-MEM-1")
@pytest.mark.behaviour("B-ME-4")
async def test_a_worker_that_closes_writes_nothing_of_what_it_leaves(
    opened: Opening,
) -> None:
    block, store = Blocks(), InMemory()

    class Halting(Scripted):
        async def generate(self, request: ChatRequest, send: Send) -> None:
            await send(TextDelta("half an "))
            await block()
            await send(TextDelta("answer"))

    agent = Agent(Halting(), advisors=[Memory(store)])
    ended = await handed_on(opened, agent, block, conversation="c")
    assert ended.text == "half an answer"
    log = await store.tail("c")
    assert [entry.message for entry in log] == [*ended.messages]
    assert [entry.state for entry in log] == ["", ""]


@pytest.mark.rule("R-MEM-5", "R-TOOL-5")
async def test_a_call_that_was_broken_off_has_one_result(opened: Opening) -> None:
    block, store = Blocks(), InMemory()

    @tool
    async def wait() -> str:
        """Waits."""
        await block()
        return "never"

    model = Scripted(call("wait"), "done")
    agent = Agent(model, tools=[wait], advisors=[Memory(store)])
    ended = await handed_on(opened, agent, block, conversation="c")
    assert ended.messages[2].tool_results[0].text == UNKNOWN
    assert [entry.message for entry in await store.tail("c")] == [*ended.messages]
    strictly(model)


@pytest.mark.rule("R-STREAM-3")
async def test_a_refusal_by_a_transform_is_the_same_again(opened: Opening) -> None:
    block = Blocks()

    class Guard(Advisor):
        def stream(self, request: ChatRequest) -> Any:
            return Refuses()

        async def turn(
            self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
        ) -> TurnResponse:
            response = await call_next(request)
            await block()
            return response

    class Refuses:
        def feed(self, delta: Any) -> Any:
            if "secret" in delta.text:
                raise Refusal("Guard", "It tells a secret.", answer="No.")
            return (delta,)

        def flush(self) -> Any:
            return ()

    model = Scripted(Say(text=["The ", "secret ", "is"]))
    ended = await handed_on(opened, Agent(model, advisors=[Guard()]), block)
    assert (ended.status, ended.text, ended.blocked_by) == ("blocked", "No.", "Guard")
    assert len(model.requests) == 1


@pytest.mark.rule("R-USAGE-2", "R-TOOL-12")
async def test_what_a_sub_agent_used_is_counted_once(opened: Opening) -> None:
    block = Blocks()
    helper = Agent(Scripted(Say(text="found", usage=USED), repeat=True), name="helper")
    asks = Say(calls=[call("helper", task="find")], usage=USED)
    model = blocking(block, asks, Say(text="done", usage=USED), at=1)
    ended = await handed_on(opened, Agent(model, tools=[helper.as_tool()]), block)
    assert len(helper.model.requests) == 1  # type: ignore[attr-defined]
    assert ended.usage == Usage(input=30, output=3)


@pytest.mark.rule("R-USAGE-4")
async def test_a_call_on_the_side_is_a_step_too(opened: Opening) -> None:
    block = Blocks()
    aside = Scripted(Say(text="yes", usage=USED), repeat=True)

    class Asks(Advisor):
        async def turn(
            self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
        ) -> TurnResponse:
            verdict = await request.consult("May it?", model=aside)
            return await call_next(request.with_context(verdict=verdict.text))

        async def chat(
            self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
        ) -> ChatResponse:
            return await call_next(request.with_(model=model))

    @tool
    async def wait() -> str:
        """Waits."""
        await block()
        return "never"

    asks = Say(calls=[call("wait")], usage=USED)
    model = blocking(Blocks(), asks, Say(text="done", usage=USED), at=-1)
    agent = Agent(Scripted(), tools=[wait], advisors=[Asks()])
    ended = await handed_on(opened, agent, block)
    assert (len(aside.requests), len(model.requests)) == (1, 2)
    assert ended.context["verdict"] == "yes"
    assert ended.usage == Usage(input=30, output=3)


@pytest.mark.rule("R-FAIL-2")
async def test_a_failed_try_is_neither_made_nor_waited_for_again(
    opened: Opening,
) -> None:
    block, tries = Blocks(), list[str]()

    async def answer(request: ChatRequest) -> Step:
        if any(message.role == "tool" for message in request.messages):
            await block()
            return "done"
        tries.append("try")
        if len(tries) == 1:
            return ModelOverloaded("busy", status=503, retry_after=0.01)
        return call("look")

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    # Were the wait repeated, with these waits the test would hang.
    agent = Agent(Scripted(answer, repeat=True), tools=[look], retry=ModelRetry(base=60, cap=60))
    ended = await handed_on(opened, agent, block)
    assert ended.text == "done"
    assert len(tries) == 2


@pytest.mark.rule("R-MEM-6")
@pytest.mark.behaviour("B-ME-7")
async def test_a_turn_waits_for_an_earlier_one_whose_worker_is_gone(
    opened: Opening,
) -> None:
    block, store = Blocks(), InMemory()
    model = blocking(block, "first", "second", at=0)
    agent = Agent(model, advisors=[Memory(store)])
    one = await opened(agent)
    await one.start("1", conversation="c", workflow_id="t-1")
    await asyncio.wait_for(block.reached.wait(), BOUND)
    two = await opened(agent)
    second = await asyncio.wait_for(two.run("2", conversation="c"), BOUND)
    assert second.text == "second"
    log = [entry.message.text for entry in await store.tail("c")]
    assert log == ["1", "first", "2", "second"]


async def test_a_turn_that_another_agent_goes_on_with_fails_in_clear_words(
    opened: Opening,
) -> None:
    block = Blocks()

    @tool
    async def look() -> str:
        """Looks."""
        await block()
        return "seen"

    class Asks(Advisor):
        async def turn(
            self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
        ) -> TurnResponse:
            await request.consult("May it?")
            return await call_next(request)

    first = await opened(Agent(Scripted(call("look")), tools=[look]))
    handle = await first.start("Go.")
    await asyncio.wait_for(block.reached.wait(), BOUND)
    second = await opened(Agent(Scripted("a", "b"), tools=[look], advisors=[Asks()]))
    with pytest.raises(TurnFailed, match=r"step 1 was 'model' and is 'consult' now"):
        await asyncio.wait_for(second.result(handle.id), BOUND)


async def test_a_turn_that_kills_its_workers_is_given_up(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.durable.host.GIVEN_UP", 0)
    block = Blocks()
    agent = Agent(blocking(block, "done", at=0))
    with pytest.raises(TurnFailed, match="given up"):
        await handed_on(opened, agent, block, workflow_id="t")
