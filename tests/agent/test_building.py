"""Building agents, changing them, and the ways in that a script takes."""

import asyncio
import gc
import warnings
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, Settings, Slot, tool
from retinue.errors import UnknownModelError
from retinue.models.scripted import Scripted, call
from retinue.tools import Concurrent, Sequential
from tests.agent.toolbox import look, told


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


@pytest.mark.rule("R-ONION-9", "R-TOOL-1")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": look}, r"tools=.* cannot be used; give a list: tools="),
        (
            {"advisors": Layer("a", chat=passing)},
            r"advisors=Layer\('a'\) cannot be used; give a list",
        ),
        ({"tools": "look"}, r"tools='look' cannot be used; give a list"),
        ({"tools": [None]}, "None, a tool of the agent, is neither a tool nor a function"),
        ({"tools": [look, look.with_(name="peer"), look]}, "Two tools are called 'look'"),
        ({"tools": [look.with_(timeout=-1)]}, "'look' cannot be used: timeout -1"),
        ({"instructions": 42}, r"instructions=42 cannot be used; give a text or a function"),
        ({"gate": True}, r"gate=True cannot be used; give 'sensitive' or a function of a call"),
        ({"eligible": False}, r"eligible=False cannot be used; give a function"),
        ({"limits": 10}, r"limits=10 cannot be used; give Limits"),
        ({"settings": {"temperature": 0}}, r"settings=.* cannot be used; give Settings"),
        ({"slots": ["count"]}, r"slots=.* cannot be used; give a list of Slot"),
        ({"slots": [Slot("n", default=0), Slot("n", default=1)]}, "slots are called 'n'"),
        ({"engine": Sequential}, r"engine=.*Sequential.* cannot be used; give an engine"),
        ({"retry": 3}, r"retry=3 cannot be used; give ModelRetry"),
        ({"name": ""}, r"name='' cannot be used; give a text"),
        ({"model": 42}, "not int"),
        ({"model": "no model"}, "names no provider"),
    ],
)
def test_a_part_that_cannot_work_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Agent(**{"model": Scripted(), **options})
    if "model" not in options:
        with pytest.raises(ConfigError, match=message):
            Agent(Scripted()).with_(**options)


def test_plain_functions_become_tools_and_any_iterable_is_a_list() -> None:
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    agent = Agent(
        Scripted(),
        tools=(one for one in (double, look)),
        advisors=iter([Layer("a", chat=passing)]),
    )
    assert [one.name for one in agent.tools] == ["double", "look"]
    assert [one.name for one in agent.with_(name="b").tools] == ["double", "look"]
    assert agent.explain().chain("chat") == ("a",)


@pytest.mark.behaviour("B-ON-11")
async def test_changing_an_agent_makes_another_and_leaves_the_first_as_it_was() -> None:
    first, second = Scripted("one", "one"), Scripted("two")
    layer = Layer("a", chat=passing)
    agent = Agent(first, tools=[look], advisors=[layer], instructions="Be kind.", name="first")
    before = agent.explain()
    other = agent.with_(
        model=second, tools=[], advisors=[*agent.advisors, Layer("b", chat=passing)], name="second"
    )
    assert (await other.run("?")).text == "two"
    assert (await agent.run("?")).text == "one"
    assert agent.explain() == before
    told_of = other.explain()
    assert (told_of.agent, told_of.tools, told_of.chain("chat")) == ("second", (), ("a", "b"))
    assert second.requests[0].instructions == ("Be kind.",)
    assert first.requests[0].tools == (look,)


@pytest.mark.behaviour("B-ON-11")
def test_an_agent_has_no_part_of_that_name() -> None:
    with pytest.raises(ConfigError, match="An agent has no 'toolz'; it has model, instructions"):
        Agent(Scripted()).with_(toolz=[])


@pytest.mark.behaviour("B-ON-11")
def test_a_change_keeps_the_class_of_the_agent() -> None:
    class Mine(Agent):
        pass

    assert type(Mine(Scripted()).with_(name="b")) is Mine


@pytest.mark.rule("R-ENGINE-4")
def test_an_engine_belongs_to_one_agent_and_those_made_from_it() -> None:
    engine = Concurrent()
    agent = Agent(Scripted(), engine=engine)
    agent.with_(name="second")
    with pytest.raises(ConfigError, match="This Concurrent engine belongs to another agent"):
        Agent(Scripted(), engine=engine)
    with pytest.raises(ConfigError, match="belongs to another agent"):
        Agent(Scripted()).with_(engine=engine)


@pytest.mark.rule("R-ENGINE-4")
def test_an_engine_is_free_again_when_its_agents_are_gone() -> None:
    engine = Concurrent()
    agent = Agent(Scripted(), engine=engine)
    del agent
    gc.collect()
    Agent(Scripted(), engine=engine)


@pytest.mark.rule("R-ENGINE-4", "R-TOOL-12")
async def test_a_sub_agent_runs_its_tools_on_its_own_engine() -> None:
    class Counting(Sequential):
        __slots__ = ("batches",)

        def __init__(self) -> None:
            super().__init__()
            self.batches = 0

        async def run(self, calls: Any, one: Any) -> Any:
            self.batches += 1
            return await super().run(calls, one)

    inner, outer = Counting(), Counting()
    child = Agent(
        Scripted(call("look", at="a"), call("look", at="b"), "found"),
        tools=[look],
        engine=inner,
        name="child",
    )
    agent = Agent(
        Scripted(call("child", task="look"), "done"), tools=[child.as_tool()], engine=outer
    )
    await agent.run("?")
    assert (inner.batches, outer.batches) == (2, 1)


@pytest.mark.rule("R-LOOP-10")
def test_run_sync_runs_a_turn_in_a_script() -> None:
    agent = Agent(Scripted(call("look", at="it"), "done", "hello"), tools=[look])
    result = agent.run_sync("?", conversation="c", data=1)
    assert (result.text, result.conversation) == ("done", "c")
    assert told(result) == [(True, "it is here")]
    assert agent.run_sync("hi").text == "hello"


@pytest.mark.rule("R-LOOP-10")
async def test_run_sync_inside_a_running_loop_says_what_to_write_instead() -> None:
    model = Scripted("hi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConfigError, match=r"write `await agent.run\(\.\.\.\)` there"):
            Agent(model).run_sync("?")
    assert model.requests == []


@pytest.mark.rule("R-LOOP-10")
async def test_run_sync_in_a_thread_beside_a_loop_works() -> None:
    agent = Agent(Scripted("hi"))
    assert (await asyncio.to_thread(agent.run_sync, "?")).text == "hi"


def test_an_option_of_run_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="converzation"):
        Agent(Scripted("hi")).run_sync("?", converzation="c")


def test_settings_of_a_turn_that_are_none_are_refused_before_any_work() -> None:
    model = Scripted("hi")
    with pytest.raises(ConfigError, match=r"settings=.*; give Settings"):
        Agent(model).run_sync("?", settings={"temperature": 0})
    assert model.requests == []


def test_an_agent_is_shown_by_its_model_and_name() -> None:
    assert repr(Agent(Scripted(), name="helper")) == "Agent('scripted:script', name='helper')"


def test_a_model_that_is_not_known_is_refused_where_the_agent_is_built() -> None:
    with pytest.raises(UnknownModelError, match="did you mean 'openai:gpt"):
        Agent("openia:gpt-5-mini")


async def test_closing_an_agent_closes_its_model_and_engine_and_it_may_run_again() -> None:
    closed: list[str] = []

    class Closing(Scripted):
        async def close(self) -> None:
            closed.append("model")

    class Engine(Sequential):
        __slots__ = ()

        async def close(self) -> None:
            closed.append("engine")
            await super().close()

    agent = Agent(Closing(call("look", at="a"), "done", "more"), tools=[look], engine=Engine())
    await agent.run("?")
    await agent.close()
    assert closed == ["model", "engine"]
    assert (await agent.run("?")).text == "more"


@pytest.mark.rule("R-ONION-4")
async def test_onions_are_composed_when_the_agent_is_built_and_not_in_a_turn() -> None:
    layer = Layer("late", chat=passing)
    model = Scripted("a")
    agent = Agent(model, advisors=[layer], limits=Limits(rounds=1), settings=Settings())

    async def never(request: Any, call_next: Any) -> Any:
        raise AssertionError("composed in the turn")

    layer.__dict__["chat"] = never
    assert (await agent.run("?")).text == "a"


async def test_an_advisor_s_tool_may_be_a_plain_function() -> None:
    def note(text: str) -> str:
        """Notes."""
        return f"noted {text}"

    brought: Any = [note]
    layer = Layer("notebook", turn=passing, tools=brought)
    agent = Agent(Scripted(call("note", text="x"), "done"), advisors=[layer])
    assert told(await agent.run("?")) == [(True, "noted x")]


def test_a_tool_made_twice_of_one_function_is_one_too_many() -> None:
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    with pytest.raises(ConfigError, match="'double', one of the agent and one of the agent"):
        Agent(Scripted(), tools=[double, tool(double)])
