"""Turns that another task reads."""

import asyncio

import pytest

from retinue import Agent, ConfigError
from retinue.advisors import Feed, Forward, Heard
from retinue.models import Say, Scripted
from retinue.models.scripted import call
from tests.advisors.talking import WAYS, Way, by_parent, soon
from tests.agent.reading import quiet


@pytest.mark.parametrize("way", WAYS)
async def test_another_task_reads_turns_and_their_text(way: Way) -> None:
    feed = Feed()
    seen: list[tuple[str | None, int, str]] = []

    async def reader() -> None:
        async for turn in feed:
            events = [event async for event in turn]
            seen.append((turn.conversation, len(events), turn.text))

    reading = asyncio.create_task(reader())
    model = Scripted(Say(text=["I look."], calls=[call("none")]), Say(text=["x"] * 50), "second")
    agent = Agent(model, advisors=[Forward(feed)])
    await soon(way(agent, "Go.", conversation="one"))
    await soon(way(agent, "Go."))
    feed.close()
    await soon(reading)
    assert [(name, text) for name, _, text in seen] == [("one", "x" * 50), (None, "second")]
    assert (await agent.with_(model=Scripted("hi")).run("Go.")).text == "hi"  # nobody reads now
    await quiet()


async def test_a_reader_of_a_feed_that_leaves_lets_the_turn_go_on() -> None:
    feed = Feed()
    agent = Agent(Scripted(Say(text=["x"] * 500)), advisors=[Forward(feed, limit=5)])
    running = asyncio.create_task(agent.run("Go."))
    turn: Heard = await soon(anext(aiter(feed)))
    events = aiter(turn)
    await soon(anext(events))
    turn.leave()
    assert (await soon(running)).text == "x" * 500
    with pytest.raises(ConfigError, match="iterate it once"):
        aiter(turn)


@pytest.mark.rule("R-STREAM-6")
async def test_a_reader_that_breaks_off_its_loop_lets_the_turn_go_on() -> None:
    feed = Feed()
    agent = Agent(Scripted(Say(text=["x"] * 500)), advisors=[Forward(feed, limit=5, patience=None)])
    running = asyncio.create_task(agent.run("Go."))
    turn: Heard = await soon(anext(aiter(feed)))
    async for _ in turn:
        break
    assert (await soon(running)).text == "x" * 500
    await quiet()


async def test_a_feed_ends_the_turn_of_a_sub_agent_too() -> None:
    feed = Feed()

    async def reader() -> str:
        turn = await anext(aiter(feed))
        assert [event async for event in turn]
        return turn.text

    reading = asyncio.create_task(reader())
    await soon(by_parent(Agent(Scripted("from the child"), advisors=[Forward(feed)]), "Go."))
    assert await soon(reading) == "from the child"
