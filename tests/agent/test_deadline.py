"""The time limit binds whoever asks a model, also after the loop has ended."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, Layer, Limits
from retinue.models import Scripted, call
from tests.virtual_time import virtual_time


async def wait() -> str:
    """Wait for long."""
    await asyncio.sleep(3600)
    return "done"


@pytest.mark.rule("R-LOOP-3", "R-USAGE-4")
@virtual_time
async def test_no_model_is_consulted_when_the_time_is_up() -> None:
    side = Scripted("a summary")

    async def sum_up(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        await request.consult("Sum it up.", model=side)
        return response

    agent = Agent(
        Scripted(call("wait")),
        tools=[wait],
        advisors=[Layer("sum up", turn=sum_up)],
        limits=Limits(seconds=1),
    )
    result = await agent.run("?")
    assert (result.status, result.reason) == ("limit", "The time limit of 1 seconds is reached.")
    assert not side.requests
