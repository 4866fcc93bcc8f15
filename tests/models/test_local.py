"""The embedded model, for real: packaged weights, llama.cpp, loopback.

What it says is never tested: on another CPU it may say something else.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

import pytest
from msgspec import Meta

from retinue.chains import Output, Settings
from retinue.errors import ConfigError, ModelRefused
from retinue.messages import Delta, Image, TextDelta, assistant, user
from retinue.models.llamacpp import Local
from retinue.models.llamacpp.weights import VARIABLE
from retinue.tools import tool
from tests.models.asking import answer
from tests.models.calling import chat

ONE_SENTENCE = ("You are a helpful assistant. Answer in one short sentence.",)
SHORT = Settings(temperature=0, max_tokens=24)

PERSON = Output.of(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)


@tool
def forecast(city: Annotated[str, Meta(max_length=20)], days: int) -> str:
    """The weather forecast of a city."""
    return f"{city}: rain for {days} days"


@pytest.fixture(autouse=True)
def packaged_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of whoever runs the tests do not count."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
async def local() -> AsyncIterator[Local]:
    model = Local()
    yield model
    await model.close()


# -- answers --------------------------------------------------------------------------------------


async def test_a_streamed_answer_comes_in_pieces_with_its_usage(local: Local) -> None:
    request = chat("What is the capital of France?", settings=SHORT, stream=True)
    got = await answer(local, request)
    assert got.chunks > 3
    assert got.finish in ("stop", "length")
    assert got.usage is not None
    assert got.usage.input
    assert got.usage.output


async def test_a_whole_answer_comes_in_one_piece_with_its_usage(local: Local) -> None:
    got = await answer(local, chat("Name three planets.", settings=SHORT))
    assert got.text
    assert got.chunks == 1
    assert got.usage is not None
    assert got.usage.output


async def test_an_answer_ends_where_max_tokens_says(local: Local) -> None:
    settings = Settings(temperature=0, max_tokens=5)
    got = await answer(local, chat("Write a long story.", settings=settings))
    assert got.finish == "length"
    assert got.usage is not None
    assert got.usage.output == 5


async def test_earlier_messages_are_part_of_the_question(local: Local) -> None:
    follow_up = "What language do they speak there?"
    alone = await answer(local, chat(follow_up, settings=SHORT))
    history = (user("What is the capital of France?"), assistant("The capital of France is Paris."))
    told = await answer(local, chat(*history, follow_up, settings=SHORT))
    assert told.usage is not None
    assert alone.usage is not None
    assert (told.usage.input or 0) > (alone.usage.input or 0) + 10


async def test_the_answer_keeps_to_a_schema(local: Local) -> None:
    question = "Write JSON with the fields name, age taken from this text:\n\n"
    text = "My friend Tom just turned 41."
    got = await answer(
        local, chat(question + text, settings=Settings(temperature=0), output=PERSON)
    )
    found = json.loads(got.text)
    assert {name: type(value) for name, value in found.items()} == {"name": str, "age": int}
    assert len(found["name"]) <= 20
    assert got.finish == "stop"


async def test_the_schema_binds_even_a_model_that_is_asked_for_something_else(local: Local) -> None:
    settings = Settings(temperature=0, max_tokens=200)
    schema = {
        "type": "object",
        "properties": {"mood": {"enum": ["glad", "sad"]}, "loud": {"type": "boolean"}},
        "required": ["mood", "loud"],
        "additionalProperties": False,
    }
    form = Output.of(schema)
    got = await answer(local, chat("Sing me a song.", settings=settings, output=form, stream=True))
    found = json.loads(got.text)
    assert found["mood"] in ("glad", "sad")
    assert isinstance(found["loud"], bool)


# -- tools ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["forecast", "required"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_forced_tool_is_called_with_arguments_of_the_right_types(
    local: Local, choice: str, stream: bool
) -> None:
    request = chat(
        "forecast for Oslo, five days please",
        tools=(forecast,),
        settings=Settings(temperature=0, tool_choice=choice),
        instructions=ONE_SENTENCE,
        stream=stream,
    )
    got = await answer(local, request)
    (call,) = got.calls
    assert call.name == "forecast"
    arguments = json.loads(call.arguments)
    assert {name: type(value) for name, value in arguments.items()} == {"city": str, "days": int}
    assert (got.text, got.finish) == ("", "tool_calls")


async def test_tool_choice_none_gives_text(local: Local) -> None:
    settings = Settings(temperature=0, max_tokens=12, tool_choice="none")
    got = await answer(
        local, chat("Forecast for Oslo?", tools=(forecast,), settings=settings, stream=True)
    )
    assert got.calls == ()
    assert got.chunks > 1


async def test_left_free_it_answers_or_calls_and_never_both(local: Local) -> None:
    for question in ("Name three planets.", "forecast for Oslo, five days please"):
        settings = Settings(temperature=0, max_tokens=150)  # a call comes to its end
        got = await answer(local, chat(question, tools=(forecast,), settings=settings, stream=True))
        assert bool(got.text) is not bool(got.calls)
        assert '"action"' not in got.text


# -- many at once, and cut off --------------------------------------------------------------------


async def test_more_calls_than_slots_wait_for_their_turn(local: Local) -> None:
    settings = Settings(temperature=0, max_tokens=8)
    questions = [chat(f"Count from {n}.", settings=settings, stream=True) for n in range(5)]
    answers = await asyncio.gather(*(answer(local, question) for question in questions))
    assert all(a.usage is not None and a.usage.output for a in answers)


@pytest.mark.rule("R-LOOP-8")
@pytest.mark.behaviour("B-ST-9")
async def test_a_cancelled_stream_leaves_no_task_and_frees_its_slot() -> None:
    model = Local(parallel=1)
    endless = Settings(temperature=0, max_tokens=3000)
    await answer(model, chat("Hi", settings=SHORT))
    before = asyncio.all_tasks()
    begun = asyncio.Event()

    async def watch(delta: Delta) -> None:
        if isinstance(delta, TextDelta):
            begun.set()

    request = chat("Write a long story.", settings=endless, stream=True)
    task = asyncio.create_task(model.generate(request, watch))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    async with asyncio.timeout(10):  # the cancelled answer alone would have taken longer
        await answer(model, chat("Hi", settings=SHORT))
    await model.close()


@pytest.mark.rule("R-FAIL-2")
async def test_one_call_after_another_goes_unnoticed_though_the_server_closes_each(
    local: Local,
) -> None:
    for stream in (True, True, False, True):
        settings = Settings(temperature=0, max_tokens=3)
        got = await answer(local, chat("Hi", settings=settings, stream=stream))
        assert got.text


async def test_models_with_the_same_settings_share_one_server(local: Local) -> None:
    await answer(local, chat("Hi", settings=SHORT))
    got = await answer(Local(), chat("Hi", settings=SHORT))
    assert got.usage is not None
    assert got.usage.cache_read  # what the first one read is still there


# -- what it cannot answer ----------------------------------------------------------------------


async def test_a_prompt_longer_than_the_context_is_refused_with_the_way_out() -> None:
    model = Local(context=512)
    with pytest.raises(ModelRefused, match=r"tokens.*512.*Local\(context=") as caught:
        await answer(model, chat("word " * 600, settings=SHORT))
    assert caught.value.status == 400
    assert not caught.value.retryable
    await model.close()


async def test_an_image_is_refused(local: Local) -> None:
    with pytest.raises((ModelRefused, ConfigError), match="image"):
        await answer(local, chat(user("What is this?", Image(b"\x89PNG")), settings=SHORT))
