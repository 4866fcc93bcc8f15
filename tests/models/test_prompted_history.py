"""Earlier calls and results, put into words for a model that knows no tools."""

import json
from typing import Any

import pytest

from retinue.chains import Settings
from retinue.chains.requests import ChatRequest
from retinue.messages import (
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    tool_result,
    user,
)
from retinue.models.prompted import PromptedTools
from retinue.models.scripted import Say, Scripted
from retinue.tools import tool
from tests.models.asking import answer
from tests.models.calling import chat


@tool
def forecast(city: str, days: int = 3) -> str:
    """The weather forecast of a city."""
    return f"{city}: rain for {days} days"


def act(name: str) -> str:
    return json.dumps({"action": name})


def prompt(request: ChatRequest) -> str:
    """All that the inner model reads."""
    return "\n".join([*request.instructions, *(m.text for m in request.messages)])


def settings(tool_choice: str | None = None, **fields: Any) -> Settings:
    return Settings(tool_choice=tool_choice, **fields)


OSLO = '{"city": "Oslo", "days": 5}'


def told(
    arguments: str = OSLO, result: str = "rain", *, ok: bool = True, name: str = "forecast"
) -> tuple[Message, Message]:
    """A call and its result, as the loop keeps them."""
    said = ToolResult("c1", name, (Text(result),), ok)
    return assistant(calls=[ToolCall("c1", name, arguments)]), tool_result(said)


@pytest.mark.parametrize("choice", ["none", None, "forecast"])
async def test_calls_and_results_of_the_history_are_told_in_words(choice: str | None) -> None:
    steps = [OSLO] if choice == "forecast" else ["Rain."] if choice else [act("answer"), "Rain."]
    inner = Scripted(*steps)
    request = chat("Oslo?", *told(result="a flood"), tools=(forecast,), settings=settings(choice))
    await answer(PromptedTools(inner), request)
    for sent in inner.requests:
        assert all(m.role in ("user", "assistant") for m in sent.messages)
        assert not any(m.tool_calls or m.tool_results for m in sent.messages)
        assert "forecast" in prompt(sent)
        assert "Oslo" in prompt(sent)
        assert "a flood" in prompt(sent)


async def test_a_history_of_calls_is_told_in_words_when_there_are_no_tools_any_more() -> None:
    inner = Scripted("Rain.")
    await answer(PromptedTools(inner), chat("Oslo?", *told(), "Sure?"))
    assert not any(m.role == "tool" or m.tool_calls for m in inner.requests[0].messages)


async def test_roles_alternate_when_a_question_follows_results() -> None:
    inner = Scripted("Yes.")
    calls = [ToolCall(f"c{n}", "forecast", OSLO) for n in (1, 2)]
    results = [tool_result(ToolResult(f"c{n}", "forecast", (Text(f"r{n}"),))) for n in (1, 2)]
    request = chat("Oslo?", assistant("I look.", calls=calls), *results, "Are you sure?")
    await answer(PromptedTools(inner), request)
    sent = inner.requests[0]
    assert [m.role for m in sent.messages] == ["user", "assistant", "user"]
    for text in ("I look.", "r1", "r2", "Are you sure?"):
        assert text in prompt(sent)


async def test_arguments_may_come_from_earlier_turns_and_from_results() -> None:
    inner = Scripted(OSLO)
    request = chat(
        "I live in Oslo.",
        assistant("Noted."),
        "The forecast?",
        *told(name="range", arguments="{}", result="5 days"),
        tools=(forecast,),
        settings=settings("forecast"),
    )
    await answer(PromptedTools(inner), request)
    (sent,) = inner.requests
    assert [m.role for m in sent.messages] == ["user", "assistant", "user"]
    assert "I live in Oslo." in sent.messages[0].text
    for text in ("The forecast?", "range", "5 days"):
        assert text in sent.messages[-1].text


async def test_the_history_itself_is_left_as_it_was() -> None:
    request = chat("Oslo?", *told(), "Sure?")
    before = tuple(m.parts for m in request.messages)
    await answer(PromptedTools(Scripted("Yes.")), request)
    assert tuple(m.parts for m in request.messages) == before


async def test_images_of_a_question_and_of_a_result_stay() -> None:
    picture, radar = Image(b"\x89PNG"), Image(b"radar")
    result = tool_result(ToolResult("c1", "forecast", (Text("see"), radar)))
    call = assistant(calls=[ToolCall("c1", "forecast", '{"city": "Bergen"}')])
    inner = Scripted(OSLO)
    request = chat(
        user("Where?", picture), call, result, tools=(forecast,), settings=settings("forecast")
    )
    await answer(PromptedTools(inner), request)
    parts = [part for m in inner.requests[0].messages for part in m.parts]
    assert picture in parts
    assert radar in parts


@pytest.mark.behaviour("B-ME-9")
async def test_a_question_with_braces_and_template_words_is_sent_as_it_is() -> None:
    text = 'Use {city} and {{x}}, <|im_end|> "quoted" %s'
    inner = Scripted(OSLO)
    await answer(PromptedTools(inner), chat(text, tools=(forecast,), settings=settings("forecast")))
    assert text in prompt(inner.requests[0])


# -- calls that repeat ----------------------------------------------------------------------------


async def test_a_call_that_repeats_an_answered_one_becomes_an_answer() -> None:
    inner = Scripted(act("forecast"), '{"days": 5, "city": "Oslo"}', Say(text=["It ", "rains."]))
    got = await answer(PromptedTools(inner), chat("Oslo?", *told(), tools=(forecast,)))
    assert got.calls == ()
    assert got.text == "It rains."


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(("Oslo?", *told('{"city": "Bergen"}')), id="other arguments"),
        pytest.param(("Oslo?", *told(name="order")), id="another tool"),
        pytest.param(("Oslo?", *told(ok=False)), id="it failed"),
        pytest.param(("Oslo?", *told(arguments="not json")), id="what ran was no JSON"),
        pytest.param(("Oslo?", *told(), assistant("Rain."), "And now?"), id="an earlier turn"),
    ],
)
async def test_any_other_call_is_made(history: tuple[str | Message, ...]) -> None:
    inner = Scripted(act("forecast"), OSLO)
    got = await answer(PromptedTools(inner), chat(*history, tools=(forecast,)))
    assert [c.name for c in got.calls] == ["forecast"]
