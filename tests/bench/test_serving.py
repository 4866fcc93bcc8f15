"""The works of serving are fair: what is measured sends what the bare server beside it sends."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from bench.serving import Ask, over_grpc, over_sse

pytestmark = pytest.mark.parametrize("served", [over_grpc, over_sse], ids=["grpc", "sse"])


Served = Callable[[], AbstractAsyncContextManager[tuple[Ask, Ask]]]


async def both(served: Served, question: str) -> list[tuple[int, int, list[int]]]:
    """What each gives: events, bytes, and how late those with a stamp were."""
    async with served() as asks:
        return [await ask(question) for ask in asks]


async def test_both_send_as_many_events_and_as_many_bytes(served: Served) -> None:
    (ours, our_size, _), (bare, bare_size, _) = await both(served, "stream 500")
    assert ours == bare > 500
    assert our_size == pytest.approx(bare_size, rel=0.05)


async def test_each_token_tells_how_late_it_is(served: Served) -> None:
    for _, _, late in await both(served, "stamps 20"):
        assert len(late) >= 18
        assert all(one > 0 for one in late)
