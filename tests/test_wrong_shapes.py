"""A plausible argument of a wrong shape is one error that names it and says what to give."""

from collections.abc import Callable
from typing import Any

import pytest

from retinue import Agent, Approve, ConfigError, tool, user
from retinue.advisors import Interceptors, Memory, Quota, UsageCollector
from retinue.durable import Durable
from retinue.models import Gemini, OpenAI, PromptedTools, Scripted, call
from retinue.serve.dispatch import InProcess
from retinue.serve.gateway import Gateway
from retinue.stores import InMemory, SQLite, Timeline
from retinue.tools import Concurrent, Toolset

pytestmark = pytest.mark.rule("R-FAIL-3")


@tool(sensitive=True)
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def till() -> Agent:
    model = Scripted(call("pay", amount=1), "done")
    return Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(InMemory())])


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize("answers", [[Approve()], [], Approve(), "yes", None, True], ids=repr)
async def test_answers_are_by_call(answers: Any) -> None:
    agent = till()
    await agent.run("Pay.", conversation="c")
    told = r"answers=.* cannot be used; give answers by the ids of the calls"
    for go_on in (agent.resume, agent.stream_resume):
        with pytest.raises(ConfigError, match=told):
            await go_on("c", answers)
    assert len(await agent.pending("c")) == 1


@pytest.mark.rule("R-HITL-3")
@pytest.mark.parametrize("args", ['{"amount": 2}', [2]], ids=repr)
async def test_other_arguments_are_by_name(args: Any) -> None:
    agent = till()
    paused = await agent.run("Pay.", conversation="c")
    with pytest.raises(ConfigError, match=r"Approve\(args=.*give the arguments by their names"):
        await agent.resume("c", {paused.pending[0].id: Approve(args)})
    assert len(await agent.pending("c")) == 1


@pytest.mark.parametrize("name", ["state", "context"])
@pytest.mark.parametrize("value", [[("a", 1)], "a", 1], ids=repr)
async def test_state_and_context_are_by_name(name: str, value: Any) -> None:
    agent, given = till(), {name: value}
    told = f"{name}=.* cannot be used; give .*by "
    with pytest.raises(ConfigError, match=told):
        await agent.run("?", **given)
    with pytest.raises(ConfigError, match=told):
        agent.stream("?", **given)
    await agent.run("Pay.", conversation="c")
    with pytest.raises(ConfigError, match=told):
        await agent.regenerate("c", **given)


async def test_what_a_turn_goes_on_with_is_by_name_too() -> None:
    agent = till()
    await agent.run("Pay.", conversation="c")
    for go_on in (agent.resume, agent.stream_resume, agent.stream_recover):
        with pytest.raises(ConfigError, match=r"context=.* cannot be used"):
            await go_on("c", context=wrong(["a"]))


@pytest.mark.rule("R-MEM-8")
@pytest.mark.parametrize(("name", "value"), [("turn", 1), ("fork", ""), ("fork", 1), ("fork", {})])
async def test_a_turn_and_a_fork_are_named_by_texts(name: str, value: Any) -> None:
    agent = Agent(Scripted("one", "two"), advisors=[Memory(InMemory())])
    await agent.run("?", conversation="c")
    with pytest.raises(ConfigError, match=f"{name}=.* cannot be used"):
        await agent.regenerate("c", **{name: value})


def wrong(value: object) -> Any:
    """A value where no type checker would let it pass."""
    return value


@pytest.mark.parametrize(
    "make",
    [
        lambda: Toolset(wrong(pay)),
        lambda: UsageCollector(quotas=wrong(Quota(tokens=1))),
        lambda: Interceptors(wrong(pay)),
        lambda: Agent(Scripted(), tools=wrong(pay)),
        lambda: Agent(Scripted(), advisors=wrong(Memory())),
        lambda: Gateway(InProcess(till()), stores=wrong(InMemory())),
    ],
    ids=["toolset", "quotas", "interceptors", "tools", "advisors", "stores"],
)
def test_one_thing_where_several_are_taken_is_told_to_be_put_in_a_list(
    make: Callable[[], object],
) -> None:
    with pytest.raises(ConfigError, match=r"cannot be used; give a list: .*=\[\.\.\.\]"):
        make()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Agent(wrong(Scripted)), "not the class Scripted"),
        (lambda: Agent(Scripted()).as_tool(wrong(5)), "as_tool: name=5"),
        (lambda: Agent(Scripted()).as_tool("x", wrong(5)), "as_tool: description=5"),
        (lambda: Memory(wrong("chat.db")), r"Memory\(store='chat.db'\) .*SQLite\('chat.db'\)"),
        (lambda: Memory(wrong(SQLite)), r"Memory\(store=<class"),
        (lambda: Memory(max_tokens=wrong("4000")), r"Memory\(max_tokens='4000'\)"),
        (lambda: Memory(reserve=wrong(None)), r"Memory\(reserve=None\)"),
        (lambda: PromptedTools(wrong("openai:gpt-5")), r"'openai:gpt-5'.*give a model object"),
        (lambda: PromptedTools(wrong(Scripted)), r"Scripted'.*give a model object"),
        (lambda: Concurrent(tag_limits=wrong(4)), r"Concurrent\(tag_limits=4\)"),
        (lambda: Agent(Scripted(), tools=[wrong(till())]), r"write as_tool\(\) behind it"),
        (lambda: Timeline(wrong("chat.db")), r"Timeline\(store='chat.db'\)"),
        (
            lambda: Gateway(InProcess(till()), stores=wrong(["chat.db"])),
            r"Gateway\(store='chat.db'\)",
        ),
        (lambda: OpenAI("m", api_key=wrong(5)), "The key for openai is a text, not int"),
        (lambda: Gemini("m", api_key="k", headers=wrong([])), r"headers=\.\.\. cannot be used"),
    ],
)
def test_a_part_of_a_wrong_kind_is_refused_where_it_is_given(
    make: Callable[[], object], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


@pytest.mark.rule("R-MEM-1")
@pytest.mark.parametrize("messages", ["hi", user("hi"), ["hi"]], ids=["text", "one", "texts"])
async def test_a_store_takes_a_list_of_messages(messages: Any) -> None:
    store = InMemory()
    with pytest.raises(ConfigError, match=r"append\(\) takes"):
        await store.append("c", messages, turn="t")
    assert not await store.tail("c")


@pytest.mark.parametrize("agent", [None, "house:agent", Agent])
def test_what_is_durable_is_an_agent(agent: Any) -> None:
    with pytest.raises(ConfigError, match=r"Durable\(.*give an Agent"):
        Durable(agent, database="x.db")
