"""Whole agents with a Claude that refuses whatever the real one refuses: no request is refused."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from retinue import Agent, Image, Limits, Settings, TurnResponse, events, tool
from retinue.advisors import Memory
from retinue.messages import Thinking, ToolCall
from retinue.models import OpenAI
from retinue.stores import InMemory, SQLite, Store
from tests.models.anthropic_rig import claude, requests

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
MODELS = pytest.mark.parametrize(
    "model", ["claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-5-5"]
)
EFFORT = Settings(effort="high", max_tokens=20_000)
CITIES = [{"name": "weather", "args": {"city": city}} for city in ("Oslo", "Paris")]
THINKS = {"reasoning": "Let me think. ", "text": "I look."}


@tool
def weather(city: str) -> str:
    """The weather now."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"sunny in {city}"


@tool
def photo(city: str) -> list[Any]:
    """A picture."""
    return [f"{city} from above", Image(data=PNG)]


async def streamed(agent: Agent, question: Any, **rest: Any) -> TurnResponse:
    """The turn, read as a stream; what was shown is what is returned."""
    turn = agent.stream(question, **rest)
    shown: list[str] = []
    async with turn:
        async for event in turn:
            if isinstance(event, events.TextChunk):
                shown.append(event.text)
    result = await turn.result()
    assert "".join(shown).endswith(result.text)
    return result


async def whole(agent: Agent, question: Any, **rest: Any) -> TurnResponse:
    return await agent.run(question, **rest)


WAYS = pytest.mark.parametrize("way", [streamed, whole])


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
@WAYS
@MODELS
async def test_thoughts_go_back_signed_over_rounds_of_parallel_calls(
    rig: Any, session: str, model: str, way: Any
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
    result = await way(agent, "Weather?")
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


@WAYS
@MODELS
async def test_images_go_in_with_the_question_and_come_back_from_tools(
    rig: Any, session: str, model: str, way: Any
) -> None:
    call = {"name": "photo", "args": {"city": "Oslo"}}
    rig.script(session, [{"text": " ", "tools": [call, call]}, {"text": "Nice."}])
    agent = Agent(claude(rig, session, model), tools=[photo])
    result = await way(agent, ["Like this?", Image(data=PNG)])
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
    first = await streamed(agent, "Weather?")
    second = await whole(agent, "Weather?")
    log = await requests(rig, session)
    sent = [entry["prompt_chars"] // 4 for entry in log]
    assert first.usage.input == sum(sent[:3])
    assert second.usage.input == sum(sent[3:])
    for turn in (first, second):
        assert turn.usage.cache_read
        assert turn.usage.cache_read > sum(sent[:2]) * 0.8
    marked = [str(entry["body"]).count("cache_control") for entry in log[:3]]
    assert marked == [3, 4, 4]


@WAYS
async def test_a_turn_that_the_vendor_pauses_can_be_asked_to_go_on(
    rig: Any, session: str, way: Any
) -> None:
    search = {"name": "web_search", "args": {"query": "x"}}
    rig.script(
        session,
        [{"text": "I search.", "server_tool": search, "finish": "pause_turn"}, {"text": "Found."}],
    )
    agent = Agent(claude(rig, session), advisors=[Memory()])
    first = await way(agent, "Search", conversation="c")
    assert first.message is not None
    assert first.message.finish == "pause_turn"
    assert not any(isinstance(part, ToolCall) for part in first.message.parts)
    assert any(isinstance(part, Thinking) and part.opaque for part in first.message.parts)
    assert (await way(agent, "Go on", conversation="c")).text == "Found."
    await requests(rig, session)


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
