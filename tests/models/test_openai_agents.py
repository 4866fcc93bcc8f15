"""Whole agents with a GPT that refuses whatever the real one refuses: no request is refused."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from retinue import Agent, File, Image, Limits, Settings, tool
from retinue.advisors import Memory
from retinue.messages import assistant, user
from retinue.models import OpenAI
from retinue.stores import InMemory, SQLite, Store
from tests.models.anthropic_rig import requests
from tests.models.calling import BOTH
from tests.models.talking import PNG, photo, talk, weather
from tests.stores.children import child

PDF = b"%PDF-1.7"
MODELS = pytest.mark.parametrize("model", ["gpt-4o", "gpt-5-mini"])
CITIES = [{"name": "weather", "args": {"city": city}} for city in ("Oslo", "Paris")]
ASKS = {"text": "I look.", "tools": CITIES}
STYLES = ["normal", "interleaved", "same_id", "new_ids", "whole", "zero_index", "no_index"]


def gpt(rig: Any, session: str, model: str = "gpt-4o") -> OpenAI:
    """A model that the fake provider plays."""
    options = {"api_key": rig.key, "gateway": "openai", "timeout": 5.0}
    return OpenAI(model, base_url=rig.openai(session), **options)


def roles(entry: dict[str, Any]) -> str:
    """Who speaks in a request: one letter for each message."""
    return "".join(message["role"][0] for message in entry["body"]["messages"])


def results(entry: dict[str, Any]) -> list[str]:
    """What the tools say in a request, all rounds in order."""
    return [m["content"] for m in entry["body"]["messages"] if m["role"] == "tool"]


@pytest.mark.rule("R-LOOP-1", "R-TOOL-2", "R-TOOL-5")
@pytest.mark.behaviour("B-LO-1", "B-LO-5", "B-LO-6", "B-LO-7")
@MODELS
@BOTH
async def test_every_call_of_every_round_is_answered_in_its_place(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    wrong = [
        {"name": "weather", "args": "{not json"},
        {"name": "wether", "args": {}},
        {"name": "weather", "args": {"city": "Atlantis"}},
        {"name": "weather", "args": {"town": "Oslo"}},
    ]
    rig.script(session, [ASKS, {"tools": wrong}, {"tools": CITIES[:1]}, {"text": "Sunny."}])
    agent = Agent(gpt(rig, session, model), tools=[weather], instructions="Be brief.")
    result = await talk(agent, "Weather?", stream=stream)
    assert (result.status, result.text) == ("completed", "Sunny.")
    log = await requests(rig, session)
    assert [roles(entry) for entry in log] == ["su", "suatt", "suattatttt", "suattattttat"]
    said = results(log[-1])
    assert said[:2] == ["sunny in Oslo", "sunny in Paris"]
    assert all(text.startswith("Error") for text in said[2:6])
    assert said[6] == "sunny in Oslo"
    for before, after in itertools.pairwise(log):
        earlier = before["body"]["messages"]
        assert after["body"]["messages"][: len(earlier)] == earlier


@pytest.mark.rule("R-TOOL-5")
@pytest.mark.behaviour("B-LO-1")
@pytest.mark.parametrize("style", STYLES)
async def test_parallel_calls_are_told_apart_however_they_are_cut(
    rig: Any, session: str, style: str
) -> None:
    rig.script(session, [ASKS | {"tool_style": style}, {"text": "Sunny."}])
    agent = Agent(gpt(rig, session), tools=[weather])
    assert (await talk(agent, "Weather?", stream=True)).text == "Sunny."
    _, last = await requests(rig, session)
    assert results(last) == ["sunny in Oslo", "sunny in Paris"]
    (asked,) = [m for m in last["body"]["messages"] if m["role"] == "assistant"]
    assert asked["content"] == "I look."
    written = [json.loads(call["function"]["arguments"]) for call in asked["tool_calls"]]
    assert written == [call["args"] for call in CITIES]


@pytest.mark.rule("R-LOOP-1")
@BOTH
async def test_a_forced_choice_and_a_form_hold_no_turn_up(
    rig: Any, session: str, stream: bool
) -> None:
    rig.script(session, [{"tools": CITIES[:1]}, {"text": '{"n": 4}'}])
    form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    settings = Settings(tool_choice="weather", parallel_tool_calls=False, max_tokens=500)
    agent = Agent(gpt(rig, session), tools=[weather], output=form, settings=settings)
    assert (await talk(agent, "Weather?", stream=stream)).output == {"n": 4}
    first, second = (entry["body"] for entry in await requests(rig, session))
    assert first["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert second.get("tool_choice", "auto") == "auto"
    assert second["response_format"]["json_schema"]["strict"] is True


# -- a turn that ended early, and the one after it -----------------------------------------------


@pytest.mark.rule("R-LOOP-8", "R-MEM-5")
@pytest.mark.behaviour("B-LO-14")
@MODELS
@BOTH
async def test_calls_that_were_cancelled_are_healed_once(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    rig.script(session, [ASKS, {"text": "Well."}, {"text": "Yes."}])
    started = asyncio.Event()

    @tool(name="weather")
    async def slow(city: str) -> str:
        """The weather now."""
        started.set()
        await asyncio.Event().wait()
        return city

    store = InMemory()

    def agent(*tools: Any) -> Agent:
        return Agent(gpt(rig, session, model), tools=tools, advisors=[Memory(store)])

    task = asyncio.create_task(talk(agent(slow), "Weather?", stream=stream, conversation="c"))
    await asyncio.wait_for(started.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await talk(agent(weather), "And?", stream=stream, conversation="c")).text == "Well."
    assert (await talk(agent(weather), "Sure?", stream=stream, conversation="c")).text == "Yes."
    log = await requests(rig, session)
    assert [roles(entry) for entry in log] == ["u", "uattu", "uattuau"]
    assert all(text.startswith("Error") for text in results(log[2]))
    assert results(log[1]) == results(log[2])


DYING = """
from retinue import Agent, tool
from retinue.advisors import Memory
from retinue.models import OpenAI

@tool
async def weather(city: str) -> str:
    "The weather now."
    print("looking", flush=True)
    await asyncio.Event().wait()
    return city

async def main():
    model = OpenAI("gpt-4o", base_url=sys.argv[2], api_key=sys.argv[3], gateway="openai")
    agent = Agent(model, tools=[weather], advisors=[Memory(SQLite(path))])
    await agent.run("Weather?", conversation="c")

asyncio.run(main())
"""


@pytest.mark.rule("R-MEM-2", "R-MEM-5")
@pytest.mark.behaviour("B-ME-4")
async def test_calls_of_a_process_that_was_killed_are_healed_in_the_next_one(
    rig: Any, session: str, tmp_path: Path
) -> None:
    rig.script(session, [ASKS, {"tools": CITIES[:1]}, {"text": "Sunny."}])
    path = tmp_path / "chat.db"
    with child(DYING, path, rig.openai(session), rig.key) as process:
        assert await asyncio.to_thread(process.said) == "looking"
        process.kill()
    store = SQLite(path)
    agent = Agent(gpt(rig, session), tools=[weather], advisors=[Memory(store)])
    assert (await talk(agent, "And now?", conversation="c")).text == "Sunny."
    await store.close()
    log = await requests(rig, session)
    assert [roles(entry) for entry in log] == ["u", "uattu", "uattuat"]
    *healed, fresh = results(log[-1])
    assert all("the process ended before this call did" in text for text in healed)
    assert fresh == "sunny in Oslo"


@pytest.mark.rule("R-TOOL-7")
@pytest.mark.behaviour("B-LO-12")
@MODELS
@BOTH
async def test_a_turn_may_ask_about_the_results_that_were_the_answer(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    rig.script(session, [ASKS, {"text": "Both."}])
    direct = weather.with_(return_direct=True)
    agent = Agent(gpt(rig, session, model), tools=[direct], advisors=[Memory(InMemory())])
    first = await talk(agent, "Weather?", stream=stream, conversation="c")
    assert first.text == "sunny in Oslo\nsunny in Paris"
    assert (await talk(agent, "Which is it?", stream=stream, conversation="c")).text == "Both."
    log = await requests(rig, session)
    assert [roles(entry) for entry in log] == ["u", "uattu"]
    assert results(log[1]) == ["sunny in Oslo", "sunny in Paris"]


@pytest.mark.rule("R-LOOP-3", "R-MEM-5")
@pytest.mark.behaviour("B-LO-16")
@MODELS
@BOTH
async def test_a_limit_with_open_calls_leaves_a_log_that_goes_on(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    rig.script(session, [ASKS, {"text": "Fine."}])
    store = InMemory()

    def agent(rounds: int) -> Agent:
        return Agent(
            gpt(rig, session, model),
            tools=[weather],
            advisors=[Memory(store)],
            limits=Limits(rounds=rounds),
        )

    cut = await talk(agent(1), "Weather?", stream=stream, conversation="c")
    assert cut.status == "limit"
    assert (await talk(agent(5), "And?", stream=stream, conversation="c")).text == "Fine."
    log = await requests(rig, session)
    assert [roles(entry) for entry in log] == ["u", "uattu"]
    assert not any("sunny" in text for text in results(log[1]))


# -- what is said and shown ----------------------------------------------------------------------


@BOTH
async def test_images_and_documents_go_in_with_the_question_and_come_back_from_tools(
    rig: Any, session: str, stream: bool
) -> None:
    call = {"name": "photo", "args": {"city": "Oslo"}}
    rig.script(session, [{"text": " ", "tools": [call, call]}, {"text": "Nice."}, {"text": "Yes."}])
    agent = Agent(gpt(rig, session), tools=[photo], advisors=[Memory(InMemory())])
    paper = File(data=PDF, media_type="application/pdf", name="a.pdf")
    question = ["Like this?", Image(data=PNG), Image(url="https://pictures.example/1.png"), paper]
    assert (await talk(agent, question, stream=stream, conversation="c")).text == "Nice."
    assert (await talk(agent, "Sure?", stream=stream, conversation="c")).text == "Yes."
    log = await requests(rig, session)
    assert [roles(entry) for entry in log] == ["u", "uattu", "uattuau"]
    asked, *_, shown = log[1]["body"]["messages"]
    assert [part["type"] for part in asked["content"]] == ["text", "image_url", "image_url", "file"]
    assert [part["type"] for part in shown["content"]] == ["text", "image_url"] * 2


@pytest.mark.rule("R-LOOP-7")
@MODELS
@BOTH
async def test_empty_texts_are_taken_wherever_they_stand(
    rig: Any, session: str, model: str, stream: bool
) -> None:
    @tool
    def nothing(city: str) -> str:
        """Says nothing."""
        return ""

    call = {"name": "nothing", "args": {"city": "Oslo"}}
    rig.script(session, [{"text": "", "tools": [call]}, {"text": ""}, {"text": "Yes."}])
    agent = Agent(gpt(rig, session, model), tools=[nothing], advisors=[Memory(InMemory())])
    earlier = [user(""), assistant(""), user("", Image(data=PNG))]
    first = await talk(agent, earlier, stream=stream, conversation="c")
    assert (first.status, first.text) == ("completed", "")
    assert (await talk(agent, "Still there?", stream=stream, conversation="c")).text == "Yes."
    log = await requests(rig, session)
    # Answers that say nothing are no part of a later turn.
    assert [roles(entry) for entry in log] == ["uau", "uauat", "uuatu"]
    said = [message["content"] for message in log[1]["body"]["messages"]]
    assert said[:2] + said[3:] == ["", "", None, ""]
    assert [part["type"] for part in said[2]] == ["text", "image_url"]


@pytest.mark.rule("R-MEM-1", "R-MEM-2")
@pytest.mark.behaviour("B-ME-1")
@MODELS
@BOTH
async def test_a_conversation_goes_on_from_the_file_it_is_kept_in(
    rig: Any, session: str, model: str, stream: bool, tmp_path: Path
) -> None:
    thinks = {"reasoning": "Let me think.", "reasoning_as": "reasoning_content"}
    rig.script(session, [thinks | ASKS, {"text": "Sunny."}] * 3)

    async def ask(question: str) -> str:
        # Another agent on another store each time, as after a restart.
        store: Store = SQLite(tmp_path / "chat.db")
        agent = Agent(
            gpt(rig, session, model),
            tools=[weather],
            advisors=[Memory(store)],
            instructions="Be brief.",
        )
        answer = await talk(agent, question, stream=stream, conversation="c")
        await store.close()
        return answer.text

    assert [await ask(f"Weather {day}?") for day in range(3)] == ["Sunny."] * 3
    log = await requests(rig, session)
    assert [roles(entry) for entry in log[::2]] == ["su", "suattau", "suattauattau"]
    assert "think" not in json.dumps([entry["body"]["messages"] for entry in log])
