"""What models take: declared, shown, and refused before the call where it is declared that not."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from retinue import tool
from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError, UnknownModelError
from retinue.messages import (
    File,
    Image,
    Message,
    ToolCall,
    ToolResult,
    assistant,
    tool_result,
    user,
)
from retinue.models import (
    GATEWAYS,
    Anthropic,
    Capabilities,
    Gateway,
    OpenAI,
    PromptedTools,
    Responses,
    Scripted,
    capabilities_of,
    resolve,
)
from retinue.models.capabilities import UNKNOWN, find_row
from retinue.models.openai.encode import RequestEncoder as ChatEncoder
from retinue.models.responses.encode import RequestEncoder as ItemsEncoder
from tests.models.calling import ask, chat

AT = "http://127.0.0.1:1"  # nobody listens there: what is refused is refused before
PDF = File(data=b"%PDF", media_type="application/pdf")
SOUND = File(data=b"RIFF", media_type="audio/wav")
FILM = File(data=b"film", media_type="video/mp4")
NOBODY = Gateway(name="mine", base_url=AT, needs_key=False)
FORM = Output({"type": "object", "properties": {"a": {"type": "string"}}}, "form")


@tool
def look() -> str:
    """Looks."""
    return ""


def model_of(name: str, **options: Any) -> Anthropic | OpenAI | Responses:
    """A model by its text, which nobody serves."""
    provider, _, bare = name.partition(":")
    if provider == "anthropic":
        return Anthropic(bare, base_url=AT, **options)
    row = provider.removesuffix("-responses")
    kind = Responses if provider.endswith("-responses") else OpenAI
    return kind(bare, base_url=AT, api_key="k", gateway=row, **options)


def encode(model: str, *messages: str | Message, **fields: Any) -> str:
    """The body that would be sent."""
    provider, _, name = model.partition(":")
    row = GATEWAYS.get(provider.removesuffix("-responses"), NOBODY)
    if provider.endswith("-responses"):
        items = ItemsEncoder(name, row, row.capabilities_in_responses(name))
        return items.encode(chat(*messages, **fields)).decode()
    return ChatEncoder(name, row, row.capabilities(name)).encode(chat(*messages, **fields)).decode()


def sent(model: str, **fields: Any) -> dict[str, Any]:
    """The same, read."""
    return json.loads(encode(model, "Hi", **fields))


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("model", "part", "words"),
    [
        ("openai:gpt-3.5-turbo", Image(data=b"x"), "openai:gpt-3.5-turbo takes no images; leave"),
        ("openai:gpt-5-mini", SOUND, "takes no recordings; leave the File .audio/wav. out"),
        ("openai:gpt-5-mini", FILM, "takes no videos"),
        ("azure:gpt-4o", PDF, "azure:gpt-4o takes no documents; give what is in the File"),
        ("groq:any", PDF, "groq:any takes no documents"),
        ("openai-responses:gpt-4o", SOUND, "openai-responses:gpt-4o takes no recordings"),
        ("openai-responses:gpt-3.5-turbo", Image(data=b"x"), "takes no images"),
        ("anthropic:claude-3-haiku-20240307", PDF, "claude-3-haiku-20240307 takes no documents"),
    ],
)
async def test_a_part_that_a_model_does_not_take_is_refused(
    model: str, part: Image | File, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await ask(model_of(model), user("Look:", part))


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("openai:gpt-5", Settings(temperature=0.2), "openai:gpt-5 takes no temperature; leave"),
        ("openai:o3-mini", Settings(top_p=0.2), "takes no top_p; leave top_p=0.2 out"),
        ("openai:o4-mini", Settings(stop=("END",)), "takes no stop"),
        ("openai-responses:gpt-4o", Settings(seed=1), "openai-responses:gpt-4o takes no seed"),
        ("openai:gpt-4o", Settings(effort="low"), "gpt-4o cannot think; leave effort='low' out"),
        ("openai:gpt-5", Settings(effort="max"), "it knows minimal, low, medium, high"),
        ("moonshot:kimi-k3", Settings(effort="low"), r"no field for effort='low'.*extra=\{"),
        ("openai:gpt-4o", Settings(max_tokens=16_385), "it can write 16384"),
        ("openai:o3", Settings(parallel_tool_calls=True), "one call at a time"),
        ("anthropic:claude-opus-5-5", Settings(tool_choice="look"), "cannot be forced"),
        ("anthropic:claude-haiku-4-5", Settings(seed=1), "claude-haiku-4-5 takes no seed"),
    ],
)
async def test_a_setting_that_a_model_does_not_take_is_refused(
    model: str, settings: Settings, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await ask(model_of(model), "Hi", settings=settings, tools=(look,))


async def test_tools_for_a_model_that_takes_none_are_refused_with_the_way_out() -> None:
    model = model_of("ollama:small", capabilities=Capabilities(tools=False))
    with pytest.raises(ConfigError, match=r"takes no tools; leave look out, put PromptedTools"):
        await ask(model, "Hi", tools=(look,))


@pytest.mark.parametrize("model", ["ollama:any", "openrouter:any", "mine:any"])
def test_of_a_model_that_nobody_describes_all_is_sent_as_asked(model: str) -> None:
    settings = Settings(
        temperature=1.5, seed=1, stop=("x",), effort="odd", parallel_tool_calls=True,
        max_tokens=10**9,
    )  # fmt: skip
    asked = user("Hi", Image(url="u"))
    body = json.loads(encode(model, asked, settings=settings, tools=(look,)))
    assert body["temperature"] == 1.5
    assert body["parallel_tool_calls"] is True
    assert body["messages"][0]["content"][1]["type"] == "image_url"


# -- what is left out without harm --------------------------------------------------------------


def test_one_call_at_a_time_is_not_asked_of_a_model_that_makes_no_more() -> None:
    settings = Settings(parallel_tool_calls=False)
    assert "parallel_tool_calls" not in sent("openai:o3", settings=settings, tools=(look,))
    assert sent("openai:gpt-5", settings=settings, tools=(look,))["parallel_tool_calls"] is False


def test_the_form_of_an_answer_is_asked_for_as_each_model_takes_it() -> None:
    assert sent("openai:gpt-4o", output=FORM)["response_format"]["type"] == "json_schema"
    older = sent("openai:gpt-4-turbo", output=FORM)
    assert older["response_format"] == {"type": "json_object"}
    assert "JSON Schema" in older["messages"][0]["content"]
    oldest = sent("openai:gpt-4-0613", output=FORM)
    assert "response_format" not in oldest
    assert "JSON Schema" in oldest["messages"][0]["content"]


@pytest.mark.rule("R-TOOL-6")
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
async def test_a_part_of_a_result_that_the_model_cannot_see_is_told_to_both_sides(
    provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = (
        assistant(calls=[ToolCall("a", "look")]),
        tool_result(ToolResult("a", "look", (Image(data=b"x"),))),
    )
    with caplog.at_level(logging.WARNING, logger="retinue"):
        body = encode(f"{provider}:gpt-3.5-turbo", *asked)
    assert "[image 1: this model cannot take it]" in body
    assert "result of look is left out: Image" in caplog.text
    assert "gpt-3.5-turbo takes no images" in caplog.text


# -- where it is declared -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("gpt-5", "gpt-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("GPT-5-MINI", "gpt-5-mini"),
        ("gpt-5-mini-latest", "gpt-5-mini"),
        ("gpt-5-mini:tag", "gpt-5-mini"),
        ("gpt-5-0613-preview", "gpt-5"),
        ("gpt-5@20250807", "gpt-5"),
        ("gpt-5-nova", None),
        ("gpt-5.1", None),
        ("gpt-51", None),
        ("gpt-5-", None),
        ("gpt", None),
        ("", None),
    ],
)
def test_a_row_is_found_by_its_name_and_by_nothing_that_only_looks_like_it(
    name: str, row: str | None
) -> None:
    rows = {each: Capabilities(context=len(each)) for each in ("gpt-5", "gpt-5-mini")}
    found = find_row(name, rows)
    assert found is (None if row is None else rows[row])


FIELDS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("images", "tools", "seed"), st.booleans())
    | {"context": st.integers(1, 9), "efforts": st.sampled_from([(), ("low",)])},
)


@given(FIELDS, FIELDS)
def test_a_place_can_take_away_and_its_user_can_say_anything(
    model: dict[str, Any], place: dict[str, Any]
) -> None:
    there = Capabilities(**model).within(Capabilities(**place))
    for name in ("images", "tools", "seed", "efforts"):
        if place.get(name) in (False, ()):
            assert getattr(there, name) in (False, ())
        else:
            assert getattr(there, name) == model.get(name, place.get(name))
    said = Capabilities(**place).over(Capabilities(**model))
    assert said == Capabilities(**{**model, **place})


def test_every_adapter_tells_what_its_model_takes() -> None:
    assert model_of("openai:gpt-5-mini").capabilities.context == 400_000
    assert model_of("openai-responses:gpt-5-mini").capabilities.stop is False
    assert Anthropic("claude-opus-5-5", api_key="k").capabilities.prefill is False
    assert Scripted("Hi").capabilities == UNKNOWN
    inside = PromptedTools(Scripted("Hi", capabilities=Capabilities(tools=False, images=True)))
    assert inside.capabilities.tools is True
    assert inside.capabilities.parallel_tools is False
    assert inside.capabilities.images is True


def test_anthropic_takes_sampling_in_the_version_that_does() -> None:
    old = model_of("anthropic:claude-haiku-4-5", version="2023-06-01")
    assert old.capabilities.sampling is True
    assert model_of("anthropic:claude-haiku-4-5").capabilities.sampling is False


def test_what_the_user_says_of_a_model_counts_more_than_its_row() -> None:
    mine = Capabilities(sampling=True, output=5)
    takes = model_of("openai:gpt-5", capabilities=mine).capabilities
    assert (takes.sampling, takes.output, takes.context) == (True, 5, 400_000)
    claude = Anthropic("claude-opus-5-5", api_key="k", capabilities=mine).capabilities
    assert (claude.output, claude.thinks_by) == (5, "adaptive")


@pytest.mark.parametrize(
    "name", ["openai:gpt-5", "kimi:kimi-k2.5", "xai-responses:grok-4", "anthropic:claude-opus-5-5"]
)
def test_a_name_tells_the_same_as_its_model_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("OPENAI_API_KEY", "MOONSHOT_API_KEY", "XAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "k")
    model = resolve(name)
    assert capabilities_of(name) == capabilities_of(model) != UNKNOWN


def test_a_model_on_this_machine_takes_tools_by_the_prompt() -> None:
    takes = capabilities_of("local")
    assert (takes.tools, takes.parallel_tools, takes.images) == (True, False, False)


def test_a_model_that_says_nothing_of_itself_is_unknown() -> None:
    class Mute:
        name = provider = "mute"

    assert capabilities_of(Mute()) == UNKNOWN  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownModelError):
        capabilities_of("nobody:m")


@pytest.mark.parametrize("provider", [*GATEWAYS, "openai-responses"])
def test_rows_agree_with_themselves(provider: str) -> None:
    row = GATEWAYS[provider.removesuffix("-responses")]
    for name, takes in row.models.items():
        assert name == name.lower()
        assert find_row(name, row.models) is takes
        if takes.thinking is False:
            assert not takes.efforts
        if takes.context and takes.output:
            assert takes.output <= takes.context
        assert structs.asdict(takes) != structs.asdict(UNKNOWN)


async def test_prompted_tools_asks_for_no_temperature_where_there_is_none() -> None:
    inner = Scripted('{"action": "answer"}', "Hi", capabilities=Capabilities(sampling=False))
    await ask(PromptedTools(inner), "Hi", tools=(look,))
    assert [request.settings.temperature for request in inner.requests] == [None, None]
