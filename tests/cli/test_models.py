"""`retinue models`."""

import json

import pytest

from retinue.models import GATEWAYS
from tests.cli.conftest import Cli


def places(cli: Cli) -> dict[str, dict[str, str]]:
    lines = cli("models", "--json").stdout.splitlines()
    return {place["provider"]: place for place in map(json.loads, lines)}


def test_every_gateway_and_the_local_model_are_listed(cli: Cli) -> None:
    assert places(cli).keys() == {*GATEWAYS, "anthropic", "gemini", "local"}
    rows = cli("models").stdout.splitlines()
    assert [row.split("\t")[0] for row in rows] == [*GATEWAYS, "anthropic", "gemini", "local"]


@pytest.mark.rule("R-FAIL-3")
def test_a_key_is_said_to_be_set_and_never_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert places(cli)["openai"]["key"] == "not set"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hush")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:hush@host.example/v1")
    assert places(cli)["openai"]["key"] == "set"
    assert places(cli)["openai"]["address"] == "$OPENAI_BASE_URL"
    assert "hush" not in cli("models").stdout + cli("models", "--json").stdout


def test_a_gateway_of_several_keys_names_the_one_that_counts(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert places(cli)["gemini"]["variable"] == "GEMINI_API_KEY or GOOGLE_API_KEY"
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    assert places(cli)["gemini"]["variable"] == "GOOGLE_API_KEY"


def test_other_names_of_a_provider_are_told(cli: Cli) -> None:
    assert places(cli)["glm"]["note"] == "also zai, zhipu"
    assert "openai-responses" in places(cli)["openai"]["note"]


def test_a_server_on_this_machine_needs_no_key(cli: Cli) -> None:
    assert places(cli)["ollama"]["key"] == "not needed"


def test_what_the_local_model_lacks_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.models.llamacpp.server.find_spec", lambda _: None)
    local = places(cli)["local"]
    assert local["address"] == ""
    assert "retinue[local]" in local["note"]


# -- what they take -----------------------------------------------------------------------------


def test_what_a_model_takes_is_shown_without_a_key(cli: Cli) -> None:
    rows = dict(row.split("\t") for row in cli("models", "openai:gpt-5-mini").stdout.splitlines())
    assert rows["images"] == "yes"
    assert rows["audio"] == "no"
    assert rows["sampling"] == "no"
    assert rows["efforts"] == "minimal low medium high"
    assert rows["context"] == "400,000"
    assert json.loads(cli("models", "openai:gpt-5-mini", "--json").stdout)["seed"] is None


def test_what_nobody_says_of_a_model_is_not_known(cli: Cli) -> None:
    rows = dict(row.split("\t") for row in cli("models", "ollama:qwen3:8b").stdout.splitlines())
    assert rows["images"] == "?"
    assert rows["documents"] == "no"


@pytest.mark.parametrize(
    "provider", ["openai", "xai-responses", "kimi", "groq", "anthropic", "gemini"]
)
def test_the_models_of_a_provider_are_listed(cli: Cli, provider: str) -> None:
    rows = [row.split("\t") for row in cli("models", provider).stdout.splitlines()]
    assert rows[-1][0] == "*"
    named = [
        json.loads(row)["model"]
        for row in cli("models", provider, "--json").stdout.split("\n")
        if row
    ]
    assert [name.partition(":")[2] for name in named] == [row[0] for row in rows]


def test_a_provider_that_is_not_there_is_named(cli: Cli) -> None:
    done = cli("models", "opnai:gpt-5")
    assert done.exit_code == 2
    assert "did you mean 'openai:gpt-5'" in done.stderr
