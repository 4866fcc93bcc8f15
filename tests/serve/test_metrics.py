"""Metrics: figures that are true, and labels that no client can add to."""

from typing import Any

import pytest

from retinue import Agent, Usage, user
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.serve.access import Caller
from retinue.serve.declared import gateway_of
from retinue.serve.faults import Refused
from retinue.serve.gateway import Gateway
from retinue.serve.jobs import Answered, Job
from retinue.serve.metrics import Metrics
from retinue.stores import InMemory
from tests.serve.scenes import pay, within

ANN = Caller("ann", frozenset(["turns"]))


async def end(gateway: Gateway, **options: Any) -> Any:
    reader = await gateway.start(ANN, Job(**options))
    await within(reader.end())
    return reader.turn


def figures(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.rule("R-USAGE-2")
async def test_tokens_of_a_turn_that_paused_are_counted_once() -> None:
    model = Scripted(
        Say(calls=[call("pay", amount=5)], usage=Usage(input=100, output=10)),
        Say(text="Done.", usage=Usage(input=7, output=3)),
    )
    agent = Agent(model, tools=[pay], gate="sensitive", advisors=[Memory(InMemory())], name="payer")
    gateway = gateway_of(agent)
    metrics = Metrics(gateway)
    paused = await end(gateway, agent="payer", messages=(user("Pay."),), conversation="c")
    answers = {paused.pending[0].id: Answered("approve")}
    await end(gateway, agent="payer", kind="resume", conversation="c", answers=answers)
    shown = figures(metrics)
    assert shown['retinue_tokens_total{agent="payer",kind="input"}'] == 107
    assert shown['retinue_tokens_total{agent="payer",kind="output"}'] == 13
    assert shown['retinue_turns_total{agent="payer",status="paused"}'] == 1
    assert shown['retinue_turns_total{agent="payer",status="completed"}'] == 1


@pytest.mark.rule("R-TOOL-12")
async def test_a_sub_agent_counts_by_its_tokens_and_not_by_its_words() -> None:
    inner = Agent(Scripted(Say(text="sub", usage=Usage(input=5, output=2))), name="inner")
    model = Scripted(
        Say(calls=[call("inner", task="go")], usage=Usage(input=30, output=4)),
        Say(text="", usage=Usage(input=1, output=1)),
    )
    outer = Agent(model, tools=[inner.as_tool()], name="outer")
    gateway = gateway_of(outer)
    metrics = Metrics(gateway)
    turn = await end(gateway, agent="outer", messages=(user("Ask."),))
    assert turn.end.status == "completed"
    shown = figures(metrics)
    assert shown['retinue_tokens_total{agent="outer",kind="input"}'] == 36
    assert shown['retinue_tokens_total{agent="outer",kind="output"}'] == 7
    assert 'retinue_first_token_seconds_count{agent="outer"}' not in shown


async def test_what_clients_ask_for_makes_no_labels() -> None:
    gateway = gateway_of(Agent(Scripted("Hi", repeat=True), name="echo"))
    metrics = Metrics(gateway)
    before = len(figures(metrics))
    for n in range(20):
        with pytest.raises(Refused):
            await end(gateway, agent=f"agent {n}", messages=(user("Hi"),))
    assert len(figures(metrics)) == before
    await end(gateway, agent="echo", messages=(user("Hi"),))
    once = len(figures(metrics))
    for n in range(20):
        await end(gateway, agent="echo", messages=(user("Hi"),), request=f"r{n}", context={"n": n})
    assert len(figures(metrics)) == once
