"""One writer per conversation: a second turn waits, or is refused."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, tool
from retinue.advisors import Memory
from retinue.errors import ConversationBusy
from retinue.models.scripted import Scripted, call
from retinue.stores import Store
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
