"""What a model does not take is one clear error before the call."""

import json
from typing import Any

import msgspec
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
    user,
)
from retinue.models.anthropic.abilities import MODELS, NEWEST, UNKNOWN, abilities_of
from retinue.models.anthropic.encode import RequestEncoder
from retinue.models.anthropic.fields import ANSWER
from retinue.models.capabilities import Capabilities
from retinue.tools import tool
from tests.models.calling import chat
from tests.wire.sends.anthropic.encoding import encoded, encoder

OLD = "2023-06-01"


@tool
def look(x: int = 0) -> str:
    """Looks."""
    return ""


# -- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("claude-haiku-4-5", Settings(temperature=1.0), "no temperature since version 2026-10-21"),
        ("claude-x", Settings(top_p=0.5), "no top_p since.*version='2023-06-01'"),
        ("claude-x", Settings(extra={"top_k": 5}), "no top_k since"),
        ("claude-x", Settings(seed=1), "takes no seed"),
        ("claude-x", Settings(stop=("END", "\n")), "no stop of white space"),
        ("claude-haiku-4-5", Settings(max_tokens=64_001), "it can write 64000"),
        ("claude-3-5-haiku-latest", Settings(effort="low"), "cannot think; leave effort='low' out"),
        ("claude-haiku-4-5", Settings(effort="max"), "'max'; it knows low, medium, high"),
        ("claude-sonnet-4-6", Settings(effort="xhigh"), "it knows low, medium, high, max"),
        ("claude-opus-5-5", Settings(effort="very"), "it knows low, medium, high, xhigh, max"),
        ("claude-haiku-4-5", Settings(effort="low", max_tokens=1500), "no room to think"),
        ("claude-opus-5-5", Settings(tool_choice="required"), "cannot be forced to call"),
        ("claude-sonnet-5-5", Settings(tool_choice="look"), "cannot be forced to call"),
        ("claude-x", Settings(tool_choice="whether"), "'whether'.*not on offer.*look"),
        ("claude-haiku-4-5", Settings(tool_choice="look", effort="low"), "leave out effort='low'"),
        ("claude-sonnet-4-6", Settings(tool_choice="look", effort="low"), "leave out effort='low'"),
        (
            "claude-opus-4-7",
            Settings(extra={"thinking": {"type": "enabled", "budget_tokens": 2000}}),
            r"no budget of thinking; use Settings\(effort",
        ),
        ("claude-haiku-4-5", Settings(extra={"thinking": {"type": "adaptive"}}), "no adaptive"),
        ("claude-x", Settings(extra={"system": "x"}), "'system'"),
        ("claude-x", Settings(extra={"stream": True}), "'stream'"),
        ("claude-x", Settings(extra={"odd": object()}), "'odd'"),
    ],
)
def test_settings_that_cannot_work_are_refused(model: str, settings: Settings, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded("Hi", model=model, settings=settings, tools=(look,))


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("claude-opus-5-5", Settings(temperature=1.0), "claude-opus-5-5 takes no temperature"),
        ("claude-haiku-4-5", Settings(temperature=0.5, top_p=0.5), "or top_p, not both"),
        ("claude-haiku-4-5", Settings(temperature=1.5), "from 0 to 1"),
        ("claude-haiku-4-5", Settings(temperature=0.5, effort="low"), "while it thinks"),
        ("claude-haiku-4-5", Settings(extra={"top_k": 5}, effort="low"), "while it thinks"),
    ],
)
def test_sampling_is_refused_in_the_older_version_where_the_model_does_not_take_it(
    model: str, settings: Settings, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded("Hi", model=model, settings=settings, version=OLD)


def test_the_length_of_an_answer_is_always_said() -> None:
    assert encoded("Hi")["max_tokens"] == ANSWER
    assert encoded("Hi", model="claude-3-haiku-20240307")["max_tokens"] == 4096
    high = Settings(effort="high")
    assert encoded("Hi", model="claude-haiku-4-5", settings=high)["max_tokens"] == 2 * ANSWER
    for name, able in MODELS.items():
        most = able.output
        assert most is not None
        assert encoded("Hi", model=name)["max_tokens"] <= most


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("anthropic/claude-opus-5-5", "claude-opus-5-5"),
    ],
)
def test_a_model_is_known_with_and_without_its_date(name: str, row: str) -> None:
    assert abilities_of(name) is MODELS[row]


def test_a_model_that_has_no_row_is_taken_at_its_word() -> None:
    assert abilities_of("claude-opus-5-5-mini") is UNKNOWN
    body = encoded("Hi", assistant("Yes"), model="glm-5", settings=Settings(effort="max"))
    assert body["output_config"] == {"effort": "max"}
    assert body["messages"][-1]["role"] == "assistant"


# -- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (user(Image()), "This Image has neither data nor a URL"),
        (user(File(media_type="application/pdf")), "This File has neither data nor a URL"),
        (user(Image(data=b"BM", media_type="image/bmp")), "'image/bmp'; it takes image/jpeg"),
        (user(File(data=b"RIFF", media_type="audio/wav")), "takes no recordings"),
        (user(File(url="https://x/a.txt", media_type="text/plain")), "give the File its data"),
        (user(File(data=b"\xff", media_type="text/plain")), "no text in UTF-8"),
        (user(Image(url="data:image/png,abc")), "data URL without base64"),
        (Message("assistant", (File(data=b"%PDF"),)), "'assistant' cannot hold a part File"),
        (Message("system", (Image(data=b"x"),)), "'system' cannot hold a part Image"),
        (Message("user", (ToolResult("a", "b"),)), "'user' cannot hold a part ToolResult"),
        (Message("tool", (Text("x"),)), "'tool' holds tool results"),
        (user(""), "no message with anything in it"),
    ],
)
def test_a_message_that_cannot_be_sent_names_its_part(message: Message, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        encoded(message)


@pytest.mark.rule("R-TOOL-6")
@pytest.mark.parametrize(
    ("part", "takes", "words"),
    [
        (
            File(data=b"%PDF", media_type="application/pdf"),
            Capabilities(documents=False),
            "no documents",
        ),
        (Image(data=b"GIF8"), Capabilities(images=False), "no images"),
    ],
)
def test_what_a_model_is_declared_not_to_take_is_refused_and_left_out_of_results(
    part: Image | File, takes: Capabilities, words: str
) -> None:
    able = takes.over(abilities_of("claude-sonnet-4-6"))
    asking = RequestEncoder("claude-sonnet-4-6", able, NEWEST, "none")
    with pytest.raises(ConfigError, match=f"claude-sonnet-4-6 takes {words}"):
        asking.encode(chat(user(part)))
    called = assistant(calls=[ToolCall("a", "look")])
    result = Message("tool", (ToolResult("a", "look", (part,)),))
    body = json.loads(asking.encode(chat("?", called, result, tools=(look,))).content)
    ((block,),) = [turn["content"] for turn in body["messages"][2:]]
    assert "this model cannot take it" in block["content"][0]["text"]


def test_an_old_model_takes_no_documents() -> None:
    with pytest.raises(ConfigError, match="takes no documents"):
        encoded(user(File(data=b"%PDF", media_type="application/pdf")), model="claude-3-haiku")


def test_an_effort_that_is_no_budget_is_refused_where_thinking_takes_one() -> None:
    able = Capabilities(efforts=("turbo",)).over(abilities_of("claude-sonnet-4-5"))
    asking = RequestEncoder("claude-sonnet-4-5", able, NEWEST, "none")
    with pytest.raises(ConfigError, match="effort='turbo' names none; the words are low, medium"):
        asking.encode(chat("Hi", settings=Settings(effort="turbo")))


def test_a_model_without_prefill_is_not_given_one() -> None:
    with pytest.raises(ConfigError, match="the last message must be the user's"):
        encoded("Hi", assistant("Well"), model="claude-opus-5-5")


@pytest.mark.behaviour("B-ME-9", "B-LO-18")
@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_is_sent_as_it_is_but_for_half_characters(text: str) -> None:
    body = encoded(user("?", text))
    whole = "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
    sent = [block["text"] for block in body["messages"][0]["content"]]
    assert sent == (["?", whole] if text.strip() else ["?"])


# -- tools --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"type": "object", "oneOf": [{}]}, "'given' has 'oneOf' at the top"),
        ({"type": "object", "properties": {"a b": {}}}, "'given' has a parameter 'a b'"),
        ({"type": "object", "properties": {"x" * 65: {}}}, "up to 64 letters"),
    ],
)
def test_a_tool_that_the_vendor_does_not_take_is_named(
    parameters: dict[str, Any], words: str
) -> None:
    given_tool = tool(name="given", description="Given.", parameters=parameters)(lambda **_: None)
    with pytest.raises(ConfigError, match=words):
        encoded("Hi", tools=(given_tool,))


# -- the form of the answer ---------------------------------------------------------------------


class City(msgspec.Struct):
    name: str
    people: int


def test_objects_are_closed_and_limits_told_in_the_description() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
            "when": {"type": "string", "format": "date"},
            "name": {"type": "string", "format": "slug", "default": "x"},
            "list": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/leaf"}},
            "either": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {}}]},
        },
        "required": ["n"],
        "$defs": {"leaf": {"type": "object", "properties": {"x": {"enum": [1]}}}},
    }
    sent = encoded("Hi", output=Output(schema))["output_config"]["format"]
    assert sent["type"] == "json_schema"
    form = sent["schema"]
    assert form["additionalProperties"] is False
    assert form["required"] == ["n"]
    properties = form["properties"]
    assert properties["n"] == {
        "type": "integer", "description": "How many.\n\n{minimum: 1, maximum: 9}",
    }  # fmt: skip
    assert properties["when"] == {"type": "string", "format": "date"}
    assert properties["name"]["description"] == '{format: "slug", default: "x"}'
    assert properties["list"]["description"] == "{minItems: 2}"
    assert properties["either"]["anyOf"][1]["additionalProperties"] is False
    assert form["$defs"]["leaf"]["additionalProperties"] is False
    assert "additionalProperties" not in schema  # the user's own is as it was


LEAF = {"type": "object", "properties": {"next": {"$ref": "#/$defs/leaf"}}}


@pytest.mark.parametrize(
    "output",
    [
        Output({"type": "array", "items": {"type": "string"}}),
        Output({"type": "object", "additionalProperties": {"type": "integer"}}),
        Output({"type": "object", "properties": {"any": {}}}),
        Output({"type": "object", "properties": {"a": {"not": {"type": "null"}}}}),
        Output({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        Output(
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/leaf"}},
                "$defs": {"leaf": LEAF},
            }
        ),
    ],
    ids=["list", "free names", "anything", "not", "itself", "within itself"],
)
def test_a_form_that_the_vendor_cannot_be_asked_for_is_asked_for_in_words(output: Output) -> None:
    body = encoded("Hi", output=output, instructions=("Be brief.",))
    assert "output_config" not in body
    first, last = (block["text"] for block in body["system"])
    assert first == "Be brief."
    assert last.startswith("Answer with JSON alone")
    assert json.dumps(output.schema, separators=(",", ":")) in last


def test_a_model_without_forms_is_asked_in_words() -> None:
    body = encoded("Hi", output=Output.of(City), model="claude-sonnet-4-0")
    assert "output_config" not in body
    assert "JSON Schema" in body["system"][0]["text"]


def test_a_long_answer_is_asked_for_as_a_stream() -> None:
    one = encoder()
    assert one.encode(chat("Hi")).stream is False
    assert one.encode(chat("Hi", stream=True)).stream is True
    assert one.encode(chat("Hi", settings=Settings(max_tokens=30_000))).stream is True


@pytest.mark.parametrize("opaque", ["[1]", "{}", "not json", '"\ud83d"'])
def test_what_was_kept_in_a_form_that_nobody_knows_is_left_out(opaque: str) -> None:
    thought = Thinking("Hm.", opaque=opaque, provider="anthropic")
    body = encoded("Hi", Message("assistant", (thought, Text("Yes."))), "And?")
    assert body["messages"][1]["content"] == [{"type": "text", "text": "Yes."}]
