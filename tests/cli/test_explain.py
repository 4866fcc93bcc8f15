"""`retinue explain`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Agents, Cli
from tests.cli.terminal import Terminal, environment

ONION = """
async def hook(request, call_next):
    return await call_next(request)

import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    agent = Agent(Scripted("x"), name="butler", advisors=[
        Layer("again", chat=hook, traits=frozenset({"retries"})),
        Layer("calm", chat=hook, traits=frozenset({"swallows"})),
    ])
"""


@pytest.mark.rule("R-ONION-10")
def test_the_onion_is_printed_with_its_warnings(cli: Cli, agents: Agents) -> None:
    result = cli("explain", f"{agents(ONION)}:agent")
    assert result.exit_code == 0
    assert "again → calm" in result.stdout
    assert "! again stands outside calm" in result.stdout


def test_on_a_terminal_warnings_stand_out(home: Path, agents: Agents) -> None:
    name = agents(ONION)
    with Terminal(["explain", f"{name}:agent"], cwd=home, env=environment(), columns=200) as shown:
        assert shown.end() == 0
    assert "\x1b[1;33m! again stands outside calm" in shown.raw
    assert shown.raw.count("\x1b[1;33m") == 1


def test_the_onion_as_json_holds_layers_and_warnings(cli: Cli, agents: Agents) -> None:
    onion = json.loads(cli("explain", f"{agents(ONION)}:agent", "--json").stdout)
    assert [layer["name"] for layer in onion["layers"]] == ["again", "calm"]
    assert len(onion["warnings"]) == 1
