"""Whole agents with a Claude that refuses whatever the real one refuses: no request is refused."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from retinue import Agent, Image, Limits, Settings, tool
from retinue.advisors import Memory
from retinue.models import OpenAI
from retinue.models.anthropic.pauses import MOST
from retinue.stores import InMemory, SQLite, Store
from tests.models.anthropic_rig import claude, requests
from tests.models.calling import BOTH
from tests.models.talking import PNG, photo, talk, weather

MODELS = pytest.mark.parametrize(
    "model", ["claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-5-5"]
)
EFFORT = Settings(effort="high", max_tokens=20_000)
CITIES = [{"name": "weather", "args": {"city": city}} for city in ("Oslo", "Paris")]
THINKS = {"reasoning": "Let me think. ", "text": "I look."}


def thoughts(body: dict[str, Any]) -> list[Any]:
    """The thoughts in a request, each as what proves it."""
    return [
        block.get("signature") or block.get("data")
        for message in body["messages"]
        for block in message["content"]
        if "thinking" in block["type"]
    ]


@pytest.mark.rule("R-STREAM-7", "R-TOOL-5")
@pytest.mark.behaviour("B-TH-2", "B-LO-1")
@BOTH
@MODELS
async def test_thoughts_go_back_signed_over_rounds_of_parallel_calls(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    rig.script(
        session,
        [
            THINKS | {"tools": CITIES},
            {"parts": [{"reasoning": "a"}, {"reasoning": "b", "as": "redacted"},
                       {"tool": {"name": "weather", "args": "{not json"}},
                       {"tool": {"name": "wether", "args": {}}},
                       {"tool": {"name": "weather", "args": {"city": "Atlantis"}}}]},
            {"reasoning_as": "omitted", "reasoning": "c", "tools": CITIES,
             "tool_style": "interleaved"},
            {"reasoning": "Done.", "text": "Sunny."},
        ],
    )  # fmt: skip
    agent = Agent(claude(rig, session, model), tools=[weather], settings=EFFORT)
    result = await talk(agent, "Weather?", stream=stream)
    assert (result.status, result.text) == ("completed", "Sunny.")
    log = await requests(rig, session)
    assert [len(thoughts(entry["body"])) for entry in log] == [0, 1, 3, 4]
    for before, after in itertools.pairwise(log):
        assert after["same_prefix"] > before["prompt_chars"] - 10
    results = log[2]["body"]["messages"][-1]["content"]
    assert [block.get("is_error", False) for block in results] == [True, True, True]
    assert "Done." not in result.text


@pytest.mark.rule("R-MEM-2", "R-STREAM-7")
@pytest.mark.behaviour("B-TH-2", "B-ME-1")
@MODELS
async def test_thoughts_go_back_from_the_store_in_a_later_turn(
    rig: Any, session: str, model: str, tmp_path: Path
) -> None:
    rig.script(
        session,
        [
            THINKS | {"tools": CITIES},
            {"reasoning": "So.", "text": "Sunny."},
            THINKS | {"tools": CITIES[:1]},
            {"text": "Still sunny."},
        ],
    )

    async def ask(question: str) -> str:
        # Another agent on another store each time, as after a restart.
        store = SQLite(tmp_path / "chat.db")
        agent = Agent(
            claude(rig, session, model),
            tools=[weather],
            advisors=[Memory(store)],
            settings=EFFORT,
        )
        return (await agent.run(question, conversation="c")).text

    assert await ask("Weather?") == "Sunny."
    assert await ask("And now?") == "Still sunny."
    log = await requests(rig, session)
    assert [len(thoughts(entry["body"])) for entry in log] == [0, 1, 2, 3]


@BOTH
@MODELS
async def test_images_go_in_with_the_question_and_come_back_from_tools(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    call = {"name": "photo", "args": {"city": "Oslo"}}
    rig.script(session, [{"text": " ", "tools": [call, call]}, {"text": "Nice."}])
    agent = Agent(claude(rig, session, model), tools=[photo])
    result = await talk(agent, ["Like this?", Image(data=PNG)], stream=stream)
    assert result.text == "Nice."
    log = await requests(rig, session)
    question, asked, answered = log[1]["body"]["messages"]
    assert [block["type"] for block in question["content"]] == ["text", "image"]
    assert [block["type"] for block in asked["content"]] == ["tool_use", "tool_use"]
    inner = [block["content"] for block in answered["content"]]
    assert [[part["type"] for part in parts] for parts in inner] == [["text", "image"]] * 2


@MODELS
async def test_a_cancelled_turn_leaves_a_log_that_the_next_turn_can_use(
    rig: Any, session: str, model: str
) -> None:
    rig.script(
        session, [THINKS | {"tools": CITIES}, {"reasoning": "x", "text": "Well."}, {"text": "Yes."}]
    )
    started = asyncio.Event()

    @tool(name="weather")
    async def slow(city: str) -> str:
        """The weather now."""
        started.set()
        await asyncio.Event().wait()
        return city

    store = InMemory()

    def agent(*tools: Any) -> Agent:
        return Agent(
            claude(rig, session, model), tools=tools, advisors=[Memory(store)], settings=EFFORT
        )

    turn = agent(slow).stream("Weather?", conversation="c")
    async with turn:
        async for _ in turn:
            if started.is_set():
                turn.cancel()
    assert (await turn.result()).status == "cancelled"
    assert (await agent(weather).run("And?", conversation="c")).text == "Well."
    assert (await agent(weather).run("Sure?", conversation="c")).text == "Yes."
    log = await requests(rig, session)
    results = [b for m in log[1]["body"]["messages"] for b in m["content"] if "tool_use_id" in b]
    assert len(results) == 2


@pytest.mark.behaviour("B-LO-16")
@MODELS
async def test_a_limit_with_open_calls_leaves_a_log_that_goes_on(
    rig: Any, session: str, model: str
) -> None:
    rig.script(session, [THINKS | {"tools": CITIES}, {"text": "Fine."}])
    store = InMemory()

    def agent(rounds: int) -> Agent:
        return Agent(
            claude(rig, session, model),
            tools=[weather],
            advisors=[Memory(store)],
            settings=EFFORT,
            limits=Limits(rounds=rounds),
        )

    assert (await agent(1).run("Weather?", conversation="c")).status == "limit"
    assert (await agent(5).run("And?", conversation="c")).text == "Fine."
    await requests(rig, session)


@pytest.mark.behaviour("B-TH-2")
@MODELS
async def test_a_conversation_changes_vendors_and_comes_back(
    rig: Any, session: str, model: str
) -> None:
    there = f"{session}-openai"
    rig.script(session, [THINKS | {"tools": CITIES}, {"reasoning": "So.", "text": "Sunny."},
                         THINKS | {"tools": CITIES}, {"text": "As before."}])  # fmt: skip
    repeated = [{"name": "weather", "args": {"city": "Rom"}, "id": "call|1"}]
    rig.script(there, [{"reasoning": "Hm.", "tools": repeated}, {"tools": repeated},
                       {"text": "Sunny there too."}])  # fmt: skip
    store: Store = InMemory()
    other = OpenAI("gpt-4o", base_url=rig.openai(there), gateway="openai", api_key=rig.key)
    one, two = (
        Agent(
            asked, tools=[weather], advisors=[Memory(store)], settings=Settings(max_tokens=20_000)
        )
        for asked in (claude(rig, session, model), other)
    )
    assert (await one.run("Weather?", conversation="c", settings=EFFORT)).text == "Sunny."
    assert (await two.run("In Rome?", conversation="c", settings=Settings(max_tokens=10_000))).text
    assert (await one.run("And now?", conversation="c", settings=EFFORT)).text == "As before."
    log = await requests(rig, session)
    assert len(thoughts(log[-1]["body"])) == 3
    foreign = await requests(rig, there)
    assert "Let me think" not in str([entry["body"] for entry in foreign])


@pytest.mark.rule("R-USAGE-3")
@pytest.mark.behaviour("B-US-2")
async def test_three_rounds_that_read_the_cache_add_up(rig: Any, session: str) -> None:
    step = {"tools": CITIES, "cache": "prefix"}
    rig.script(session, [step, step, {"text": "Sunny.", "cache": "prefix"}] * 2)
    agent = Agent(
        claude(rig, session), tools=[weather], instructions="Be brief.", limits=Limits(repeats=9)
    )
    first = await talk(agent, "Weather?", stream=True)
    second = await talk(agent, "Weather?", stream=False)
    log = await requests(rig, session)
    sent = [entry["prompt_chars"] // 4 for entry in log]
    assert first.usage.input == sum(sent[:3])
    assert second.usage.input == sum(sent[3:])
    for turn in (first, second):
        assert turn.usage.cache_read
        assert turn.usage.cache_read > sum(sent[:2]) * 0.8
    marked = [str(entry["body"]).count("cache_control") for entry in log[:3]]
    assert marked == [3, 4, 4]


SEARCHES = {"text": "I search. ", "server_tool": {"name": "web_search", "args": {"query": "x"}}}
PAUSES = SEARCHES | {"finish": "pause_turn", "usage": {"input": 10, "output": 4}}


@BOTH
@MODELS
@pytest.mark.rule("R-USAGE-2", "R-STREAM-7")
async def test_an_answer_that_the_vendor_pauses_is_sent_back_and_goes_on(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    found = {"text": "Found.", "usage": {"input": 20, "output": 6}}
    rig.script(session, [PAUSES, PAUSES, found, {"text": "Bye."}])
    agent = Agent(claude(rig, session, model), advisors=[Memory()])
    result = await talk(agent, "Search", conversation="c", stream=stream)
    assert result.text == "I search. I search. Found."
    assert result.message is not None
    assert result.message.finish == "stop"
    assert result.rounds == 1
    assert (result.usage.input, result.usage.output) == (40, 14)
    assert result.message.tool_calls == ()
    assert (await talk(agent, "Thanks", conversation="c", stream=stream)).text == "Bye."
    log = await requests(rig, session)
    asked, once, twice, after = (entry["body"]["messages"] for entry in log)
    assert [kind(block) for block in once[-1]["content"]] == ["text", "server_tool_use"]
    assert [kind(block) for block in twice[-1]["content"]] == ["text", "server_tool_use"] * 2
    assert [len(turns) for turns in (asked, once, twice, after)] == [1, 2, 2, 3]


def kind(block: dict[str, Any]) -> str:
    return block["type"]


@BOTH
async def test_an_answer_that_is_paused_for_ever_ends_and_can_be_asked_to_go_on(
    rig: Any, session: str, stream: bool
) -> None:
    rig.script(session, [PAUSES] * (MOST + 1) + [{"text": "Found."}])
    agent = Agent(claude(rig, session), advisors=[Memory()])
    first = await talk(agent, "Search", conversation="c", stream=stream)
    assert first.status == "completed"
    assert first.message is not None
    assert first.message.finish == "pause_turn"
    assert len(await requests(rig, session)) == MOST + 1
    assert (await talk(agent, "Go on", conversation="c", stream=stream)).text == "Found."
    await requests(rig, session)


@BOTH
async def test_a_call_in_a_paused_answer_is_answered_before_it_goes_on(
    rig: Any, session: str, stream: bool
) -> None:
    calls = {"parts": [{"text": "I look."}, {"tool": CITIES[0]}], "finish": "pause_turn"}
    rig.script(session, [calls, {"text": "Sunny."}])
    agent = Agent(claude(rig, session), tools=[weather])
    assert (await talk(agent, "Weather?", stream=stream)).text == "Sunny."
    assert len(await requests(rig, session)) == 2


async def test_an_answer_of_the_wanted_form_and_a_call_before_it(rig: Any, session: str) -> None:
    rig.script(session, [{"do": "auto", "calls": 1, "parallel": 3, "text": '{"n": 4}'}] * 2)
    form = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 3}, "s": {"type": "string"}},
        "required": ["n"],
    }
    agent = Agent(claude(rig, session, "claude-opus-5-5"), tools=[weather], output=form)
    result = await agent.run("Weather?", settings=EFFORT)
    assert result.output == {"n": 4}
    assert len((await requests(rig, session))[1]["body"]["messages"][-1]["content"]) == 3
