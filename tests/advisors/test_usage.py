"""Totals of what turns use, however they end."""

import asyncio
import json
import sys
from typing import Any

import pytest

from retinue import Agent, Layer, Limits, Usage, tool
from retinue.advisors import UsageCollector
from retinue.errors import ConfigError, MissingExtraError, ModelRefused
from retinue.models.scripted import Say, Scripted, call
from tests.advisors.metering import used
from tests.advisors.talking import WAYS, Way, layer, soon

ways = pytest.mark.parametrize("way", WAYS)
ONE = Usage(input=10, output=2, cache_read=4)


def paid(text: str = "ok", **more: Any) -> Say:
    return Say(text=text, usage=ONE, **more)


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


@pytest.mark.rule("R-USAGE-2", "R-USAGE-3")
@ways
async def test_totals_add_up_by_turn_conversation_owner_and_model(way: Way) -> None:
    totals = UsageCollector()
    big = Scripted(paid("", calls=[call("search")]), paid(), paid(), name="big", provider="acme")
    small = Scripted(paid(), name="small", provider="acme")
    agent = Agent(big, tools=[search], advisors=[totals])
    await way(agent, "1", conversation="a", owner="ann")
    await way(agent, "2", conversation="b", owner="ann")
    await way(agent.with_(model=small), "3", conversation="b", owner="bob")
    assert (totals.total.turns, totals.total.calls) == (3, 4)
    assert totals.total.usage == Usage(input=40, output=8, cache_read=16)
    assert (totals.conversation("a").turns, totals.conversation("a").calls) == (1, 2)
    assert (totals.conversation("b").turns, totals.conversation("b").calls) == (2, 2)
    assert totals.owner("ann").calls == 3
    assert totals.owner("bob").usage == ONE
    assert {name: one.calls for name, one in totals.models().items()} == {
        "acme:big": 3, "acme:small": 1,
    }  # fmt: skip
    assert totals.conversation("unknown").turns == 0
    assert totals.total.usage.reasoning is None, "what no provider said stays unknown"


@pytest.mark.rule("R-USAGE-2")
@pytest.mark.behaviour("B-US-3")
@ways
async def test_a_failed_turn_is_counted_with_all_it_used(way: Way) -> None:
    totals = UsageCollector()
    failing = Say(text="I th", usage=ONE, error=ModelRefused("no"))
    agent = Agent(
        Scripted(paid("", calls=[call("search")]), failing), tools=[search], advisors=[totals]
    )
    with pytest.raises(ModelRefused):
        await way(agent, "hi", conversation="c")
    assert totals.total.turns == 1
    assert totals.conversation("c").usage == ONE + ONE


@pytest.mark.behaviour("B-US-3")
async def test_a_cancelled_turn_is_counted(totals: UsageCollector) -> None:
    running = asyncio.Event()

    @tool
    async def wait() -> str:
        """Takes for ever."""
        running.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(Scripted(paid("", calls=[call("wait")])), tools=[wait], advisors=[totals])
    task = asyncio.create_task(agent.run("hi"))
    await soon(running.wait())
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert (totals.total.turns, totals.total.usage) == (1, ONE)


@pytest.fixture
def totals() -> UsageCollector:
    return UsageCollector()


async def test_a_blocked_turn_and_one_at_its_limit_are_counted(totals: UsageCollector) -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        return request.refuse("no")

    guarded = Agent(Scripted(), advisors=[totals, Layer("guard", turn=refuse)])
    await guarded.run("hi")
    assert (totals.total.turns, totals.total.calls, totals.total.usage) == (1, 0, Usage())
    looping = Scripted(paid("", calls=[call("search")]), repeat=True)
    agent = Agent(looping, tools=[search], advisors=[totals], limits=Limits(rounds=3))
    assert (await agent.run("hi")).status == "limit"
    assert (totals.total.turns, totals.total.calls) == (2, 3)


@pytest.mark.rule("R-USAGE-4")
@pytest.mark.behaviour("B-ST-6")
@ways
async def test_side_calls_of_inner_layers_are_counted(totals: UsageCollector, way: Way) -> None:
    side = Scripted(paid(), repeat=True, name="side")

    async def consult(request: Any, call_next: Any) -> Any:
        await request.consult("sure?", model=side)
        return await call_next(request)

    agent = Agent(Scripted(paid()), advisors=[totals, Layer("consult", turn=consult, chat=consult)])
    response = await way(agent, "hi", owner="ann")
    assert totals.owner("ann").usage == response.usage == ONE + ONE + ONE
    assert totals.models()["scripted:side"].calls == 2


@pytest.mark.rule("R-TOOL-12", "R-USAGE-2")
@ways
async def test_a_sub_agent_is_counted_with_its_parent(totals: UsageCollector, way: Way) -> None:
    child = Agent(Scripted(paid(), name="child"), name="helper")
    parent = Agent(
        Scripted(paid("", calls=[call("helper", task="x")]), paid(), name="parent"),
        tools=[child.as_tool()],
        advisors=[totals],
    )
    response = await way(parent, "hi", conversation="c")
    assert totals.conversation("c").usage == response.usage == ONE + ONE + ONE
    assert totals.models()["scripted:child"].usage == ONE
    assert totals.total.turns == 1


@pytest.mark.rule("R-LOOP-5", "R-ONION-3")
@ways
async def test_a_turn_that_an_outer_layer_asks_again_is_one_turn(
    totals: UsageCollector, way: Way
) -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("again"))

    agent = Agent(Scripted(paid("a"), paid("b")), advisors=[Layer("again", turn=again), totals])
    response = await way(agent, "hi", conversation="c")
    for total in (totals.total, totals.conversation("c"), totals.models()["scripted:script"]):
        assert (total.turns, total.calls, total.usage) == (1, 2, response.usage)


@pytest.mark.rule("R-ONION-3")
@ways
async def test_inner_turns_that_overlap_are_each_counted_once(
    totals: UsageCollector, way: Way
) -> None:
    first_is_in_its_tool, second_is_done = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits for the other one."""
        first_is_in_its_tool.set()
        await soon(second_is_done.wait())
        return ""

    async def both(request: Any, call_next: Any) -> Any:
        async def second() -> None:
            await soon(first_is_in_its_tool.wait())
            await call_next(request)
            second_is_done.set()

        first, _ = await asyncio.gather(call_next(request), second())
        return first

    model = Scripted(paid("", calls=[call("wait")]), paid("second"), paid("first"))
    agent = Agent(model, tools=[wait], advisors=[Layer("both", turn=both), totals])
    response = await way(agent, "hi")
    assert (totals.total.turns, totals.total.calls, totals.total.usage) == (1, 3, response.usage)


@pytest.mark.rule("R-USAGE-1")
async def test_a_provider_that_says_nothing_leaves_the_sum_unknown(totals: UsageCollector) -> None:
    await Agent(Scripted("ok"), advisors=[totals]).run("hi")
    assert (totals.total.turns, totals.total.calls) == (1, 0)
    assert totals.total.usage.input is None


async def test_only_the_totals_last_used_are_kept() -> None:
    totals = UsageCollector(keep=2)
    for conversation in ("a", "b", "a", "c"):
        agent = Agent(Scripted(paid()), advisors=[totals])
        await agent.run("hi", conversation=conversation, owner=f"of {conversation}")
    assert totals.conversation("a").turns == 2
    assert totals.conversation("b").turns == 0
    assert totals.conversation("c").turns == 1
    assert totals.owner("of b").turns == 0
    assert totals.total.turns == 4


def test_keeping_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="keep=0"):
        UsageCollector(keep=0)


@pytest.mark.rule("R-USAGE-3")
@ways
async def test_costs_come_from_the_price_table(way: Way) -> None:
    totals = UsageCollector(prices=True)
    usage = Usage(input=1_000_000, output=1_000_000)
    model = Scripted(
        Say(text="a", usage=usage), Say(text="b", usage=usage), name="gpt-4o", provider="openai"
    )
    agent = Agent(model, advisors=[totals])
    await way(agent, "hi", conversation="c")
    once = totals.conversation("c").cost
    assert once is not None
    assert 1 < once < 100
    await way(agent, "hi", conversation="d")
    assert totals.total.cost == pytest.approx(2 * once)
    assert "$" in totals.report()


@pytest.mark.rule("R-USAGE-3")
async def test_one_price_that_is_not_known_makes_the_sum_unknown() -> None:
    totals = UsageCollector(prices=True)
    usage = Usage(input=10, output=1)
    known = Scripted(Say(text="a", usage=usage), name="gpt-4o", provider="openai")
    unknown = Scripted(Say(text="a", usage=usage), name="nobody-knows", provider="openai")
    for model in (known, unknown):
        await Agent(model, advisors=[totals]).run("hi")
    assert totals.total.cost is None
    assert totals.models()["openai:gpt-4o"].cost is not None
    assert "cost unknown" in totals.report()


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    "build",
    [
        lambda: UsageCollector(prices=True),
        lambda: Agent(Scripted("ok"), limits=Limits(cost=1.0)),
    ],
    ids=["collector", "limit"],
)
def test_prices_without_their_package_are_refused_before_any_turn(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(MissingExtraError, match=r"retinue\[prices\]"):
        build()


async def test_the_report_has_a_line_for_each_model_and_the_sum_last(
    totals: UsageCollector,
) -> None:
    for name in ("big", "small"):
        await Agent(Scripted(paid(), name=name), advisors=[totals]).run("hi")
    big, small, total = totals.report().splitlines()
    assert big == ("scripted:big: 1 turns, 1 calls, 10 tokens in (4 cached), 2 out, cost unknown")
    assert small.startswith("scripted:small: 1 turns")
    assert total.startswith("total: 2 turns, 2 calls, 20 tokens in (8 cached), 4 out")


@pytest.mark.rule("R-ONION-12")
async def test_a_hundred_turns_at_once_are_each_counted_once(totals: UsageCollector) -> None:
    agent = Agent(Scripted(paid(delay=0.0001), repeat=True), advisors=[totals])
    await soon(asyncio.gather(*(agent.run("hi", conversation=f"{n % 10}") for n in range(100))))
    assert (totals.total.turns, totals.total.calls) == (100, 100)
    assert all(totals.conversation(f"{n}").turns == 10 for n in range(10))


@pytest.mark.rule("R-USAGE-3")
@ways
async def test_totals_are_there_by_round_and_turn(way: Way) -> None:
    collector = UsageCollector()
    model = Scripted(used(10, "", calls=[call("search")]), used(20))
    side = Scripted(used(3))

    async def consult(request: Any, call_next: Any) -> Any:
        await request.consult("sure?", model=side)
        return await call_next(request)

    layers = [collector, layer("consult", "turn", consult)]
    response = await way(Agent(model, tools=[search], advisors=layers), "hi")
    rounds = collector.rounds(response.id)
    assert {number: total.usage.total for number, total in rounds.items()} == {0: 3, 1: 10, 2: 20}
    assert collector.of_turn(response.id).usage == response.usage
    assert collector.of_turn("unknown").calls == 0
    assert collector.rounds("unknown") == {}


async def test_the_totals_as_data_are_json() -> None:
    collector = UsageCollector()
    await Agent(Scripted(used(10)), advisors=[collector]).run("hi", conversation="c", owner="ann")
    data = json.loads(json.dumps(collector.as_data()))
    assert data["total"]["usage"]["input"] == 9
    assert data["owners"]["ann"]["turns"] == data["conversations"]["c"]["calls"] == 1
    assert data["models"]["scripted:script"]["usage"]["reasoning"] is None


async def test_a_turn_that_goes_on_after_a_pause_is_not_counted_again() -> None:
    collector = UsageCollector()

    async def resume(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(resumed=True))

    agent = Agent(Scripted(used(10)), advisors=[Layer("resume", turn=resume), collector])
    await agent.run("hi", owner="ann")
    assert (collector.owner("ann").turns, collector.owner("ann").calls) == (0, 1)
