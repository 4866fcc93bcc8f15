"""What a model does not take is one clear error before the call."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import File, Image, Message, Text, ToolCall, ToolResult, assistant, user
from retinue.models.gemini.abilities import MODELS, UNKNOWN, UNKNOWN_OLD, abilities_of
from retinue.models.gemini.encode import RequestEncoder
from retinue.models.gemini.schemas import native_form
from retinue.tools import tool
from tests.models.calling import chat


@tool
def look(x: int = 0) -> str:
    """Looks."""
    return ""


def encoded(*messages: str | Message, model: str = "gemini-3.8-flash", **fields: Any) -> Any:
    """The body for a request."""
    encoder = RequestEncoder(model, abilities_of(model))
    return json.loads(encoder.encode(chat(*messages, **fields)))


# -- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("gemini-2.0-flash-001", Settings(effort="low"), "cannot think; leave effort='low' out"),
        ("gemini-2.5-pro", Settings(effort="none"), "'none'; it knows minimal, low, medium, high"),
        ("gemini-3.8-flash", Settings(effort="minimal"), "it knows low, medium, high"),
        ("gemini-3-pro-preview", Settings(effort="medium"), "it knows low, high"),
        ("gemini-2.9-new", Settings(effort="xhigh"), "it knows none, minimal, low, medium, high"),
        ("gemini-x", Settings(parallel_tool_calls=False), "leave parallel_tool_calls=False out"),
        ("gemini-2.5-pro", Settings(max_tokens=70_000), "it can write 65536"),
        ("gemini-x", Settings(temperature=2.5), "temperature must be from 0 to 2, not 2.5"),
        ("gemini-x", Settings(stop=tuple("abcdef")), "at most 5 stop sequences, not 6"),
        ("gemini-x", Settings(tool_choice="whether"), "'whether'.*not on offer.*look"),
        ("gemini-x", Settings(extra={"contents": []}), "'contents'"),
        ("gemini-x", Settings(extra={"systemInstruction": {}}), "'systemInstruction'"),
        ("gemini-x", Settings(extra={"safety_settings": []}), "write 'safetySettings'"),
        ("gemini-x", Settings(extra={"odd": object()}), "'odd'"),
    ],
)
def test_settings_that_cannot_work_are_refused(model: str, settings: Settings, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded("Hi", model=model, settings=settings, tools=(look,))


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash"),
        ("gemini-2.0-flash-lite-001", "gemini-2.0-flash-lite"),
        ("gemini-2.5-pro-latest", "gemini-2.5-pro"),
        ("models/gemini-3.1-pro-preview", "gemini-3.1-pro"),
    ],
)
def test_a_model_is_known_with_and_without_what_marks_a_preview(name: str, row: str) -> None:
    assert abilities_of(name) is MODELS[row]


def test_a_model_that_has_no_row_is_taken_at_its_word() -> None:
    assert abilities_of("gemini-2.5-flash-image") is UNKNOWN_OLD
    for name in ("gemini-flash-latest", "gemini-3.1-flash-image", "gemini-10-pro", "mine"):
        assert abilities_of(name) is UNKNOWN
    body = encoded("Hi", model="gemini-10-pro", settings=Settings(effort="xhigh"))
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingLevel": "XHIGH"}}


# -- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (user(Image()), "This Image has neither data nor a URL"),
        (user(File()), "This File has neither data nor a URL"),
        (user(File(data=b"?")), "say with media_type"),
        (user(Image(url="data:image/png,abc")), "data URL without base64"),
        (Message("assistant", (File(data=b"%PDF"),)), "'assistant' cannot hold a part File"),
        (Message("system", (Image(data=b"x"),)), "'system' cannot hold a part Image"),
        (Message("user", (ToolResult("a", "b"),)), "'user' cannot hold a part ToolResult"),
        (Message("tool", (Text("x"),)), "'tool' holds tool results"),
        (user(""), "no message with anything in it"),
        (Message("system", (Text("Be brief."),)), "no message with anything in it"),
    ],
)
def test_a_message_that_cannot_be_sent_names_its_part(message: Message, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded(message)


@pytest.mark.behaviour("B-ME-9", "B-LO-18")
@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_is_sent_as_it_is_but_for_half_characters(text: str) -> None:
    whole = "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
    sent = [part["text"] for part in encoded(user("?", text))["contents"][0]["parts"]]
    assert sent == (["?", whole] if text else ["?"])


# -- tools --------------------------------------------------------------------------------------


def test_a_tool_whose_name_the_vendor_does_not_take_is_named() -> None:
    with pytest.raises(ConfigError, match="'2fast' has a name that Gemini does not take"):
        encoded("Hi", tools=(look.with_(name="2fast"),))


def test_a_tool_that_joins_the_others_is_appended() -> None:
    encoder = RequestEncoder("gemini-3.8-flash", UNKNOWN)
    settings = Settings(extra={"tools": [{"googleSearch": {}}]})
    before = encoder.encode(chat(tools=(look,), settings=settings))
    after = encoder.encode(chat(tools=(look, look.with_(name="also")), settings=settings))
    tools = before[: before.index(b"]}],")]
    assert tools.endswith(b"}")
    assert after.startswith(tools + b",")


# -- the form of the answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"not": {"type": "null"}}}},
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
        {"allOf": [{"type": "object"}, {"required": ["a"]}]},
        {"type": "array", "items": False},
    ],
    ids=["not", "free names", "all of several", "nothing"],
)
def test_a_form_that_the_vendor_cannot_be_asked_for_is_asked_for_in_words(
    schema: dict[str, Any],
) -> None:
    body = encoded("Hi", output=Output(schema), instructions=("Be brief.",))
    assert body["generationConfig"] == {"responseMimeType": "application/json"}
    first, last = (part["text"] for part in body["systemInstruction"]["parts"])
    assert first == "Be brief."
    assert last.startswith("Answer with JSON alone")
    assert json.dumps(schema, separators=(",", ":")) in last


def test_a_form_within_itself_and_one_with_free_names_can_be_said() -> None:
    schema = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/leaf"}},
        "additionalProperties": {"type": "integer", "multipleOf": 2},
        "$defs": {"leaf": {"type": "object", "properties": {"next": {"$ref": "#/$defs/leaf"}}}},
    }
    form = native_form(schema)
    assert form is not None
    assert form["$defs"] == schema["$defs"]
    assert form["additionalProperties"] == {"type": "integer", "description": "{multipleOf: 2}"}
    assert schema["additionalProperties"]["multipleOf"] == 2  # the user's own is as it was


def test_a_part_of_a_result_that_is_left_out_is_told_to_the_application(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = Message("tool", (ToolResult("a", "look", (File(data=b"?"),)),))
    body = encoded("?", assistant(calls=[ToolCall("a", "look")]), result, tools=(look,))
    assert "this model cannot take it" in json.dumps(body["contents"][-1])
    assert "result of look is left out: File" in caplog.text
    assert "say with media_type=" in caplog.text
