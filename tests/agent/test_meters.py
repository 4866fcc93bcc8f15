"""Meters: who is asked before each model call, and told what came of it."""

from collections.abc import Sequence
from typing import Any

import pytest

from retinue import Agent, Layer, Usage
from retinue.chains import Booking, ChatRequest, Spent
from retinue.errors import ModelOverloaded, ModelRefused
from retinue.models import ModelRetry
from retinue.models.scripted import Say, Scripted
from tests.advisors.talking import WAYS, Way

ONE = Usage(input=10, output=2)
ways = pytest.mark.parametrize("way", WAYS)


class Meter:
    """Books every call, or refuses it, and notes how it was settled."""

    def __init__(self, refusal: str | None = None, error: Exception | None = None) -> None:
        self.refusal = refusal
        self.error = error
        self.asked: list[str] = []
        self.settled: list[list[Spent]] = []

    async def reserve(self, request: ChatRequest, model: str, provider: str) -> Booking | str:
        self.asked.append(f"{provider}:{model}")
        return self if self.refusal is None else self.refusal

    async def settle(self, spent: Sequence[Spent]) -> None:
        self.settled.append([*spent])
        if self.error is not None:
            raise self.error


def metered(model: Any, *meters: Meter, **options: Any) -> Agent:
    async def turn(request: Any, call_next: Any) -> Any:
        for meter in meters:
            assert request.meter_with(meter, meter)
            assert not request.meter_with(meter, Meter())
        return await call_next(request)

    return Agent(model, advisors=[Layer("meters", turn=turn)], **options)


@pytest.mark.rule("R-USAGE-2")
@ways
async def test_a_meter_is_told_what_each_try_of_a_call_used(way: Way) -> None:
    meter = Meter()
    failing = Say(usage=ONE, error=ModelOverloaded("later"), finish="")
    agent = metered(
        Scripted(failing, Say(text="ok", usage=ONE)), meter, retry=ModelRetry(base=0.001)
    )
    await way(agent, "hi")
    assert meter.asked == ["scripted:script"]
    assert [[one.usage for one in call] for call in meter.settled] == [[ONE, ONE]]


@pytest.mark.rule("R-USAGE-1")
@ways
async def test_where_nothing_is_reported_it_is_told_an_estimate_that_says_so(way: Way) -> None:
    meter = Meter()
    await way(metered(Scripted("x" * 40), meter), "hi")
    assert meter.settled == [[Spent("script", "scripted", Usage(5, 10), 1, True)]]


async def test_a_call_that_never_got_an_answer_used_nothing() -> None:
    meter = Meter()
    with pytest.raises(ModelRefused):
        await metered(Scripted(ModelRefused("no")), meter).run("hi")
    assert meter.settled == [[]]


async def test_an_empty_answer_is_one_that_was_paid_for() -> None:
    meter = Meter()
    await metered(Scripted(Say()), meter).run("hi")
    assert [one.estimated for one in meter.settled[0]] == [True]


@pytest.mark.rule("R-LOOP-3")
@ways
async def test_where_one_refuses_what_the_others_hold_is_let_go(way: Way) -> None:
    first, second = Meter(), Meter("The purse is empty.")
    model = Scripted("never")
    response = await way(metered(model, first, second), "hi")
    assert (response.status, response.reason) == ("limit", "The purse is empty.")
    assert first.settled == [[]]
    assert second.settled == []
    assert model.requests == []


async def test_a_meter_that_raises_does_not_keep_another_from_its_settlement() -> None:
    first, second = Meter(error=LookupError("the ledger is gone")), Meter()
    with pytest.raises(LookupError, match="ledger"):
        await metered(Scripted(Say(text="ok", usage=ONE)), first, second).run("hi")
    assert [one.usage for one in second.settled[0]] == [ONE]
