"""Making a model of the Responses format, and texts that name one."""

from typing import Any

import pytest

from retinue.errors import ConfigError, MissingKeyError, UnknownModelError
from retinue.models import Model, Responses, resolve
from retinue.models.capabilities import UNKNOWN
from retinue.models.gateways import GATEWAYS, Gateway
from retinue.models.responses.encode import ENCRYPTED
from tests.models.calling import ask
from tests.models.vendor import KEY, Step, answer, says, vendor

SPEAKING = [name for name, row in GATEWAYS.items() if row.responses]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of whoever runs the tests are not theirs to use."""
    for row in GATEWAYS.values():
        for variable in (*row.key_vars, row.url_var):
            if variable:
                monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("name", SPEAKING)
def test_every_gateway_that_speaks_it_makes_a_model_that_does_not_show_its_key(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = GATEWAYS[name]
    if row.key_vars:
        monkeypatch.setenv(row.key_vars[-1], "sk-from-the-environment")
    if row.base_url is None:
        monkeypatch.setenv(row.url_var or "", "https://my.example.invalid/")
    model = resolve(f"{name}-responses:m")
    assert isinstance(model, Responses)
    assert isinstance(model, Model)
    assert (model.name, model.provider) == ("m", name)
    assert "sk-from" not in repr(model)
    assert name in repr(model)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("openai-response:gpt-5", "did you mean 'openai-responses:gpt-5'"),
        ("openai-responses:", "names a provider and no model; write 'openai-responses:'"),
        ("mistral-responses:m", "no provider 'mistral-responses'"),
    ],
)
def test_a_text_that_names_no_model_says_what_to_write(text: str, words: str) -> None:
    with pytest.raises(UnknownModelError, match=words):
        resolve(text)


def test_a_missing_key_is_told_by_the_name_of_its_variable() -> None:
    with pytest.raises(MissingKeyError, match="openai needs a key: set OPENAI_API_KEY"):
        resolve("openai-responses:gpt-5-mini")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("", {}, "no model name"),
        ("m", {"gateway": "opnai"}, "no gateway 'opnai'.*openrouter"),
        ("m", {"gateway": "mistral"}, "mistral does not speak the Responses format; use OpenAI"),
        ("m", {"base_url": "127.0.0.1:8000/v1"}, "base_url must look like"),
        ("m", {"timeout": 0}, "timeout must be"),
        ("m", {"previous_response_id": True}, "needs store=True"),
    ],
)
def test_what_cannot_work_is_refused_when_the_model_is_made(
    name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        Responses(name, api_key="sk-something", **options)


def test_a_server_of_ones_own_needs_no_key_and_gets_none_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    model = Responses("m", base_url="http://127.0.0.1:1/v1")
    assert model.provider == "compatible"
    row = Gateway(name="mine", base_url="http://127.0.0.1:1/v1", needs_key=False, responses=UNKNOWN)
    assert Responses("m", gateway=row).provider == "mine"


@pytest.mark.parametrize(
    ("name", "gateway", "asked"),
    [
        ("gpt-5-mini", "openai", True),
        ("o4-mini", "openai", True),
        ("my-deployment", "azure", True),
        ("openai/gpt-4.1-mini", "openrouter", False),
        ("gpt-4o", "openai", False),
        ("ft:gpt-4o:me::1", "openai", False),
        ("gpt-5-chat-latest", "openai", False),
        ("llama3", "ollama", False),
    ],
)
async def test_encrypted_reasoning_is_asked_for_where_there_is_some(
    name: str, gateway: str, asked: bool
) -> None:
    async with vendor(answer(says("Hi"))) as at:
        await ask(Responses(name, gateway=gateway, base_url=at.url, api_key=KEY))
    assert at.requests[0].body.get("include") == ([ENCRYPTED] if asked else None)


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("key", "status", "words"),
    [
        ("sk-wrong-key-of-mine", 200, "Incorrect API key"),
        (KEY, 404, "knows no such model.*'m'"),
        (KEY, 500, "failed"),
    ],
)
async def test_a_refusal_is_told_in_the_words_of_the_vendor(
    key: str, status: int, words: str
) -> None:
    async with vendor(Step(status=status)) as at:
        model = Responses("m", base_url=at.url, api_key=key, gateway="openai")
        with pytest.raises(Exception, match=words) as caught:
            await ask(model)
    assert key not in str(caught.value)


async def test_a_closed_model_opens_anew() -> None:
    async with vendor(answer(says("one")), answer(says("two"))) as at:
        model = Responses("m", base_url=at.url, api_key=KEY, gateway="openai")
        assert (await ask(model)).text == "one"
        await model.close()
        assert (await ask(model, stream=True)).text == "two"


async def test_the_id_of_the_answer_and_its_model_are_in_meta() -> None:
    async with vendor(answer(says("one")), answer(says("two"))) as at:
        model = Responses("m", base_url=at.url, api_key=KEY, gateway="openai")
        whole, stream = await ask(model), await ask(model, stream=True)
    assert [each.meta["model"] for each in (whole, stream)] == ["m", "m"]
    assert whole.meta["id"] != stream.meta["id"]
