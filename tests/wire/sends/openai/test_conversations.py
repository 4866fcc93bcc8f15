"""Messages as they are sent: roles, images, and what models and other providers wrote."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    user,
)
from retinue.models.gateways import GATEWAYS
from tests.wire.sends.openai.encoding import (
    PNG,
    PNG_URI,
    clock,
    encoded,
    send,
    sent_messages,
    weather,
)
from tests.wire.sends.recorder import Recorder

# -- messages -----------------------------------------------------------------------------------


@pytest.mark.rule("R-LOOP-9")
async def test_instructions_come_first_and_in_order(recorder: Recorder) -> None:
    await send(
        recorder,
        "Hello",
        system("Aside."),
        "Go",
        instructions=("Be brief.", "", "Today is {date}."),
    )
    assert recorder.last.body["messages"] == [
        {"role": "system", "content": "Be brief.\n\nToday is {date}."},
        {"role": "user", "content": "Hello"},
        {"role": "system", "content": "Aside."},
        {"role": "user", "content": "Go"},
    ]


@pytest.mark.rule("R-LOOP-7")
async def test_a_tool_loop_is_sent_as_it_happened(recorder: Recorder) -> None:
    arguments = '{"city": "Oslo"}'
    await send(
        recorder,
        "Weather?",
        assistant("Let me see.", calls=[ToolCall("a", "weather", arguments)]),
        tool_result(ToolResult("a", "weather", (Text("sun"), Text("shine")))),
        assistant(calls=[ToolCall("b", "weather", ""), ToolCall("c", "clock")]),
        tool_result(ToolResult("b", "weather", (Text("no such city"),), ok=False)),
        tool_result(ToolResult("c", "clock", (Text("Error of mine"),), ok=False)),
        tools=(weather, clock),
    )

    def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    assert recorder.last.body["messages"] == [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [call("a", "weather", arguments)],
        },
        {"role": "tool", "tool_call_id": "a", "content": "sunshine"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("b", "weather", "{}"), call("c", "clock", "{}")],
        },
        {"role": "tool", "tool_call_id": "b", "content": "Error: no such city"},
        {"role": "tool", "tool_call_id": "c", "content": "Error of mine"},
    ]


async def test_tools_are_sent_with_their_schemas_in_order(recorder: Recorder) -> None:
    await send(recorder, "Hi", tools=(weather, clock))
    first, second = recorder.last.body["tools"]
    assert first["type"] == "function"
    assert first["function"]["name"] == "weather"
    assert first["function"]["description"] == weather.spec.description
    assert first["function"]["parameters"] == weather.spec.parameters
    assert second["function"]["parameters"]["properties"] == {}
    assert "tool_choice" not in recorder.last.body


def test_a_forced_tool_is_named() -> None:
    body = encoded("Hi", tools=(weather, clock), settings=Settings(tool_choice="clock"))
    assert body["tool_choice"] == {"type": "function", "function": {"name": "clock"}}


def test_without_tools_nothing_is_said_about_choosing_them() -> None:
    body = encoded("Hi", settings=Settings(tool_choice="auto", parallel_tool_calls=True))
    assert "tool_choice" not in body
    assert "parallel_tool_calls" not in body


def test_tools_in_extra_are_offered_beside_the_others() -> None:
    search = {"type": "builtin_function", "function": {"name": "$web_search"}}
    body = encoded("Hi", tools=(clock,), settings=Settings(extra={"tools": [search]}))
    assert [t["function"]["name"] for t in body["tools"]] == ["clock", "$web_search"]


# -- images and files ---------------------------------------------------------------------------


async def test_images_go_as_urls_or_as_data(recorder: Recorder) -> None:
    await send(
        recorder, user("What is it?", Image(data=PNG), Image(url="https://pictures.example/1.png"))
    )
    assert recorder.last.body["messages"][0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": PNG_URI}},
        {"type": "image_url", "image_url": {"url": "https://pictures.example/1.png"}},
    ]


def test_recordings_and_documents_go_where_they_are_taken() -> None:
    sound = File(data=b"RIFF", media_type="audio/wav")
    paper = File(data=b"%PDF", media_type="application/pdf", name="a.pdf")
    (message,) = sent_messages(user(sound, paper))
    assert message["content"] == [
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        },
    ]


def test_a_document_goes_by_url_where_that_is_taken() -> None:
    paper = File(url="https://x.example/a.pdf", media_type="application/pdf", name="a.pdf")
    (message,) = sent_messages(user(paper), gateway="openrouter")
    assert message["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "https://x.example/a.pdf"}}
    ]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(b"\xff\xd8\xff\xe0", "image/jpeg"), (b"RIFF0000WEBP", "image/webp"), (b"?", "image/png")],
)
def test_an_image_is_called_what_it_is_and_not_what_is_claimed(
    data: bytes, media_type: str
) -> None:
    (message,) = sent_messages(user(Image(data=data)))
    url = message["content"][0]["image_url"]["url"]
    assert url.startswith(f"data:{media_type};base64,")


def test_a_url_that_is_the_data_goes_everywhere() -> None:
    uri = "data:application/pdf;base64,JVBERg=="
    (message,) = sent_messages(user(File(url=uri, media_type="application/pdf")))
    assert message["content"][0]["file"] == {"filename": "file.pdf", "file_data": uri}


@pytest.mark.parametrize(
    ("message", "gateway", "words"),
    [
        (user(Image(data=PNG)), "cerebras", "cerebras:some-model takes no images"),
        (user(File(data=b"x", media_type="application/pdf")), "groq", "no documents.*as text"),
        (user(File(data=b"x", media_type="audio/mpeg")), "groq", "no recordings; leave the"),
        (user(File(url="https://x.example/a.mp3", media_type="audio/mpeg")), "openai", "by URL"),
        (user(File(url="https://x/a", media_type="application/pdf")), "openai", "documents by URL"),
        (user(Image()), "openai", "neither data nor a URL"),
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
        sent_messages(message, gateway=gateway)


@pytest.mark.rule("R-TOOL-6")
def test_images_of_tool_results_follow_the_whole_batch() -> None:
    messages = sent_messages(
        user("Look"),
        assistant(calls=[ToolCall("a", "look"), ToolCall("b", "look")]),
        tool_result(ToolResult("a", "look", (Text("left"), Image(data=PNG)))),
        tool_result(ToolResult("b", "look", (Image(data=PNG),))),
        user("And now?"),
    )
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert messages[2]["content"] == "left\n[image 1: in the next message]"
    assert messages[3]["content"] == "[image 1: in the next message]"
    parts = messages[4]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "text", "image_url"]
    assert parts[0]["text"] == "image 1 of the result of look (a):"


def test_an_image_that_the_model_cannot_take_is_named_in_the_result() -> None:
    messages = sent_messages(
        assistant(calls=[ToolCall("a", "look")]),
        tool_result(ToolResult("a", "look", (Image(data=PNG),))),
        gateway="cerebras",
    )
    assert messages[1]["content"] == "[image 1: this model cannot take it]"
    assert len(messages) == 2


# -- what models and other providers wrote ------------------------------------------------------


@pytest.mark.behaviour("B-LO-6")
@pytest.mark.parametrize("arguments", ["{not json", "[1]", "null", '"x"', ""])
def test_arguments_that_are_no_object_go_back_so_that_strict_servers_take_them(
    arguments: str,
) -> None:
    message = assistant(calls=[ToolCall("a", "look", arguments)])
    for name, gateway in GATEWAYS.items():
        (sent,) = sent_messages(message, gateway=name)
        written = sent["tool_calls"][0]["function"]["arguments"]
        assert written == ("{}" if gateway.json_arguments or not arguments else arguments)


@pytest.mark.behaviour("B-LO-5")
def test_a_name_that_the_model_made_up_does_not_spoil_the_history() -> None:
    message = assistant(calls=[ToolCall("a", "functions.look up!" + "x" * 99), ToolCall("b", "")])
    (sent,) = sent_messages(message)
    names = [call["function"]["name"] for call in sent["tool_calls"]]
    assert names == [("functions_look_up_" + "x" * 99)[:64], "unnamed"]


@pytest.mark.parametrize("call_id", ["call_" + "x" * 60, "toolu_01", "", "abcdefgh1"])
@pytest.mark.parametrize("gateway", ["openai", "mistral"])
def test_ids_of_other_providers_are_made_to_fit_and_still_match(call_id: str, gateway: str) -> None:
    called, answered = sent_messages(
        assistant(calls=[ToolCall(call_id, "look")]),
        tool_result(ToolResult(call_id, "look", (Text("x"),))),
        gateway=gateway,
    )
    sent = called["tool_calls"][0]["id"]
    assert answered["tool_call_id"] == sent
    if gateway == "mistral":
        assert len(sent) == 9
        assert sent.isalnum()
    else:
        assert 0 < len(sent) <= 40
        assert sent == call_id or not 0 < len(call_id) <= 40


@pytest.mark.behaviour("B-ME-9", "B-LO-18")
@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_is_sent_as_it_is_but_for_half_characters(text: str) -> None:
    (message,) = sent_messages(user(text))
    whole = "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert message["content"] == whole
