"""Five hundred streams at once on one gateway: none is lost, and memory is bounded."""

import asyncio
import tracemalloc
from typing import Any

from retinue import Agent
from retinue.chains import ChatRequest
from retinue.chains.events import final_text
from retinue.models.scripted import Say, Scripted
from retinue.serve.gateway import Gateway
from tests.serve.serving import serving

STREAMS = 500
WORDS = 40


async def test_five_hundred_streams_run_at_once_and_none_is_lost() -> None:
    gateways: list[Gateway] = []
    running: list[int] = []
    asked = 0
    all_asked = asyncio.Event()

    async def answer(request: ChatRequest) -> Say:
        nonlocal asked
        asked += 1
        if asked == STREAMS:
            running.append(gateways[0].load().running)
            all_asked.set()
        await all_asked.wait()  # so that all run at the same time
        name = request.messages[-1].text
        return Say(text=[f"{name} " for _ in range(WORDS)])

    async def one(here: Any, number: int) -> str:
        got = await here.events("/v1/turns", {"input": f"n{number}", "stream": True})
        assert [event.seq for event in got] == [*range(1, len(got) + 1)]
        assert got[-1].status == "completed"
        return final_text(got)

    async with serving(Agent(Scripted(answer, repeat=True), name="many")) as here:
        gateways.append(here.gateway)
        tracemalloc.start()
        try:
            async with asyncio.timeout(60):
                texts = await asyncio.gather(*(one(here, n) for n in range(STREAMS)))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert texts == [f"n{number} " * WORDS for number in range(STREAMS)]
    assert running == [STREAMS]
    assert peak < 150_000_000  # the clients' side and all events that they have read included
