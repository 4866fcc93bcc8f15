"""Making a model of a gateway, and a conversation with a provider that takes nothing amiss."""

import asyncio
import json
from typing import Any

import pytest

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError, MissingKeyError, UnknownModelError
from retinue.messages import Image, Message, Text, ToolCall, ToolResult, tool_result, user
from retinue.models import Model
from retinue.models.gateways import ALIASES, GATEWAYS, Gateway
from retinue.models.openai.model import OpenAI
from retinue.tools import tool
from tests.models.calling import ask


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for row in GATEWAYS.values():
        for variable in (*row.key_vars, row.url_var):
            if variable:
                monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("name", [name for name, row in GATEWAYS.items() if row.needs_key])
def test_a_missing_key_is_told_by_the_name_of_its_variable(name: str) -> None:
    row = GATEWAYS[name]
    own = None if row.base_url else "https://example.invalid"
    with pytest.raises(MissingKeyError, match=rf"{name} needs a key: set {row.key_vars[0]}"):
        OpenAI("m", gateway=name, base_url=own)


@pytest.mark.parametrize("name", GATEWAYS)
def test_every_gateway_makes_a_model_that_does_not_show_its_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = GATEWAYS[name]
    if row.key_vars:
        monkeypatch.setenv(row.key_vars[-1], "sk-from-the-environment")
    if row.base_url is None:
        monkeypatch.setenv(row.url_var or "", "https://my.example.invalid/")
    model = OpenAI("m", gateway=name)
    assert isinstance(model, Model)
    assert (model.name, model.provider) == ("m", name)
    assert "sk-from" not in repr(model)
    assert name in repr(model)


def test_azure_is_found_by_its_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        OpenAI("m", gateway="azure", api_key="sk-something")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://my.openai.azure.invalid")
    assert "my.openai.azure.invalid" in repr(OpenAI("m", gateway="azure", api_key="sk-something"))


def test_an_address_of_the_environment_that_cannot_be_one_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for address in ("localhost:8000", "http://[::1", "http://me:pass@x.invalid"):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with pytest.raises(ConfigError, match=r"^OPENAI_BASE_URL ") as caught:
            OpenAI("m", api_key="sk-something")
        assert "pass@" not in str(caught.value)


def test_a_server_of_ones_own_needs_no_key_and_gets_none_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    model = OpenAI("m", base_url="http://127.0.0.1:1/v1")
    assert model.provider == "compatible"
    assert "sk-from" not in str(vars(model))


def test_a_gateway_of_ones_own_is_a_row() -> None:
    row = Gateway(name="mine", base_url="http://127.0.0.1:1/v1", needs_key=False)
    assert OpenAI("m", gateway=row).provider == "mine"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("", {}, "no model name"),
        (" m", {}, "no model name"),
        ("m", {"gateway": "opnai"}, "no gateway 'opnai'.*openrouter"),
        ("m", {"base_url": "127.0.0.1:8000/v1"}, "base_url must look like"),
        ("m", {"base_url": "ftp://example.invalid"}, "base_url must look like"),
        ("m", {"base_url": "https://"}, "base_url must look like"),
        ("m", {"base_url": "https://x.invalid:port/v1"}, "base_url is no URL"),
        ("m", {"base_url": "https://[::1/v1"}, "base_url is no URL"),
        ("m", {"base_url": "https://x.invalid/v1?key=1"}, "base_url must look like"),
        ("m", {"base_url": "https://me:pass@x.invalid"}, "must not hold a user"),
        ("m", {"base_url": "http://x.invalid", "timeout": 0}, "timeout must be"),
        ("m", {"base_url": "http://x.invalid", "timeout": float("nan")}, "timeout must be"),
    ],
)
def test_what_cannot_work_is_refused_when_the_model_is_made(
    name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        OpenAI(name, api_key="sk-something", **options)


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize("key", ["sk-hidden\nsk-other", "sk-hiddén", "sk-hidden\x00"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAI("m", api_key=key)
    assert "hidd" not in str(caught.value)


def test_an_unknown_gateway_is_an_unknown_model() -> None:
    with pytest.raises(UnknownModelError):
        OpenAI("m", gateway="nobody")


def test_every_alias_leads_to_a_gateway() -> None:
    assert set(ALIASES.values()) <= set(GATEWAYS)
    assert not set(ALIASES) & set(GATEWAYS)


# -- a strict provider --------------------------------------------------------------------------


@tool
def weather(city: str) -> str:
    """The weather now."""
    return f"sunny in {city}"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("style", ["normal", "interleaved", "new_ids", "zero_index", "no_index"])
async def test_a_strict_provider_takes_a_whole_conversation(
    rig: Any, session: str, style: str, stream: bool
) -> None:
    calls = [{"name": "weather", "args": {"city": city}} for city in ("Oslo", "Paris")]
    odd = [
        {"name": "weather", "args": "{not json", "id": "call_1"},
        {"name": "weather", "args": {"city": "Rom"}, "id": "call_2"},
    ]
    rig.script(
        session,
        [
            {"reasoning": "Hm.", "tools": calls, "tool_style": style},
            {"reasoning": "Hm.", "tools": odd},
            {"do": "instance"},
        ],
        on=["arguments_json", "reasoning_back"],
        allow=["reasoning_content"],
        models=["deepseek-reasoner"],
    )
    row = Gateway(
        name="deepseek", base_url=rig.openai(session), thinking="reasoning_content", no_thinking=""
    )
    model = OpenAI("deepseek-reasoner", gateway=row, api_key=rig.key)
    output = Output(
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, "Count"
    )
    settings = Settings(temperature=0.5, max_tokens=100, stop=("END",), parallel_tool_calls=True)
    answer = None
    messages: list[Message] = [user("Weather?", Image(data=b"\x89PNG\r\n\x1a\n"))]
    for _ in range(3):
        answer = await ask(
            model,
            *messages,
            stream=stream,
            tools=(weather,),
            settings=settings,
            output=output,
            instructions=("Be brief.",),
        )
        messages.append(answer.message)
        for call in answer.message.tool_calls:
            parts = (Text("sunny"), Image(data=b"\x89PNG\r\n\x1a\n"))
            messages.append(tool_result(ToolResult(call.id, call.name, parts)))
    assert answer is not None
    assert json.loads(answer.text) == {"n": 1}
    log = await asyncio.to_thread(rig.log, session)
    assert [entry["error"] for entry in log] == [None, None, None]
    assert [call.name for m in messages for call in m.tool_calls] == ["weather"] * 4
    assert log[2]["same_prefix"] > 300  # the history goes out again as it was


async def test_a_conversation_that_began_elsewhere_goes_on_at_a_strict_provider(
    rig: Any, session: str
) -> None:
    rig.script(session, [{"text": "ok"}])
    long_id = "toolu_" + "x" * 60
    model = OpenAI("gpt-4o", base_url=rig.openai(session), gateway="openai", api_key=rig.key)
    answer = await ask(
        model,
        "Weather?",
        Message("assistant", (ToolCall(long_id, "no such.tool", "{"),)),
        tool_result(ToolResult(long_id, "no such.tool", (Text("there is none"),), ok=False)),
        Message("assistant", ()),
        "And now? \ud83d",
    )
    assert answer.text == "ok"
