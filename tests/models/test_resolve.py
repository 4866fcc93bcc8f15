"""Models from the texts that name them."""

from typing import Any

import pytest

from retinue.errors import ConfigError, UnknownModelError
from retinue.models import OpenAI, resolve
from tests.provider import run_script


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that nobody will see."""
    for variable in ("OPENAI_API_KEY", "MOONSHOT_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.setenv(variable, "sk-something")


@pytest.mark.parametrize(
    ("text", "provider", "name"),
    [
        ("openai:gpt-5-mini", "openai", "gpt-5-mini"),
        (" openai:gpt-5-mini\n", "openai", "gpt-5-mini"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("openrouter:anthropic/claude-haiku-4.5", "openrouter", "anthropic/claude-haiku-4.5"),
        ("kimi:kimi-k2.5", "moonshot", "kimi-k2.5"),
    ],
)
def test_a_text_names_a_provider_and_a_model(text: str, provider: str, name: str) -> None:
    model = resolve(text)
    assert (model.provider, model.name) == (provider, name)


def test_a_model_object_is_given_back() -> None:
    model = OpenAI("m", api_key="sk-something")
    assert resolve(model) is model


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpt-5", "names no provider; write 'openai:gpt-5'"),
        ("DeepSeek-chat", "write 'deepseek:DeepSeek-chat'"),
        ("llama3", "write 'ollama:llama3'"),
        ("something", "'provider:model', with one of openai,.*local"),
        ("", "names no provider"),
        ("openai", "names a provider and no model; write 'openai:'"),
        ("openai:", "names a provider and no model"),
        ("opnai:gpt-5", "did you mean 'openai:gpt-5'"),
        ("Openai:gpt-5", "did you mean 'openai:gpt-5'"),
        ("zzz:m", "no provider 'zzz'; there are openai,.*base_url"),
    ],
)
def test_a_text_that_names_no_model_says_what_to_write(text: str, words: str) -> None:
    with pytest.raises(UnknownModelError, match=words):
        resolve(text)


@pytest.mark.parametrize("thing", [None, 3, object()])
def test_what_is_no_model_is_refused(thing: Any) -> None:
    with pytest.raises(ConfigError, match="A model is a text"):
        resolve(thing)


def test_the_module_does_not_take_the_place_of_the_function() -> None:
    done = run_script(
        "import retinue.models.resolve\n"
        "from retinue.models import resolve\n"
        "print(callable(resolve))\n"
    )
    assert done.stdout == "True\n", done.stderr
