"""The clock that jumps keeps the order of things."""

import asyncio
import time

from tests.virtual_time import virtual_time


@virtual_time
async def test_an_hour_passes_at_once_and_in_order() -> None:
    began, loop = time.monotonic(), asyncio.get_running_loop()
    woken: list[int] = []

    async def sleeper(seconds: int) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    await asyncio.gather(sleeper(3600), sleeper(60), sleeper(1))
    assert woken == [1, 60, 3600]
    assert round(loop.time()) == 3600
    assert time.monotonic() - began < 60


@virtual_time
async def test_a_thread_is_waited_for_in_real_time() -> None:
    assert await asyncio.to_thread(lambda: "done") == "done"
