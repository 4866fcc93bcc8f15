"""What `ToolSearch` chooses, and what it says that it costs."""

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.headline.caching import CachingModel, many_tools
from retinue import Agent, ConfigError, Layer, Usage
from retinue.advisors import ToolSearch
from retinue.advisors.toolsearch import Prices, SearchReport
from retinue.advisors.toolsearch.costs import Shape, estimate
from retinue.models.scripted import Say, Scripted, call
from tests.advisors.talking import WAYS, Way
from tests.virtual_time import virtual_time

NEEDS = {"get_weather": "weather", "sendEmail": "send email"}
PRICES = Prices()
TURNS = 40


async def series(layers: list[Any], gap: float, instructions: int, minimum: int) -> float:
    """What turns cost that come one after another, `gap` seconds apart."""
    model = CachingModel(NEEDS, minimum=minimum)
    chat = Agent(
        model, tools=many_tools(50, 60), advisors=layers, instructions="x" * 4 * instructions
    )
    paid = 0.0
    for at in range(TURNS):
        result = await chat.run(f"Do number {at}.")
        assert result.text == "All of it is done."
        paid += PRICES.cost(result.usage)
        await asyncio.sleep(gap)
    return paid


@pytest.mark.parametrize(
    ("gap", "instructions", "minimum"),
    list(itertools.product((10.0, 1_000.0), (50, 1_500), (1, 1_024))),
)
@virtual_time
async def test_auto_costs_at_most_a_twentieth_more_than_the_best_way(
    gap: float, instructions: int, minimum: int
) -> None:
    prices = Prices(minimum=minimum)

    async def cost(**options: Any) -> float:
        layers = [ToolSearch(limit=3, prices=prices, **options)]
        return await series(layers, gap, instructions, minimum)

    plain = await series([], gap, instructions, minimum)
    append = await cost(mode="always")
    result = await cost(mode="always", reveal="result")
    assert await cost() <= 1.05 * min(plain, append)
    assert await cost(reveal="auto") <= 1.05 * min(plain, append, result)


@virtual_time
async def test_few_short_definitions_are_all_sent() -> None:
    model = CachingModel(NEEDS)
    chat = Agent(model, tools=many_tools(12), advisors=[ToolSearch()])
    result = await chat.run("?")
    report: SearchReport = result.context["tool_search"]
    assert report.way == "all"
    assert report.tokens < 5_000
    assert [one.name for one in model.requests[0].tools][:2] == ["get_weather", "sendEmail"]
    assert len(model.requests[0].tools) == 12
    eager = Agent(model, tools=many_tools(12), advisors=[ToolSearch(threshold=100)])
    assert (await eager.run("?")).context["tool_search"].way == "append"


@virtual_time
async def test_a_search_that_an_earlier_turn_teaches_still_works_where_all_are_sent() -> None:
    model = Scripted(call("search_tools", query="weather"), "done")
    result = await Agent(model, tools=many_tools(12), advisors=[ToolSearch()]).run("?")
    assert result.context["tool_search"].way == "all"
    assert "get_weather" in model.requests[-1].messages[-1].tool_results[0].text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reveal", ["append", "result"])
async def test_the_report_names_both_costs_and_is_near_what_was_paid(way: Way, reveal: Any) -> None:
    model = CachingModel(NEEDS)
    layer = ToolSearch(mode="always", reveal=reveal, limit=3)
    chat = Agent(model, tools=many_tools(50, 60), advisors=[layer], instructions="x" * 8_000)
    result = [await way(chat, "?") for _ in range(3)][-1]
    report: SearchReport = result.context["tool_search"]
    assert report.way == reveal
    assert report.tools == 50
    assert report.searches == 2
    assert report.paid == pytest.approx(PRICES.cost(result.usage))
    assert report.costs[reveal] == pytest.approx(report.paid, rel=0.1)
    assert report.hit_rate is not None
    assert report.hit_rate > 0.9
    everything = Agent(model, tools=many_tools(50, 60), instructions="x" * 8_000)
    result = [await everything.run("?") for _ in range(3)][-1]
    assert report.costs["all"] == pytest.approx(PRICES.cost(result.usage), rel=0.1)


async def test_a_turn_that_an_outer_layer_enters_again_is_reported_as_a_whole() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Shorter."))

    def costs(report: SearchReport) -> float:
        return report.costs["append"]

    reports: list[SearchReport] = []
    for script, layers in (
        ([call("search_tools", query="weather"), "done"], []),
        ([call("search_tools", query="weather"), "done", "short"], [Layer("again", turn=again)]),
    ):
        search = ToolSearch(mode="always")
        chat = Agent(Scripted(*script), tools=many_tools(50), advisors=[*layers, search])
        reports.append((await chat.run("?")).context["tool_search"])
    once, twice = reports
    assert (once.searches, twice.searches) == (1, 1)
    assert once.found == twice.found
    assert costs(twice) > costs(once)


async def test_a_provider_that_reports_nothing_is_taken_to_cache_nothing() -> None:
    model = Scripted(Say(text="done"), repeat=True)
    chat = Agent(model, tools=many_tools(50, 60), advisors=[ToolSearch()])
    reports = [(await chat.run("?")).context["tool_search"] for _ in range(3)]
    assert [one.way for one in reports] == ["append"] * 3
    assert reports[-1].paid is None
    assert reports[-1].hit_rate is None


async def test_a_turn_is_shown_its_tools_one_way_from_beginning_to_end() -> None:
    model = CachingModel(NEEDS)
    chat = Agent(model, tools=many_tools(50, 60), advisors=[ToolSearch()])
    await asyncio.gather(*(chat.run(f"{at}?") for at in range(20)))
    by_turn: dict[str, set[bool]] = {}
    for request in model.requests:
        searches = "search_tools" in [one.name for one in request.tools]
        by_turn.setdefault(request.turn_id, set()).add(searches)
    assert all(len(ways) == 1 for ways in by_turn.values())


def test_cached_tokens_cost_what_the_prices_say() -> None:
    usage = Usage(input=1_000, output=10, cache_read=600, cache_write=300)
    assert Prices(write=1.25).cost(usage) == pytest.approx(100 + 60 + 375 + 50)
    assert Prices().cost(Usage()) == 0


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize("options", [{"read": -1}, {"output": "5"}, {"lifetime": float("nan")}])
def test_prices_that_are_none_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"Prices\\({next(iter(options))}="):
        Prices(**options)


shapes = st.builds(
    Shape,
    standing=st.integers(0, 50_000),
    question=st.integers(1, 5_000),
    calls=st.floats(1, 8),
    growth=st.integers(0, 2_000),
    searches=st.floats(0, 4),
    asked=st.floats(0, 8),
    revealed=st.integers(0, 5_000),
    across=st.floats(0, 1),
    within=st.floats(0, 1),
    again=st.floats(0, 1),
)


@given(shapes, st.integers(0, 50_000), st.sampled_from(["all", "append", "result"]))
def test_an_estimate_lies_between_all_cached_and_nothing_cached(
    shape: Shape, fixed: int, way: Any
) -> None:
    cost = estimate(way, shape, fixed, PRICES)
    free = estimate(way, shape, fixed, Prices(read=0.0, minimum=0))
    full = estimate(way, shape, fixed, Prices(read=1.0))
    assert free - 1e-6 <= cost <= full + 1e-6
