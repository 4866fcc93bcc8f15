"""What is refused before a call, what is asked for in words, and what is encoded once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    tool_result,
    user,
)
from retinue.models.capabilities import UNKNOWN, Limits
from retinue.models.gateways import GATEWAYS
from retinue.models.responses.encode import RequestEncoder
from retinue.models.responses.messages import MessageEncoder
from tests.models.calling import chat
from tests.wire.sends.responses.matrix import ASK, PNG, clock, weather
from tests.wire.sends.responses.matrix_thoughts import MESSAGE, THOUGHT, kept, said

ANY = Limits("m", UNKNOWN)


def encoded(
    *messages: str | Message,
    gateway: str = "openai",
    model: str = "some-model",
    chained: bool = False,
    **fields: Any,
) -> Any:
    """The body for a request, without a server."""
    encoder = RequestEncoder(
        model,
        GATEWAYS[gateway],
        GATEWAYS[gateway].capabilities_in_responses(model),
        stored=chained,
        chained=chained,
    )
    return json.loads(encoder.encode(chat(*messages, **fields)))


@pytest.mark.parametrize(
    ("settings", "culprit"),
    [
        (Settings(stop=("END",)), "takes no stop; leave stop=.* out"),
        (Settings(seed=0), "seed=0"),
        (Settings(extra={"stream": True}), "'stream'"),
        (Settings(extra={"input": []}), "'input'"),
        (Settings(extra={"store": True}), "'store'"),
        (Settings(extra={"instructions": "x"}), "'instructions'"),
        (Settings(extra={"odd": object()}), "'odd'"),
        (Settings(tool_choice="whether"), "'whether'.*weather"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_the_call(
    settings: Settings, culprit: str
) -> None:
    with pytest.raises(ConfigError, match=culprit):
        encoded("Hi", settings=settings, tools=(weather,))


def test_an_answer_to_go_on_from_is_named_by_the_user_or_found_but_not_both() -> None:
    settings = Settings(extra={"previous_response_id": "resp_9"})
    assert encoded("Hi", settings=settings)["previous_response_id"] == "resp_9"
    with pytest.raises(ConfigError, match="'previous_response_id'"):
        encoded("Hi", settings=settings, chained=True)


@pytest.mark.parametrize(
    ("message", "gateway", "words"),
    [
        (user(File(data=b"x", media_type="application/pdf")), "groq", "no documents.*as text"),
        (user(File(data=b"x", media_type="audio/mpeg")), "openai", "responses:some-model takes no"),
        (user(Image()), "openai", "neither data nor a URL"),
        (user(File()), "openai", "neither data nor a URL"),
        (Message("assistant", (Image(data=PNG),)), "openai", "'assistant' cannot hold.*Image"),
        (Message("system", (Image(data=PNG),)), "openai", "'system' cannot hold.*Image"),
        (Message("tool", (Text("x"),)), "openai", "'tool' holds tool results"),
        (Message("user", (ToolResult("a", "b"),)), "openai", "'user' cannot hold.*ToolResult"),
    ],
)
def test_a_part_that_cannot_be_sent_is_named_before_the_call(
    message: Message, gateway: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded(message, gateway=gateway)


def test_an_image_of_a_tool_that_the_model_cannot_take_is_named_in_the_result() -> None:
    picture = tool_result(ToolResult("a", "look", (Text("seen"), Image(data=PNG))))
    body = encoded(assistant(calls=[ToolCall("a", "look")]), picture, model="gpt-3.5-turbo")
    assert body["input"][-1]["output"] == "seen\n[image 1: this model cannot take it]"


@pytest.mark.behaviour("B-LO-6")
@pytest.mark.parametrize("arguments", ["{not json", "[1]", "null", '"x"', ""])
def test_arguments_that_are_no_object_go_back_so_that_strict_servers_take_them(
    arguments: str,
) -> None:
    message = assistant(calls=[ToolCall("a", "look", arguments)])
    (sent,) = encoded(message, gateway="vllm")["input"]
    assert sent["arguments"] == "{}"


@pytest.mark.parametrize("call_id", ["call_" + "x" * 60, "toolu_01", "", "\ud83d" * 70])
def test_ids_of_other_providers_are_made_to_fit_and_still_match(call_id: str) -> None:
    called, answered = encoded(
        assistant(calls=[ToolCall(call_id, "look")]),
        tool_result(ToolResult(call_id, "look", (Text("x"),))),
    )["input"]
    assert called["call_id"] == answered["call_id"]
    assert 0 < len(called["call_id"]) <= 64
    assert called["call_id"] == call_id or not 0 < len(call_id) <= 64


def test_a_form_that_is_no_object_is_asked_for_in_words() -> None:
    output = Output({"type": "array", "items": {"type": "string"}})
    body = encoded("Hi", output=output, instructions=("Be brief.",))
    assert "text" not in body
    assert body["instructions"].startswith("Be brief.\n\nAnswer with JSON")


def test_a_schema_that_strict_mode_refuses_is_sent_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    wanted = encoded("Hi", output=Output(schema))["text"]["format"]
    assert wanted == {"type": "json_schema", "name": "answer", "schema": schema, "strict": False}


def test_without_tools_nothing_is_said_about_choosing_them() -> None:
    body = encoded("Hi", settings=Settings(tool_choice="auto", parallel_tool_calls=True))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


@pytest.mark.behaviour("B-ME-9", "B-LO-18")
@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_is_sent_as_it_is_but_for_half_characters(text: str) -> None:
    (item,) = encoded(user(text))["input"]
    assert item["content"] == "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)


def test_a_message_is_encoded_once_for_a_gateway_and_anew_for_another_or_when_changed() -> None:
    encoder = MessageEncoder(GATEWAYS["openai"], ANY, stored=False, chained=False)
    message = said(kept(THOUGHT, following=MESSAGE), "Sun.")
    (first,) = encoder.encode([message]).items
    (again,) = encoder.encode([message]).items
    assert again is first
    (changed,) = encoder.encode([message.with_text("Rain.")]).items
    assert (b"Rain." in changed, b"gAAAA" in changed) == (True, True)
    other = MessageEncoder(GATEWAYS["azure"], ANY, stored=False, chained=False)
    assert b"gAAAA" not in other.encode([message]).items[0]


def test_a_longer_conversation_begins_as_the_shorter_one_did() -> None:
    encoder = RequestEncoder("m", GATEWAYS["openai"], UNKNOWN)
    messages = [ASK, said(kept(THOUGHT, following=MESSAGE), "Sun."), ASK]
    shorter = encoder.encode(chat(*messages, tools=(weather, clock)))
    longer = encoder.encode(chat(*messages, assistant("Hm."), ASK, tools=(weather, clock)))
    assert longer.startswith(shorter.partition(b'],"tools"')[0])


def test_a_partial_answer_is_not_one_that_the_provider_has_stored() -> None:
    cut = said("Su", kept(id="resp_1")).with_(partial=True)
    body = encoded(ASK, cut, ASK, chained=True)
    assert "previous_response_id" not in body
    assert len(body["input"]) == 3


def test_with_nothing_after_the_stored_answer_everything_is_sent() -> None:
    body = encoded(ASK, said("Sun.", kept(id="resp_1")), chained=True)
    assert "previous_response_id" not in body
    assert len(body["input"]) == 2


@pytest.mark.parametrize("opaque", ["{", "3", '{"output": 3}', '{"output": [3]}', "{}", "\ud83d"])
def test_what_was_kept_in_a_form_that_nobody_knows_is_left_out(opaque: str) -> None:
    body = encoded(ASK, said(Thinking("Hm.", opaque=opaque, provider="openai"), "Sun."), ASK)
    assert body["input"][1] == {"role": "assistant", "content": "Sun."}
