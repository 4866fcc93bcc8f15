"""What goes through the bridge, and what is refused before it."""

import json
import sys
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel

from retinue import Agent
from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError, MissingExtraError, MissingKeyError, UnknownModelError
from retinue.messages import (
    Accumulator,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    system,
    user,
)
from retinue.models import Bridge, Capabilities, capabilities_of, resolve
from retinue.models.bridge.decode import Decoder
from retinue.models.bridge.encode import Abilities, RequestEncoder
from retinue.models.bridge.kept import calls_kept, thought_kept
from retinue.models.failures import Peer
from retinue.testing.calls import Heard, chat
from retinue.testing.dialects import ChatCompletions
from retinue.testing.faulty import FaultyVendor
from retinue.testing.vendor import KEY, Step
from retinue.tools import tool

PEER = Peer("bridge:bedrock", "host", "some", "its key")
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: rain"


@pytest.fixture
async def vendor() -> AsyncIterator[FaultyVendor]:
    async with FaultyVendor(ChatCompletions()) as vendor:
        yield vendor


@pytest.fixture
async def model(vendor: FaultyVendor) -> AsyncIterator[Bridge]:
    model = Bridge("openai-chat:gpt-4o", base_url=vendor.url, api_key=KEY)
    yield model
    await model.close()


async def sent(vendor: FaultyVendor, model: Bridge, *messages: Message, **fields: Any) -> Any:
    vendor.script(Step())
    await model.generate(chat(*messages, **fields), Heard())
    return (await vendor.seen())[-1].body


# What goes through.


async def test_an_agent_uses_its_tools_over_the_bridge(vendor: FaultyVendor, model: Bridge) -> None:
    vendor.script(
        Step(text=(), call=ToolCall("call_1", "weather", '{"city": "Bern"}')), Step(text=["Rain."])
    )
    answer = await Agent(model, tools=[weather]).run("The weather?")
    assert answer.text == "Rain."
    said = (await vendor.seen())[1].body["messages"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool"]
    assert said[2]["content"] == "Bern: rain"
    assert said[2]["tool_call_id"] == "call_1"


async def test_instructions_settings_and_tools_arrive(vendor: FaultyVendor, model: Bridge) -> None:
    settings = Settings(
        temperature=0.5, top_p=0.9, seed=7, stop=("END",), max_tokens=50, tool_choice="weather",
        parallel_tool_calls=False, extra={"service_tier": "flex"}, headers={"X-Team": "blue"},
    )  # fmt: skip
    body = await sent(
        vendor, model, user("Hi"), instructions=("Be kind.",), settings=settings, tools=(weather,)
    )
    assert body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert {name: body[name] for name in ("temperature", "top_p", "seed", "stop")} == {
        "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"],
    }  # fmt: skip
    assert 50 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert body["tool_choice"] == "required"  # of the only tool
    assert body["parallel_tool_calls"] is False
    assert body["service_tier"] == "flex"
    assert body["tools"][0]["function"]["parameters"]["required"] == ["city"]
    assert (await vendor.seen())[0].headers["x-team"] == "blue"


async def test_media_and_failed_results_arrive(vendor: FaultyVendor, model: Bridge) -> None:
    body = await sent(
        vendor, model,
        system("A rule."),
        user("Look:", Image(b"\x89PNG"), Image(url="https://pictures.example/a.png")),
        assistant("", calls=[ToolCall("call_1", "weather", "{}")]),
        Message("tool", (ToolResult("call_1", "weather", (Text("no city"),), ok=False),)),
    )  # fmt: skip
    shown = json.dumps(body["messages"])
    assert "data:image/png;base64,iVBORw==" in shown
    assert "https://pictures.example/a.png" in shown
    assert body["messages"][-1]["content"] == '{"error":"no city"}'


async def test_a_tool_that_says_nothing_has_an_empty_result(
    vendor: FaultyVendor, model: Bridge
) -> None:
    for ok, said in ((True, ""), (False, '{"error":""}')):
        body = await sent(
            vendor, model, user("Hi"), assistant("", calls=[ToolCall("call_1", "weather", "{}")]),
            Message("tool", (ToolResult("call_1", "weather", ok=ok),)),
        )  # fmt: skip
        assert body["messages"][-1]["content"] == said


async def test_a_form_is_sent_as_a_schema_or_said_in_words(
    vendor: FaultyVendor, model: Bridge
) -> None:
    body = await sent(vendor, model, output=Output(FORM, "answer"))
    assert body["response_format"]["json_schema"]["name"] == "answer"
    body = await sent(vendor, model, output=Output({"type": "array"}, "answer"))
    assert "response_format" not in body
    assert "JSON Schema" in body["messages"][0]["content"]


# What goes back to where it came from.


def test_a_thought_and_what_signs_a_call_go_back_to_their_provider_only() -> None:
    thought = '{"thought":{"id":"t1","provider_name":"bedrock"}}'
    calls = '{"calls":{"call_1":{"provider_details":{"signature":"s"}}}}'
    parts = (
        Thinking("Hm.", "sig", thought, "bridge:bedrock"), ToolCall("call_1", "weather", "{}"),
        Thinking("", None, calls, "bridge:bedrock"),
    )  # fmt: skip
    for provider, kinds in (("bedrock", ["thinking", "tool-call"]), ("cohere", ["tool-call"])):
        encoder = RequestEncoder(f"bridge:{provider}", "some", Capabilities(), None)
        request = chat(user("Hi"), Message("assistant", parts))
        call = encoder.encode(request, Abilities())
        back: Any = call.messages[1].parts
        assert [part.part_kind for part in back] == kinds
        signed = back[-1].provider_details
        assert signed == ({"signature": "s"} if provider == "bedrock" else None)


def test_what_a_provider_signs_is_decoded_to_what_goes_back() -> None:
    from pydantic_ai import messages as theirs
    from pydantic_ai.usage import RequestUsage

    response = theirs.ModelResponse(
        [
            theirs.ThinkingPart("Hm.", signature="sig", provider_name="bedrock"),
            theirs.ToolCallPart("weather", {"city": "Bern"}, "call_1", id="item_1"),
        ],
        usage=RequestUsage(
            input_tokens=10, cache_read_tokens=4, output_tokens=5, output_reasoning_tokens=2
        ),
        finish_reason="tool_call",
    )
    folded = Accumulator()
    for delta in Decoder(PEER, told_end=False).whole(response):
        folded.add(delta)
    message = folded.message()
    assert message.finish == "tool_calls"
    assert message.usage == Usage(input=10, output=5, cache_read=4, reasoning=2)
    assert message.tool_calls == (ToolCall("call_1", "weather", '{"city":"Bern"}'),)
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    assert [thought.signature for thought in thoughts] == ["sig", None]
    assert thought_kept(thoughts[0].opaque) == {"provider_name": "bedrock"}
    assert calls_kept([thoughts[1].opaque]) == {"call_1": {"id": "item_1"}}


def test_what_was_kept_by_another_format_is_no_error() -> None:
    for opaque in (None, "[]", "{", '{"thought": 1}'):
        assert thought_kept(opaque) == {}
        assert calls_kept([opaque]) == {}


# What is refused.


def test_the_name_says_a_provider_and_a_model() -> None:
    for name in ("bedrock", ":model", "bedrock:", ""):
        with pytest.raises(UnknownModelError, match="bedrock:amazon"):
            Bridge(name)
    with pytest.raises(UnknownModelError, match="no provider 'nobody'"):
        resolve("bridge:nobody:model")


def test_a_missing_key_is_told_when_the_model_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(MissingKeyError, match="api_key"):
        resolve("bridge:openai-chat:gpt-4o")


def test_a_key_or_an_address_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="base_url"):
        Bridge("openai-chat:gpt-4o", base_url="nowhere", api_key=KEY)
    with pytest.raises(ConfigError, match="takes no base_url"):
        Bridge("openrouter:some/model", base_url="http://127.0.0.1:1", api_key=KEY)


@pytest.mark.parametrize(
    ("module", "extra"),
    [("pydantic_ai", r"retinue\[bridge\]"), ("cohere", r"pydantic-ai-slim\[cohere\]")],
)
def test_a_library_that_is_missing_is_named(
    module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=extra):
        Bridge("cohere:command-a", api_key=KEY)


def test_the_name_alone_tells_a_bridge_and_nothing_of_the_model() -> None:
    assert capabilities_of("bridge:cohere:command-a") == Capabilities()
    model = Bridge("openai-chat:gpt-4o", api_key=KEY)
    assert resolve(model) is model
    assert (model.name, model.provider) == ("gpt-4o", "bridge:openai-chat")
    assert KEY not in repr(model)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"settings": Settings(effort="huge")}, "knows no effort 'huge'"),
        ({"settings": Settings(effort="low")}, "no field for effort='low'"),
        ({"settings": Settings(extra={"model": "x"})}, "'model'"),
        ({"settings": Settings(tool_choice="other"), "tools": (weather,)}, "'other'"),
    ],
)
async def test_what_would_not_get_through_is_refused_before_the_call(
    vendor: FaultyVendor, model: Bridge, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await model.generate(chat(**fields), Heard())
    assert not await vendor.seen()


LEFT_OUT = frozenset({
    "seed", "stop_sequences", "parallel_tool_calls", "timeout", "max_retries", "extra_body",
    "extra_headers",
})  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", 7), ("stop", ("END",)), ("parallel_tool_calls", False), ("timeout", 3),
        ("extra", {"a": 1}), ("headers", {"X-Key": "hush"}),
    ],
)  # fmt: skip
async def test_what_pydantic_ai_would_leave_out_without_a_word_is_refused(
    vendor: FaultyVendor, model: Bridge, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIChatModel, "unsupported_settings", LEFT_OUT)
    settings = Settings(**{name: value})
    with pytest.raises(ConfigError, match=f"leaves {name} out at bridge:openai") as caught:
        await model.generate(chat(settings=settings, tools=(weather,)), Heard())
    assert "hush" not in str(caught.value)
    assert not await vendor.seen()


async def test_what_nobody_asked_for_may_be_left_out(
    vendor: FaultyVendor, model: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIChatModel, "unsupported_settings", LEFT_OUT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await sent(vendor, model, settings=Settings(temperature=0.5), tools=(weather,))
    with pytest.raises(ConfigError, match="takes no timeout"):
        Bridge("openai-chat:gpt-4o", base_url=vendor.url, api_key=KEY, timeout=5)


async def test_what_it_was_declared_not_to_take_is_refused(vendor: FaultyVendor) -> None:
    takes = Capabilities(images=False)
    model = Bridge("openai-chat:gpt-4o", base_url=vendor.url, api_key=KEY, capabilities=takes)
    with pytest.raises(ConfigError, match="takes no images"):
        await model.generate(chat(user(Image(b"x"))), Heard())
    assert model.capabilities == takes
    await model.close()


async def test_a_message_that_holds_what_it_cannot_is_refused(model: Bridge) -> None:
    for message in (
        Message("assistant", (File(b"x"),)),
        Message("tool", (Text("x"),)),
        Message("user", (ToolCall("1", "x"),)),
    ):
        with pytest.raises(ConfigError, match=message.role):
            await model.generate(chat(message), Heard())
