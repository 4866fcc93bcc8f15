"""What a gateway of the Chat Completions format is sent: the envelope, tools and settings."""

from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.models.openai.model import OpenAI
from tests.models.calling import ask
from tests.wire.sends.openai.encoding import (
    KEY,
    encoded,
    send,
    weather,
)
from tests.wire.sends.recorder import Recorder


async def test_a_plain_question_is_sent_without_a_field_that_nobody_set(
    recorder: Recorder,
) -> None:
    await send(recorder, "Hello")
    assert recorder.last.path == "/v1/chat/completions"
    assert recorder.last.body == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "Hello"}],
    }


async def test_the_headers_hold_the_key_and_what_was_asked_for(recorder: Recorder) -> None:
    model = OpenAI(
        "some-model",
        base_url=recorder.url,
        gateway="openai",
        api_key=f" {KEY}\n",
        organization="org-1",
        project="proj-1",
        headers={"X-Team": "red", "X-Both": "model"},
    )
    await ask(model, settings=Settings(headers={"X-Both": "call"}))
    headers = recorder.last.headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert headers["openai-organization"] == "org-1"
    assert headers["openai-project"] == "proj-1"
    assert headers["x-team"] == "red"
    assert headers["x-both"] == "call"


async def test_azure_gets_its_key_in_its_own_header(recorder: Recorder) -> None:
    await send(recorder, "Hello", gateway="azure")
    assert recorder.last.headers["api-key"] == KEY
    assert "authorization" not in recorder.last.headers


async def test_a_server_without_a_key_gets_none(recorder: Recorder) -> None:
    await ask(OpenAI("some-model", base_url=recorder.url))
    assert "authorization" not in recorder.last.headers


async def test_a_stream_is_asked_for_with_its_usage(recorder: Recorder) -> None:
    await send(recorder, "Hello", stream=True)
    assert recorder.last.body["stream"] is True
    assert recorder.last.body["stream_options"] == {"include_usage": True}
    await send(recorder, "Hello", stream=True, gateway="mistral")
    assert "stream_options" not in recorder.last.body


async def test_all_settings_arrive_under_their_names(recorder: Recorder) -> None:
    settings = Settings(
        temperature=0.5,
        top_p=0.9,
        max_tokens=100,
        stop=("END", "STOP"),
        seed=2**60,
        tool_choice="required",
        parallel_tool_calls=False,
        effort="low",
        extra={"user": "u1", "metadata": {"a": "b"}},
    )
    await send(recorder, "Hello", settings=settings, tools=(weather,))
    body = recorder.last.body
    assert {name: body[name] for name in set(body) - {"model", "messages", "tools"}} == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 100,
        "stop": ["END", "STOP"],
        "seed": 2**60,
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "user": "u1",
        "metadata": {"a": "b"},
    }


@pytest.mark.parametrize(
    ("gateway", "fields"),
    [
        ("openai", {"max_completion_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
        ("deepseek", {"max_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
        ("mistral", {"max_tokens": 5, "random_seed": 1, "reasoning_effort": "low"}),
        ("openrouter", {"max_tokens": 5, "seed": 1, "reasoning": {"effort": "low"}}),
    ],
)
def test_each_gateway_gets_its_own_names_of_fields(gateway: str, fields: dict[str, Any]) -> None:
    body = encoded("Hi", gateway=gateway, settings=Settings(max_tokens=5, seed=1, effort="low"))
    assert {name: body[name] for name in set(body) - {"model", "messages"}} == fields


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        (Settings(extra={"stream": True}), "'stream'"),
        (Settings(extra={"messages": []}), "'messages'"),
        (Settings(extra={"odd": object()}), "'odd'"),
        (Settings(tool_choice="whether"), "'whether'.*weather"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_the_call(
    settings: Settings, culprit: str
) -> None:
    with pytest.raises(ConfigError, match=culprit):
        encoded("Hi", settings=settings, tools=(weather,))


def test_an_effort_that_a_gateway_has_no_field_for_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"minimax.*effort.*extra"):
        encoded("Hi", gateway="minimax", settings=Settings(effort="high"))
