"""Making a Gemini model, and texts that name one."""

from typing import Any

import pytest

from retinue.chains.output import Output
from retinue.chains.settings import Settings
from retinue.errors import ConfigError, MissingKeyError, ModelRefused, classify
from retinue.messages import Image, user
from retinue.models import Gemini, Model, OpenAI, resolve
from retinue.models.capabilities import Capabilities
from retinue.models.resolve import capabilities_of
from tests.models.calling import ask
from tests.models.gemini_rig import KEY, Step, answer, says, vendor

SECRET = "AIza-from-the-environment"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_a_text_names_a_model_that_does_not_show_its_key(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, SECRET)
    model = resolve("gemini:gemini-3.8-flash")
    assert isinstance(model, Gemini)
    assert isinstance(model, Model)
    assert (model.name, model.provider) == ("gemini-3.8-flash", "gemini")
    assert model.capabilities == capabilities_of("gemini:gemini-3.8-flash")
    assert model.capabilities.efforts == ("low", "medium", "high")
    assert repr(model) == (
        "Gemini('gemini-3.8-flash', provider='gemini', host='generativelanguage.googleapis.com')"
    )
    assert SECRET not in model.url


def test_the_compatible_endpoint_is_there_under_a_name_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    model = resolve("gemini-openai:gemini-3.8-flash")
    assert isinstance(model, OpenAI)
    assert model.provider == "gemini-openai"


def test_a_missing_key_is_told_by_the_name_of_its_variable() -> None:
    with pytest.raises(MissingKeyError, match="gemini needs a key: set GEMINI_API_KEY or GOOGLE"):
        resolve("gemini:gemini-3.8-flash")


def test_another_address_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1/")
    model = Gemini("m", api_key=KEY)
    assert model.url == "http://127.0.0.1:1/v1beta/models/m:generateContent"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("", {}, "no model name"),
        (" m", {}, "such as 'gemini-3.8-flash'"),
        ("m", {"base_url": "127.0.0.1:8000/v1beta"}, "base_url must look like"),
        ("m", {"base_url": "https://me:hush@host/v1beta"}, "must not hold a user"),
        ("m", {"timeout": 0}, "timeout must be"),
        ("m", {"api_key": "AIza-\n-in-two"}, "holds characters"),
    ],
)
def test_what_cannot_work_is_refused_when_the_model_is_made(
    name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Gemini(name, **{"api_key": KEY, **options})
    assert "hush" not in str(caught.value)


def test_a_server_of_ones_own_needs_no_key() -> None:
    assert Gemini("m", base_url="http://127.0.0.1:1/v1beta").provider == "gemini"


async def test_what_a_model_takes_is_declared_or_given() -> None:
    mine = Gemini("mine", api_key=KEY, capabilities=Capabilities(images=False, thinking=False))
    assert (mine.capabilities.images, mine.capabilities.audio) == (False, None)
    with pytest.raises(ConfigError, match="mine takes no images; leave the Image out"):
        await ask(mine, user(Image(url="https://x.example/a.png")))
    with pytest.raises(ConfigError, match="mine cannot think"):
        await ask(mine, settings=Settings(effort="low"))
    old = Gemini("gemini-2.5-pro", api_key=KEY, capabilities=Capabilities(efforts=("huge",)))
    with pytest.raises(ConfigError, match="effort='huge' names none; the words are none, minimal"):
        await ask(old, settings=Settings(effort="huge"))


async def test_a_model_that_takes_no_schema_is_asked_in_words() -> None:
    for json_mode, config in ((False, None), (None, {"responseMimeType": "application/json"})):
        given = Capabilities(schema=False, json_mode=json_mode)
        async with vendor(answer(says("{}"))) as at:
            model = Gemini("mine", base_url=at.url, api_key=KEY, capabilities=given)
            await ask(model, output=Output({"type": "object"}))
        body = at.requests[0].body
        assert body.get("generationConfig") == config
        assert "JSON Schema" in body["systemInstruction"]["parts"][0]["text"]


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_wrong_key_is_told_as_one_and_never_shown(stream: bool) -> None:
    async with vendor() as at:
        model = Gemini("gemini-3.8-flash", base_url=at.url, api_key="AIza-wrong-key-of-mine")
        with pytest.raises(ModelRefused, match=r"refused the key.*API key not valid") as caught:
            await ask(model, stream=stream)
    assert "AIza-wrong" not in str(caught.value)
    assert classify(caught.value) == "environment"


@pytest.mark.parametrize(
    ("status", "words"), [(404, "knows no such model.*'gemini-9'"), (500, "failed"), (429, "rate")]
)
async def test_a_refusal_says_what_to_do(status: int, words: str) -> None:
    async with vendor(Step(status=status)) as at:
        with pytest.raises(Exception, match=words):
            await ask(Gemini("gemini-9", base_url=at.url, api_key=KEY))


async def test_a_closed_model_opens_anew() -> None:
    async with vendor(answer(says("one")), answer(says("two"))) as at:
        model = Gemini("gemini-3.8-flash", base_url=at.url, api_key=KEY)
        assert (await ask(model)).text == "one"
        await model.close()
        second = await ask(model, stream=True)
    assert second.text == "two"
    assert second.meta == {"id": "r1", "model": "gemini-3.8-flash"}
