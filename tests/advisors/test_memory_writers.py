"""One writer per conversation: a second turn waits, or is refused."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, tool
from retinue.advisors import Memory
from retinue.errors import ConversationBusy
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory, Store
from tests.advisors.talking import WAYS, Way, by_run, by_stream, kept, sent, soon, strictly

ways = pytest.mark.parametrize("way", WAYS)


@tool
async def search(query: str) -> str:
    """Looks it up."""
    return f"found {query}"


class Gate:
    """A model's answer that waits until it may be given."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()

    async def layer(self, request: Any, call_next: Any) -> Any:
        self.asked.set()
        await self.open.wait()
        return await call_next(request)


@pytest.mark.rule("R-MEM-6")
@pytest.mark.behaviour("B-ME-7")
@ways
async def test_a_second_turn_waits_and_sees_the_first(store: Store, way: Way) -> None:
    gate, model = Gate(), Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(store), Layer("gate", chat=gate.layer)])
    first = asyncio.create_task(way(agent, "first?", conversation="c"))
    await soon(gate.asked.wait())
    second = asyncio.create_task(way(agent, "second?", conversation="c"))
    other = await soon(way(agent.with_(model=Scripted("else"), advisors=[Memory(store)]), "x",
                           conversation="another"))  # fmt: skip
    assert other.text == "else", "another conversation need not wait"
    assert len(model.requests) == 0
    gate.open.set()
    await soon(asyncio.gather(first, second))
    assert sent(model, 1) == ["user: first?", "assistant: one", "user: second?"]
    assert await kept(store) == [*sent(model, 1), "assistant: two"]


@pytest.mark.rule("R-MEM-6")
@pytest.mark.behaviour("B-ME-7")
@ways
async def test_a_second_turn_is_refused_by_choice(store: Store, way: Way) -> None:
    gate, model = Gate(), Scripted("one", "two")
    agent = Agent(model, advisors=[Memory(store, wait=False), Layer("gate", chat=gate.layer)])
    first = asyncio.create_task(way(agent, "first?", conversation="c"))
    await soon(gate.asked.wait())
    with pytest.raises(ConversationBusy, match="'c'"):
        await soon(way(agent, "second?", conversation="c"))
    gate.open.set()
    assert (await soon(first)).text == "one"
    await soon(way(agent, "third?", conversation="c"))
    assert sent(model) == ["user: first?", "assistant: one", "user: third?"]


@pytest.mark.rule("R-MEM-6")
@pytest.mark.behaviour("B-ME-7")
async def test_twenty_turns_at_once_leave_a_log_in_order(store: Store) -> None:
    model = Scripted(
        lambda request: call("search", query="x") if request.round == 1 else "done", repeat=True
    )
    agent = Agent(model, tools=[search], advisors=[Memory(store)])
    ways = (by_run, by_stream)
    await soon(asyncio.gather(*(ways[n % 2](agent, f"{n}?", conversation="c") for n in range(20))))
    log = await kept(store)
    assert len(log) == 80
    assert all(
        log[at + 1 : at + 4] == ["assistant: +search", "tool: found x", "assistant: done"]
        for at in range(0, 80, 4)
    )
    strictly(model)


@pytest.mark.rule("R-MEM-6")
@pytest.mark.parametrize("ending", ["raise", "cancel", "leave", "refuse"])
async def test_however_a_turn_ends_the_next_one_need_not_wait(store: Store, ending: str) -> None:
    entered, forever = asyncio.Event(), asyncio.Event()

    async def layer(request: Any, call_next: Any) -> Any:
        if request.messages[-1].text != "first?":
            return await call_next(request)
        if ending == "raise":
            raise ZeroDivisionError
        if ending == "refuse":
            return request.refuse("no")
        entered.set()
        await forever.wait()

    agent = Agent(Scripted("two"), advisors=[Memory(store, wait=False), Layer("l", turn=layer)])
    if ending == "leave":
        async with agent.stream("first?", conversation="c"):
            await soon(entered.wait())
    else:
        task = asyncio.create_task(agent.run("first?", conversation="c"))
        if ending == "cancel":
            await soon(entered.wait())
            task.cancel()
        await asyncio.wait([task], timeout=5)
        assert ending == "refuse" or task.cancelled() or task.exception() is not None
    assert (await soon(agent.run("second?", conversation="c"))).text == "two"


@pytest.mark.rule("R-MEM-6")
async def test_a_turn_that_is_cancelled_while_it_waits_leaves_nothing(store: Store) -> None:
    gate, model = Gate(), Scripted("one", "three")
    agent = Agent(model, advisors=[Memory(store), Layer("gate", chat=gate.layer)])
    first = asyncio.create_task(agent.run("first?", conversation="c"))
    await soon(gate.asked.wait())
    second = asyncio.create_task(agent.run("second?", conversation="c"))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second], timeout=5)
    gate.open.set()
    await soon(first)
    await soon(agent.run("third?", conversation="c"))
    assert sent(model) == ["user: first?", "assistant: one", "user: third?"]
    assert "user: second?" not in await kept(store)


@pytest.mark.rule("R-ONION-3", "R-MEM-6")
@pytest.mark.parametrize("wait", [True, False])
@ways
async def test_an_outer_layer_may_call_its_inner_ones_at_once(
    store: Store, way: Way, wait: bool
) -> None:
    async def both(request: Any, call_next: Any) -> Any:
        first, second = await asyncio.gather(call_next(request), call_next(request))
        assert {first.text, second.text} == {"one", "two"}
        return second

    model = Scripted("zero", "one", "two")
    memory = Memory(store, wait=wait)
    await soon(way(Agent(model, advisors=[memory]), "before?", conversation="c"))
    agent = Agent(model, advisors=[Layer("both", turn=both), memory])
    await soon(way(agent, "why?", conversation="c"))
    history = ["user: before?", "assistant: zero", "user: why?"]
    assert sent(model, 1) == sent(model, 2) == history
    assert (await kept(store))[:3] == history
    await soon(way(Agent(Scripted("three"), advisors=[memory]), "after?", conversation="c"))


@pytest.mark.rule("R-ONION-3")
async def test_an_entry_that_is_given_up_while_it_opens_leaves_the_opening_to_the_other() -> None:
    gate = Gate()

    class SlowAtFirst(InMemory):
        async def tail(self, conversation: str, **options: Any) -> Any:
            if not gate.asked.is_set():
                gate.asked.set()
                await gate.open.wait()
            return await super().tail(conversation, **options)

    async def race(request: Any, call_next: Any) -> Any:
        first = asyncio.create_task(call_next(request))
        await gate.asked.wait()
        second = asyncio.create_task(call_next(request))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    store = SlowAtFirst()
    agent = Agent(Scripted("one"), advisors=[Layer("race", turn=race), Memory(store)])
    assert (await soon(agent.run("why?", conversation="c"))).text == "one"
    assert await kept(store) == ["user: why?", "assistant: one"]
