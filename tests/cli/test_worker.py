"""`retinue worker`: what is refused before anything is dialled. Workers that run are in
`tests/serve/grpc`."""

import sys

import pytest

from tests.cli.conftest import Agents, Cli

TWO = """
agent = Agent(Scripted("one"), name="same")
other = Agent(Scripted("two"), name="same")
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--connect", "gateway"], "'gateway' is no address; give host:port"),
        (["--connect", "10.0.0.1:50051"], "another machine"),
        (["--connect", "127.0.0.1:1", "--tls-ca", "none.pem"], "'none.pem' cannot be read"),
        (["--connect", "127.0.0.1:1", "--tls-cert", "x.pem"], "A certificate needs its key"),
    ],
)
def test_what_cannot_be_dialled_is_refused_with_a_sentence(
    cli: Cli, agents: Agents, options: list[str], said: str
) -> None:
    module = agents('agent = Agent(Scripted("x"))')
    result = cli("worker", f"{module}:agent", *options)
    assert result.exit_code == 2
    assert said in result.stderr


def test_two_agents_of_one_name_are_refused(cli: Cli, agents: Agents) -> None:
    module = agents(TWO)
    result = cli("worker", f"{module}:agent", f"{module}:other", "--connect", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "Two agents are called 'same'" in result.stderr


def test_without_an_agent_or_a_gateway_there_is_nothing_to_do(cli: Cli) -> None:
    assert cli("worker").exit_code == 2
    assert cli("worker", "nowhere:agent").exit_code == 2


def test_a_missing_package_is_named_with_its_extra(
    cli: Cli, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("retinue.serve.grpc")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)
    module = agents('agent = Agent(Scripted("x"))')
    result = cli("worker", f"{module}:agent", "--connect", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "pip install 'retinue[grpc]'" in result.stderr


def test_a_database_that_cannot_be_is_refused(cli: Cli, agents: Agents) -> None:
    module = agents('agent = Agent(Scripted("x"))')
    result = cli(
        "worker", f"{module}:agent", "--connect", "127.0.0.1:1", "--database", "mysql://x/y"
    )
    assert result.exit_code == 2
    assert "The URL of the database is none of a store" in result.stderr
