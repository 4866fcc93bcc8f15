"""Quotas of costs, and the ledger that quotas are kept in."""

from collections.abc import Sequence

import pytest

from retinue import Agent, ConfigError, Usage
from retinue.advisors import LocalLedger, Quota
from retinue.advisors.usage import Claim
from retinue.chains import Spent
from retinue.models.scripted import Say, Scripted
from tests.advisors.metering import limited, used
from tests.advisors.talking import WAYS

ways = pytest.mark.parametrize("way", WAYS)


def a_cent_a_token(spent: Sequence[Spent]) -> float:
    return sum(one.usage.total for one in spent) / 100


async def test_a_quota_of_costs_is_kept_by_your_own_prices() -> None:
    quota = Quota(per="owner", cost=1.0)
    collector = limited(quota, prices=a_cent_a_token)
    agent = Agent(Scripted(used(90), repeat=True), advisors=[collector])
    assert (await agent.run("hi", owner="ann")).status == "completed"
    refused = await agent.run("hi", owner="ann")
    assert refused.reason is not None
    assert "$1.0000 for owner 'ann'" in refused.reason
    assert "$0.9000 are used" in refused.reason
    assert await collector.used(quota, "ann") == {"cost": pytest.approx(0.9)}
    assert collector.owner("ann").cost == pytest.approx(0.9)


async def test_a_quota_of_costs_is_kept_by_the_price_table() -> None:
    quota = Quota(cost=3.0)
    collector = limited(quota, prices=True)
    usage = Usage(input=1_000_000, output=0)
    model = Scripted(Say(text="a", usage=usage), repeat=True, name="gpt-4o", provider="openai")
    agent = Agent(model, advisors=[collector])
    while (await agent.run("hi")).status == "completed":
        assert len(model.requests) < 9
    assert (await collector.used(quota))["cost"] >= 2.5


async def test_a_cost_that_is_not_known_afterwards_is_taken_at_the_estimate() -> None:
    def odd(spent: Sequence[Spent]) -> float | None:
        return 0.25 if spent[0].estimated else None

    quota = Quota(cost=1.0)
    collector = limited(quota, prices=odd)
    await Agent(Scripted(used(10)), advisors=[collector]).run("hi")
    assert await collector.used(quota) == {"cost": 0.25}
    assert collector.total.cost is None


async def test_a_model_without_a_price_under_a_quota_of_costs_is_an_error_that_names_it() -> None:
    model = Scripted("never")
    agent = Agent(model, advisors=[limited(Quota(cost=1.0), prices=True)])
    with pytest.raises(ConfigError, match="scripted:script"):
        await agent.run("hi")
    assert model.requests == []


async def test_two_collectors_on_one_ledger_hold_to_one_quota() -> None:
    ledger, quota = LocalLedger(), Quota(tokens=60)
    first, second = (limited(quota, ledger=ledger) for _ in range(2))
    await Agent(Scripted(used(50)), advisors=[first]).run("hi")
    assert (await Agent(Scripted(), advisors=[second]).run("hi")).status == "limit"
    assert await second.used(quota) == {"tokens": 50}


async def test_a_ledger_lets_go_of_accounts_whose_time_is_over() -> None:
    ledger = LocalLedger()
    for span in range(5):
        claim = Claim(f"span {span}", 1.0, 1.0, expires=10.0 * (span + 1))
        assert await ledger.reserve([claim], now=10.0 * span) is None
    assert [await ledger.used(f"span {n}") for n in range(5)] == [0, 0, 0, 0, 1]


async def test_a_ledger_reserves_all_or_nothing() -> None:
    ledger = LocalLedger()
    wide, narrow = Claim("wide", 2.0, 9.0), Claim("narrow", 2.0, 1.0)
    assert await ledger.reserve([wide, narrow], now=0.0) == 1
    assert (await ledger.used("wide"), await ledger.used("narrow")) == (0, 0)
