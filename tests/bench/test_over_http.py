"""The works over HTTP are fair: retinue and the floor hear the same and say the same."""

from collections.abc import AsyncIterator

import pytest

from bench.floor import schema_of
from bench.models import ANSWER
from bench.over_http import Pair, pair
from bench.rows import Row
from bench.server import TOKEN
from bench.works import QUESTION, noop
from retinue import tool
from retinue.chains.events import TextChunk


@pytest.fixture
async def both() -> AsyncIterator[Pair]:
    async with pair() as made:
        yield made


@pytest.mark.parametrize(
    ("model", "rounds"), [("oneshot", 1), ("parallel-8", 2), ("loop-1", 2), ("loop-5", 6)]
)
async def test_both_take_the_same_turn_and_send_the_same(
    both: Pair, model: str, rounds: int
) -> None:
    agent = both.ours(model, tools=(tool(noop),))
    floor = both.floor(model, tools={"noop": noop}, schemas=[schema_of("noop", "Do nothing.")])
    answer = await agent.run(QUESTION)
    assert (answer.text, answer.rounds) == (ANSWER, rounds)
    assert await floor.run(QUESTION) == ANSWER
    await both.check(lambda: agent.run(QUESTION), lambda: floor.run(QUESTION))


@pytest.mark.parametrize("kind", ["burst", "drip"])
@pytest.mark.parametrize("transforms", [0, 5])
async def test_both_read_every_token_of_the_same_stream(
    both: Pair, kind: str, transforms: int
) -> None:
    agent, floor = both.ours(f"{kind}-300", transforms=transforms), both.floor(f"{kind}-300")
    ours: list[str] = []
    theirs: list[str] = []

    async def stream() -> None:
        async for event in agent.stream(QUESTION):
            if isinstance(event, TextChunk):
                ours.append(event.text)

    await both.check(stream, lambda: floor.stream(QUESTION, theirs.append))
    assert ours == theirs == [TOKEN] * 300


async def test_a_floor_that_sends_something_else_is_found_out(both: Pair) -> None:
    agent, floor = both.ours("oneshot"), both.floor("oneshot")
    with pytest.raises(AssertionError, match="the floor"):
        await both.check(lambda: agent.run(QUESTION), lambda: floor.run("Something else?"))


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        (14.0, "≤ 1.50x: met"),
        (15.0, "≤ 1.50x: met"),
        (15.03, "just missed"),
        (17.5, "missed by 0.25x"),
    ],
)
def test_a_line_says_whether_the_multiple_of_the_floor_is_met(figure: float, told: str) -> None:
    row = Row("a turn", "work", "us", "µs", None, "bare_us", 1.5)
    assert row.line({"us": figure, "bare_us": 10.0}).endswith(told)


@pytest.mark.parametrize(
    ("figure", "told"), [(40.0, "≤ 40 ms: met"), (41.5, "≤ 40 ms: missed by 1.5 ms")]
)
def test_a_line_says_whether_the_figure_is_met(figure: float, told: str) -> None:
    assert Row("built", "work", "ms", "ms", 40).line({"ms": figure}).endswith(told)
