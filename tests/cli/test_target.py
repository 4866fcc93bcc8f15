"""What a target names, and what is said of one that names nothing."""

import pytest

from tests.cli.conftest import Agents, Cli

HOUSE = """
agent = Agent(Scripted("Hello."), name="butler")
spare = Agent(Scripted("Hi."))
number = 7
nothing = None

class House:
    inner = agent

def factory(): return agent
def needy(name): return agent
def empty(): return None
async def late(): return agent
def broken(): raise ValueError("no coal")
def keyless(): return Agent("openai:gpt-5-mini")
"""


@pytest.mark.parametrize("name", ["agent", "factory", "House.inner"])
def test_an_agent_or_a_function_that_returns_one_is_found_in_a_module(
    cli: Cli, agents: Agents, name: str
) -> None:
    result = cli("explain", f"{agents(HOUSE)}:{name}")
    assert result.exit_code == 0
    assert result.stdout.startswith("butler\n")


@pytest.mark.rule("R-FAIL-3")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("agnt", "has no 'agnt'; its agents are agent, spare."),
        ("number", "is of type int; name an Agent"),
        ("nothing", "is None; name an Agent"),
        ("needy", "cannot be called without arguments"),
        ("empty", "returned None; it must return an Agent"),
        ("late", "is async; name a plain function"),
        ("broken", "made no agent: ValueError: no coal"),
        ("keyless", "retinue: openai needs a key: set OPENAI_API_KEY"),
        ("", "is a module; say which agent in it"),
    ],
)
def test_what_is_no_agent_is_refused_by_name(
    cli: Cli, agents: Agents, name: str, says: str
) -> None:
    result = cli("explain", f"{agents(HOUSE)}:{name}")
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere:agent", "there is no module 'nowhere' in this folder or installed, nor a model"),
        ("opnai:gpt-5", "did you mean 'openai:gpt-5'?"),
        ("gpt-5", "write 'openai:gpt-5'"),
        ("openai", "names a provider and no model"),
        ("house/app.py:agent", "is a file; name the module: 'house.app:agent'"),
        ("a..b:agent", "there is no module 'a..b'"),
        (".house:agent", "there is no module '.house'"),
        ("openai:gpt-5", "set OPENAI_API_KEY, or in Python give api_key"),
        ("anthropic:claude", "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or in Python"),
        ("", "names no provider"),
    ],
)
def test_a_target_that_names_nothing_is_refused_with_the_way_out(
    cli: Cli, target: str, says: str
) -> None:
    result = cli("explain", target)
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import absent_thing", "ModuleNotFoundError: No module named 'absent_thing'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("agent = (", "SyntaxError"),
        ("raise ConfigError('Mend me.')", "retinue: Mend me.\n"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_sentence(
    cli: Cli, agents: Agents, code: str, says: str
) -> None:
    result = cli("explain", f"{agents(code)}:agent")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_where_a_module_broke(cli: Cli, agents: Agents) -> None:
    result = cli("explain", f"{agents('import absent_thing')}:agent", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "import absent_thing" in result.stderr


def test_a_provider_stands_before_a_module_of_the_same_name(cli: Cli, agents: Agents) -> None:
    agents("")
    result = cli("explain", "ollama:qwen3")
    assert result.exit_code == 0
    assert "ollama:qwen3" in result.stdout


def test_without_a_target_and_a_local_model_the_user_is_told_what_to_name(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retinue.models.llamacpp.server.find_spec", lambda _: None)
    result = cli("chat")
    assert result.exit_code == 2
    assert "a model such as openai:gpt-5-mini, or an agent of yours as module:agent" in (
        result.stderr
    )
