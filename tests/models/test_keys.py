"""A key of the environment goes to its vendor alone, whatever the format."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from retinue.errors import ConfigError, MissingKeyError, ModelRefused
from retinue.models import Anthropic, Gateway, Gemini, Model, OpenAI, Responses
from tests.models.calling import ask
from tests.models.listening import listening

SECRET = "sk-from-the-environment"

pytestmark = pytest.mark.rule("R-FAIL-3")
Make = Callable[..., Model]

FORMATS = pytest.mark.parametrize(
    ("make", "key", "place", "home"),
    [
        (Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
        (
            Gemini,
            "GEMINI_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "https://generativelanguage.googleapis.com",
        ),
        (OpenAI, "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com"),
        (Responses, "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com"),
    ],
    ids=["anthropic", "gemini", "openai", "responses"],
)


class Doorman:
    """A server that lets nobody in, and remembers what it was shown."""

    def __init__(self) -> None:
        self.url = ""
        self.shown = ""

    async def handle(self, request: web.Request) -> web.Response:
        """Answers 401."""
        self.shown = str(dict(request.headers))
        return web.json_response({"error": {"message": "Who are you?"}}, status=401)


@asynccontextmanager
async def doorman() -> AsyncIterator[Doorman]:
    """The server, until the end of the block."""
    serving = Doorman()
    async with listening("/{path:.*}", serving.handle) as serving.url:
        yield serving


async def refusal(model: Model) -> str:
    """What the user is told where the key is not let in."""
    try:
        with pytest.raises(ModelRefused) as caught:
            await ask(model)
        return str(caught.value)
    finally:
        await model.close()


@pytest.fixture(autouse=True)
def no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The addresses of whoever runs the tests are not theirs to ask."""
    for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@FORMATS
async def test_an_address_that_the_program_gives_gets_no_key_of_the_environment(
    make: Make, key: str, place: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, SECRET)
    async with doorman() as at:
        told = await refusal(make("m", base_url=at.url))
    assert SECRET not in at.shown
    assert "Check api_key" in told


@FORMATS
async def test_it_gets_the_key_that_the_program_gives(
    make: Make, key: str, place: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, SECRET)
    async with doorman() as at:
        await refusal(make("m", base_url=at.url, api_key="sk-given"))
    assert SECRET not in at.shown
    assert "sk-given" in at.shown


@FORMATS
async def test_an_address_that_the_environment_names_gets_its_key(
    make: Make, key: str, place: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, SECRET)
    async with doorman() as at:
        monkeypatch.setenv(place, at.url)
        told = await refusal(make("m"))
    assert SECRET in at.shown
    assert f"Check {key}" in told


@pytest.mark.parametrize("make", [OpenAI, Responses])
def test_a_gateway_elsewhere_says_that_its_key_stays_at_home(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XAI_API_KEY", SECRET)
    told = r"xai needs a key: give api_key=...; the key in XAI_API_KEY goes to api\.x\.ai alone"
    for elsewhere in (
        "https://api.x.ai.invalid/v1",
        "http://api.x.ai/v1",  # in the open
        "https://api.x.ai:8443/v1",
    ):
        with pytest.raises(MissingKeyError, match=told):
            make("grok-5", gateway="xai", base_url=elsewhere)
    for home in ("https://api.x.ai/v1", "https://api.x.ai:443/beta/"):
        make("grok-5", gateway="xai", base_url=home)


def test_a_missing_key_says_where_it_could_come_from() -> None:
    with pytest.raises(MissingKeyError, match=r"xai needs a key: set XAI_API_KEY, or in Python"):
        OpenAI("grok-5", gateway="xai")
    with pytest.raises(MissingKeyError, match=r"xai needs a key: in Python give api_key"):
        OpenAI("grok-5", gateway="xai", base_url="https://elsewhere.invalid/v1")


@FORMATS
def test_where_the_environment_names_no_address_its_key_has_no_place_to_go(
    make: Make, key: str, place: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(key, SECRET)
    monkeypatch.setenv(place, "https://proxy:port/v1")
    gateway = {"gateway": "openai"} if key == "OPENAI_API_KEY" else {}
    with pytest.raises(ConfigError, match=f"{place} is no URL"):
        make("m", base_url="https://elsewhere.invalid", **gateway)
    make("m", base_url="https://elsewhere.invalid", api_key="sk-given", **gateway)


@pytest.mark.parametrize(
    ("options", "variable"),
    [
        ({"gateway": "vllm"}, "VLLM_API_KEY"),
        ({"gateway": "azure"}, "AZURE_OPENAI_API_KEY"),
        ({"gateway": Gateway(name="mine", key_vars=("MY_KEY",))}, "MY_KEY"),
    ],
    ids=["vllm", "azure", "mine"],
)
async def test_a_server_of_ones_own_gets_its_key_wherever_it_is(
    options: dict[str, Any], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, SECRET)
    async with doorman() as at:
        await refusal(OpenAI("m", base_url=at.url, **options))
    assert SECRET in at.shown
