"""Quotas: what is refused before it is asked, what is given back, and when a quota is new."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, ConfigError, Layer, Settings, Usage, tool
from retinue.advisors import Memory, Quota, UsageCollector
from retinue.chains import OnionWarning
from retinue.errors import ModelRefused
from retinue.models.scripted import Say, Scripted, call
from tests.advisors.metering import limited, used
from tests.advisors.talking import WAYS, Way, by_parent, kept, layer, said, soon

ways = pytest.mark.parametrize("way", WAYS)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@tool
async def search(query: str = "x") -> str:
    """Looks it up."""
    return f"found {query}"


@pytest.mark.rule("R-USAGE-3", "R-LOOP-3")
@ways
async def test_a_call_that_the_quota_has_no_room_for_is_not_made(way: Way) -> None:
    collector = limited(Quota(per="owner", tokens=100))
    model = Scripted(used(90), used(5))
    agent = Agent(model, advisors=[collector])
    assert (await way(agent, "1", owner="ann")).status == "completed"
    response = await way(agent, "2", owner="ann")
    assert (response.status, response.text, len(model.requests)) == ("limit", "", 1)
    assert response.reason is not None
    assert "100 tokens for owner 'ann' is used up: 90 tokens are used" in response.reason
    assert (await way(agent, "3", owner="bob")).status == "completed", "others have their own"
    assert (collector.total.turns, collector.total.calls) == (3, 2)


@pytest.mark.rule("R-LOOP-3", "R-MEM-2")
@ways
async def test_what_was_done_before_the_refusal_is_kept(way: Way) -> None:
    memory = Memory()
    model = Scripted(used(90, "Looking.", calls=[call("search")]), "never")
    agent = Agent(model, tools=[search], advisors=[limited(Quota(tokens=130)), memory])
    response = await way(agent, "q", conversation="c")
    assert response.status == "limit"
    assert response.text == "Looking."
    assert said(response.messages)[-1] == "tool: found x"
    assert await kept(memory.store) == [
        "user: q", "assistant: Looking. +search", "tool: found x"
    ]  # fmt: skip


@pytest.mark.rule("R-MEM-2")
async def test_a_question_that_was_refused_waits_in_the_log_as_unanswered() -> None:
    memory, clock = Memory(), Clock()
    quota = Quota(per="conversation", tokens=40, every=60)
    model = Scripted(used(39, "one"), used(39, "three"))
    agent = Agent(model, advisors=[limited(quota, clock=clock), memory])
    await agent.run("1", conversation="c")
    assert (await agent.run("2", conversation="c")).status == "limit"
    clock.now += 60
    await agent.run("3", conversation="c")
    assert await kept(memory.store) == [
        "user: 1", "assistant: one", "(unanswered) user: 2", "user: 3", "assistant: three"
    ]  # fmt: skip


@pytest.mark.rule("R-USAGE-3")
async def test_a_quota_is_new_when_its_time_is_over_and_the_refusal_says_when() -> None:
    clock = Clock(86_400 * 20_000 + 3_600)
    agent = Agent(
        Scripted(used(90), repeat=True),
        advisors=[limited(Quota(tokens=100, every=86_400), clock=clock)],
    )
    await agent.run("1")
    refused = await agent.run("2")
    assert refused.reason is not None
    assert "every 86,400 seconds" in refused.reason
    assert refused.reason.endswith("it renews at 2024-10-05 00:00:00 UTC.")
    clock.now = 86_400 * 20_001 - 0.001
    assert (await agent.run("3")).status == "limit"
    clock.now = 86_400 * 20_001
    assert (await agent.run("4")).status == "completed"


@pytest.mark.rule("R-USAGE-3")
@pytest.mark.parametrize(
    "broken",
    [ModelRefused("no"), Say(error=ModelRefused("no"), finish="")],
    ids=["refused", "before the first token"],
)
async def test_a_call_that_fails_before_its_answer_gives_all_back(broken: Any) -> None:
    quota = Quota(tokens=50)
    collector = limited(quota)
    agent = Agent(Scripted(broken, used(5)), advisors=[collector])
    with pytest.raises(ModelRefused):
        await agent.run("hi")
    assert await collector.used(quota) == {"tokens": 0}
    assert (await agent.run("again")).status == "completed"


@pytest.mark.rule("R-USAGE-2")
@pytest.mark.behaviour("B-US-3")
@ways
async def test_a_call_that_fails_in_its_answer_is_charged_for_what_it_said(way: Way) -> None:
    quota = Quota(tokens=1_000)
    collector = limited(quota)
    agent = Agent(Scripted(Say(text="x" * 400, error=ModelRefused("no"))), advisors=[collector])
    with pytest.raises(ModelRefused):
        await way(agent, "hi", owner="ann")
    assert 100 <= (await collector.used(quota))["tokens"] < 120
    assert collector.owner("ann").unreported == 1


@pytest.mark.rule("R-LOOP-8", "R-USAGE-2")
@pytest.mark.behaviour("B-US-3")
async def test_a_reader_that_leaves_before_the_end_is_charged_for_what_came() -> None:
    quota = Quota(tokens=10_000)
    collector = limited(quota, expect=5_000)
    came = asyncio.Event()

    async def hang(request: Any) -> str:
        came.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(Scripted(hang), advisors=[collector])
    async with agent.stream("hi") as turn:
        await soon(came.wait())
        assert (await collector.used(quota))["tokens"] > 5_000, "reserved while it runs"
        turn.cancel()
        await soon(turn.result())
    assert await collector.used(quota) == {"tokens": 0}, "nothing had come"
    talking = Agent(Scripted(Say(text=["x" * 40] * 1_000)), advisors=[collector])
    async with talking.stream("hi") as turn:
        async for event in turn:
            if getattr(event, "text", ""):
                break
    assert 0 < (await collector.used(quota))["tokens"] < 5_000


@pytest.mark.rule("R-USAGE-3", "R-ONION-12")
async def test_a_hundred_turns_at_once_never_use_more_than_the_quota() -> None:
    quota = Quota(tokens=1_000)
    collector = limited(quota, expect=50)
    model = Scripted(Say(text="ok", usage=Usage(input=5, output=50), delay=0.001), repeat=True)
    agent = Agent(model, advisors=[collector])
    turns = await soon(asyncio.gather(*(agent.run("hi") for _ in range(100))))
    done = [one for one in turns if one.status == "completed"]
    assert {one.status for one in turns} == {"completed", "limit"}
    assert len(done) == len(model.requests)
    assert 900 <= 55 * len(done) <= 1_000
    assert await collector.used(quota) == {"tokens": 55 * len(done)}


@pytest.mark.rule("R-USAGE-3")
@given(
    limit=st.integers(1, 300),
    steps=st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 60), st.booleans()), min_size=1, max_size=12
    ),
)
def test_however_calls_end_the_quota_is_passed_by_no_more_than_the_last_error(
    limit: int, steps: list[tuple[int, int, bool]]
) -> None:
    quota = Quota(tokens=limit)
    collector = limited(quota, expect=30)
    script = [
        Say(text="x", usage=Usage(input=a, output=b), error=ModelRefused("no") if fails else None)
        for a, b, fails in steps
    ]
    model = Scripted(*script)
    agent = Agent(model, advisors=[collector])

    async def scenario() -> None:
        total = 0
        for _ in steps:
            before = len(model.requests)
            try:
                response = await agent.run("hi")
            except ModelRefused:
                response = None
            if len(model.requests) > before:
                assert total + 30 <= limit
                total += sum(steps[before][:2])
            else:
                assert response is not None
                assert response.status == "limit"
            assert await collector.used(quota) == {"tokens": total}

    asyncio.run(scenario())


@pytest.mark.rule("R-USAGE-4")
@ways
async def test_calls_on_the_side_are_held_to_the_quota_too(way: Way) -> None:
    side = Scripted(used(60), repeat=True)

    async def consult(request: Any, call_next: Any) -> Any:
        await request.consult("sure?", model=side)
        return await call_next(request)

    agent = Agent(
        Scripted("never"),
        advisors=[limited(Quota(tokens=80)), layer("consult", "turn", consult)],
    )
    response = await way(agent, "hi")
    assert (response.status, len(side.requests)) == ("limit", 1)
    assert response.usage == Usage(input=59, output=1)


@pytest.mark.rule("R-TOOL-12")
@ways
async def test_the_calls_of_a_sub_agent_are_held_to_the_quota_of_its_parent(way: Way) -> None:
    quota = Quota(per="owner", tokens=130)
    collector = limited(quota)
    helping = Scripted(used(20, "", calls=[call("search")]), used(20), repeat=True)
    child = Agent(helping, tools=[search], advisors=[collector], name="helper")
    parent = Agent(
        Scripted(used(50, "", calls=[call("helper", task="x")]), "never"),
        tools=[child.as_tool()],
        advisors=[collector],
    )
    response = await way(parent, "hi", owner="ann")
    assert (response.status, len(helping.requests)) == ("limit", 1)
    assert await collector.used(quota, "ann") == {"tokens": 70}
    assert collector.owner("ann").usage.total == 70, "no call is counted twice"
    assert collector.total.turns == 1


@pytest.mark.rule("R-TOOL-12")
async def test_a_collector_of_a_sub_agent_alone_counts_and_limits_it() -> None:
    collector = limited(Quota(tokens=30))
    model = Scripted(used(29))
    agent = Agent(model, advisors=[collector])
    assert (await by_parent(agent, "task")).text == "done"
    response = await by_parent(agent, "task")
    assert "helper ended as limit" in said(response.messages)[2]
    assert collector.total.usage.total == 29


@pytest.mark.rule("R-USAGE-1")
@ways
async def test_a_call_without_usage_is_charged_by_estimate_and_marked(way: Way) -> None:
    quota = Quota(per="conversation", tokens=1_000)
    collector = limited(quota)
    agent = Agent(
        Scripted(Say(text="y" * 200), used(9)), instructions="x" * 400, advisors=[collector]
    )
    first = await way(agent, "hi", conversation="c")
    assert first.usage == Usage(), "what no provider said stays unknown"
    total = collector.conversation("c")
    assert (total.calls, total.unreported, total.usage) == (0, 1, Usage())
    assert total.estimated == Usage(input=101 + 4 + 1, output=50)
    assert await collector.used(quota, "c") == {"tokens": 156}
    await way(agent, "hi", conversation="c")
    assert str(total).endswith("; 1 calls unreported, about 106 in and 50 out")


async def test_the_tokens_of_an_answer_are_known_beforehand_by_its_settings() -> None:
    agent = Agent(Scripted(used(5), repeat=True), advisors=[limited(Quota(tokens=500))])
    modest = await agent.run("hi", settings=Settings(max_tokens=100))
    greedy = await agent.run("hi", settings=Settings(max_tokens=600))
    assert (modest.status, greedy.status) == ("completed", "limit")
    assert greedy.reason is not None
    assert "less than one call may need" in greedy.reason
    assert "max_tokens" in greedy.reason


async def test_quotas_of_every_kind_hold_together_and_none_is_charged_for_another() -> None:
    per_model, per_all = Quota(per="model", tokens=60), Quota(tokens=100)
    collector = limited(per_model, per_all)
    one, two = (Scripted(used(50), repeat=True, name=name) for name in ("one", "two"))
    assert (await Agent(one, advisors=[collector]).run("hi")).status == "completed"
    assert (await Agent(one, advisors=[collector]).run("hi")).status == "limit"
    assert await collector.used(per_all) == {"tokens": 50}
    assert (await Agent(two, advisors=[collector]).run("hi")).status == "completed"
    refused = await Agent(Scripted(name="three"), advisors=[collector]).run("hi")
    assert refused.reason is not None
    assert refused.reason.startswith("The quota of 100 tokens is used up")
    assert await collector.used(per_model, "scripted:three") == {"tokens": 0}


async def test_turns_without_an_owner_share_one_quota_and_those_of_no_conversation_do_not() -> None:
    agent = Agent(
        Scripted(used(30), repeat=True),
        advisors=[limited(Quota(per="owner", tokens=50), Quota(per="conversation", tokens=50))],
    )
    assert (await agent.run("hi", owner="ann")).status == "completed"
    assert (await agent.run("hi")).status == "completed"
    refused = await agent.run("hi")
    assert refused.reason is not None
    assert "for calls without an owner" in refused.reason


# -- costs -----------------------------------------------------------------------------------------


async def test_the_share_of_a_turn_without_a_conversation_is_let_go_and_that_of_one_is_not() -> (
    None
):
    clock, quota = Clock(), Quota(per="conversation", tokens=150)
    collector = limited(quota, clock=clock)
    agent = Agent(Scripted(used(90), repeat=True), advisors=[collector])
    alone = await agent.run("1")
    await agent.run("1", conversation="c")
    assert await collector.used(quota, alone.id) == {"tokens": 90}
    clock.now += 100_000
    refused = await agent.run("2" * 400, conversation="c")
    assert refused.status == "limit"
    assert "renews" not in (refused.reason or "")
    assert await collector.used(quota, alone.id) == {"tokens": 0}
    assert await collector.used(quota, "c") == {"tokens": 90}


async def test_a_provider_that_says_half_is_taken_at_the_estimate_for_the_other() -> None:
    quota = Quota(tokens=100)
    collector = limited(quota)
    await Agent(Scripted(Say(text="ok", usage=Usage(output=7))), advisors=[collector]).run("hi")
    assert await collector.used(quota) == {"tokens": 5 + 7}


# -- the ledger ------------------------------------------------------------------------------------


# -- totals ----------------------------------------------------------------------------------------


# -- refused at construction -----------------------------------------------------------------------


@pytest.mark.rule("R-ONION-9")
@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: Quota(), "limits nothing"),
        (lambda: Quota(per="user", tokens=1), "'user'.*owner"),  # pyright: ignore[reportArgumentType]
        (lambda: Quota(tokens=0), "tokens=0"),
        (lambda: Quota(cost=-1), "cost=-1"),
        (lambda: Quota(tokens=1, every=0), "every=0"),
        (lambda: UsageCollector(expect=0), "expect=0"),
        (lambda: UsageCollector(keep="9"), "keep='9'"),  # pyright: ignore[reportArgumentType]
        (lambda: UsageCollector(quotas=[Quota(cost=1)]), "prices"),
        (lambda: UsageCollector(quotas=[5]), r"\[5\]"),  # pyright: ignore[reportArgumentType]
        (lambda: UsageCollector(quotas=[Quota(tokens=1), Quota(tokens=2)]), "per all"),
    ],
)
def test_what_cannot_be_is_refused_by_name(build: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        build()


@pytest.mark.rule("R-ONION-9")
def test_a_collector_inside_a_layer_that_asks_first_is_warned_about() -> None:
    async def consult(request: Any, call_next: Any) -> Any:
        await request.consult("sure?")
        return await call_next(request)

    asking = Layer("moderation", turn=consult, traits=frozenset({"consults"}))
    with pytest.warns(OnionWarning, match="moderation stands outside UsageCollector"):
        Agent(Scripted(), advisors=[asking, UsageCollector()])
    assert Agent(Scripted(), advisors=[UsageCollector(), asking]).explain().warnings == ()
