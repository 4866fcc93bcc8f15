"""The five standard stages by one call, and as a decorator."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Usage
from retinue.advisors import (
    Forward,
    Interceptors,
    Memory,
    Pipeline,
    Summarizer,
    Thinking,
    UsageCollector,
    Validate,
    standard,
)
from retinue.chains.events import Event, ThinkingChunk, final_text
from retinue.models import Say, Scripted
from retinue.stores import InMemory
from tests.advisors.talking import WAYS, Way, kept


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


def layer(name: str, order: float | None = None) -> Layer:
    return Layer(name, turn=passing, order=order)  # pyright: ignore[reportArgumentType]


def names(advisors: Any) -> list[str]:
    return [one.name for one in advisors]


def noting(log: list[str]) -> Any:
    return SimpleNamespace(after_response=lambda request, response: log.append(response.text))


@pytest.mark.rule("R-ONION-8")
def test_the_stages_stand_in_their_order_and_further_ones_between_them() -> None:
    extra = [layer("archive", 600), layer("behind it"), layer("audit", 250), layer("clean", 100)]
    advisors = standard(interceptors=[noting([])], forward=print, extra=extra)
    assert names(advisors) == [
        "clean", "Memory", "audit", "Interceptors", "UsageCollector", "Thinking", "Forward",
        "archive", "behind it",
    ]  # fmt: skip
    assert Agent(Scripted(), advisors=advisors).explain().warnings == ()


def test_each_stage_can_be_left_out_and_what_is_not_given_is_not_there() -> None:
    assert names(standard()) == ["Memory", "UsageCollector", "Thinking"]
    assert names(standard(store=None)) == ["UsageCollector", "Thinking"]
    assert names(standard(prices=None)) == ["Memory", "Thinking"]
    assert names(standard(think=None)) == ["Memory", "UsageCollector"]
    assert standard(store=None, prices=None, think=None) == []


def test_a_stage_may_be_given_whole() -> None:
    whole: list[Any] = [
        Memory(), Interceptors([noting([])], per="call"), UsageCollector(), Thinking("hidden"),
        Forward(print),
    ]  # fmt: skip
    memory, interceptors, usage, think, forward = whole
    made = standard(
        store=memory, interceptors=interceptors, prices=usage, think=think, forward=forward
    )
    assert [id(one) for one in made] == [id(one) for one in whole]


@pytest.mark.parametrize("way", WAYS)
async def test_all_five_work_together(way: Way) -> None:
    store, log, heard = InMemory(), list[str](), list[Event]()
    advisors = standard(
        store=store,
        interceptors=[noting(log)],
        prices=lambda spent: 1.0,
        think="hidden",
        forward=heard.append,
    )
    usage = next(one for one in advisors if isinstance(one, UsageCollector))
    say = Say(text=["<think>hm</thi", "nk>Os", "lo."], usage=Usage(input=3, output=4))
    result = await way(Agent(Scripted(say), advisors=advisors), "Where?", conversation="c")
    assert (result.text, log, final_text(heard)) == ("Oslo.", ["Oslo."], "Oslo.")
    assert not any(isinstance(one, ThinkingChunk) for one in heard)
    assert (usage.total.calls, usage.total.cost) == (1, 1.0)
    assert Thinking.of(result).text == "hm"
    assert await kept(store) == ["user: Where?", "assistant: Oslo."]


def test_it_decorates_a_function_that_builds_an_agent() -> None:
    own = [layer("audit", 250), layer("last", 900)]

    @standard(think="hidden")
    def support(model: Scripted, *, name: str = "support") -> Agent:
        """Builds."""
        return Agent(model, advisors=own, name=name)

    agent = support(Scripted("hi"), name="desk")
    assert agent.name == "desk"
    assert names(agent.advisors) == ["Memory", "audit", "UsageCollector", "Thinking", "last"]
    assert (support.__name__, support.__doc__) == ("support", "Builds.")
    assert agent.run_sync("Go.").text == "hi"


def test_the_decorated_function_may_be_async() -> None:
    @standard(store=None)
    async def support() -> Any:
        await asyncio.sleep(0)
        return Agent(Scripted("hi"), advisors=[Validate(check=lambda text: None)])

    agent = asyncio.run(support())
    assert names(agent.advisors) == ["UsageCollector", "Thinking", "Validate"]


def test_what_it_cannot_decorate_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"write Agent\(\.\.\., advisors=standard\(\.\.\.\)\)"):
        standard()(Agent(Scripted()))  # pyright: ignore[reportArgumentType]

    @standard()
    def nothing() -> Any:
        return None

    with pytest.raises(ConfigError, match=r"nothing gave NoneType; a function under @standard"):
        nothing()


def test_two_memories_are_refused_by_name() -> None:
    @standard()
    def support() -> Agent:
        return Agent(Scripted(), advisors=[Memory()])

    with pytest.raises(ConfigError, match="Memory outside Memory cannot work"):
        support()


@pytest.mark.rule("R-USAGE-4")
async def test_what_a_memory_writes_on_the_side_is_counted_though_usage_stands_inside_it() -> None:
    memory = Memory(summary=Summarizer(tokens=50), max_messages=4)
    usage = UsageCollector()
    model = Scripted(Say(text="Well.", usage=Usage(input=9, output=1)), repeat=True)
    agent = Agent(model, advisors=standard(store=memory, prices=usage))
    assert agent.explain().warnings == ()
    for _ in range(6):
        await agent.run("And then?", conversation="c")
    assert len(model.requests) > 6
    assert usage.total.calls == len(model.requests)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"store": "chat.db"},
            r"give a store, such as SQLite\(\.\.\.\); write SQLite\('chat.db'\)",
        ),
        ({"store": 7}, "store=7"),
        ({"interceptors": []}, "would do nothing"),
        ({"think": "maybe"}, "'maybe'"),
        ({"forward": 7}, "cannot send events to 7"),
    ],
)
def test_what_a_stage_cannot_take_is_refused(options: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        standard(**options)


def test_the_list_is_a_list() -> None:
    advisors = standard(store=None)
    assert isinstance(advisors, Pipeline)
    assert names([layer("first"), *advisors]) == ["first", "UsageCollector", "Thinking"]
