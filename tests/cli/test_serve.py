"""`retinue serve` as a process of its own: it says where it listens, serves, drains and ends."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import aiohttp
import pytest

from retinue import ConfigError
from retinue.serve.grpc.routing import RouteName, route_of
from tests.cli.conftest import Agents, Cli

BOUND = 30.0
"""Seconds that a process may take to start or to end, on the slowest machine."""


@asynccontextmanager
async def server(*arguments: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """A running `retinue serve` on a free port: its address, and the process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "retinue.cli", "serve", "--port", "0", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(BOUND):
            said = (await process.stdout.readline()).decode()
            if not said.startswith("Listening on "):
                raise AssertionError(said + (await process.stderr.read()).decode())
        yield said.split()[-1], process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(BOUND):
        return await process.wait()


async def post(client: aiohttp.ClientSession, path: str, body: Any, **headers: str) -> Any:
    async with client.post(path, json=body, headers=headers) as response:
        return response.status, json.loads(await response.text())


async def test_it_serves_agents_and_keeps_their_conversations(agents: Agents) -> None:
    code = 'helper = Agent(Scripted("one", "two"), name="helper")'
    target = f"{agents(code)}:helper"
    async with server(target) as (url, process), aiohttp.ClientSession(url) as client:
        _, got = await post(client, "/v1/turns", {"input": "Hi", "conversation": "c"})
        assert got["text"] == "one"
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 0
    async with (
        server(target) as (url, _),
        aiohttp.ClientSession(url) as client,
        client.get("/v1/conversations/c/messages") as response,
    ):
        page = json.loads(await response.text())
    assert len(page["messages"]) == 2


async def test_a_declared_agent_is_served_under_its_name(agents: Agents) -> None:
    code = """
import retinue.serve

@retinue.serve.agent()
def support() -> Agent:
    return Agent(Scripted("Hello"))
"""
    async with (
        server(f"{agents(code)}:support", "--no-memory") as (url, _),
        aiohttp.ClientSession(url) as client,
        client.get("/v1/agents") as response,
    ):
        (card,) = json.loads(await response.text())["agents"]
    assert (card["name"], card["keeps"]) == ("support", True)


SLOW = """
from pathlib import Path

async def answer(request):
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return Say(text="at last")

helper = Agent(Scripted(answer), name="helper")
"""


async def test_sigterm_lets_a_running_turn_end_and_takes_no_more(
    agents: Agents, home: Path
) -> None:
    async with (
        server(f"{agents(SLOW)}:helper", "--no-memory") as (url, process),
        aiohttp.ClientSession(url) as client,
    ):
        asking = {"input": "Hi", "stream": True}
        async with client.post("/v1/turns", json=asking) as stream, asyncio.timeout(BOUND):
            await stream.content.readline()
            process.send_signal(signal.SIGTERM)
            while True:  # until it has heard the signal
                async with client.get("/readyz") as ready:
                    if ready.status == 503:
                        break
            status, refused = await post(client, "/v1/turns", {"input": "Hi"})
            assert (status, refused["error"]["code"]) == (503, "unavailable")
            (home / "go").touch()
            text = (await stream.content.read()).decode()
        assert '"status":"completed","text":"at last"' in text
        assert await ended(process) == 0


async def test_a_turn_that_does_not_end_in_time_is_cancelled_and_told(agents: Agents) -> None:
    async with (
        server(f"{agents(SLOW)}:helper", "--no-memory", "--grace", "0.05") as (url, process),
        aiohttp.ClientSession(url) as client,
    ):
        asking = {"input": "Hi", "stream": True}
        async with client.post("/v1/turns", json=asking) as stream, asyncio.timeout(BOUND):
            await stream.content.readline()
            process.send_signal(signal.SIGTERM)
            text = (await stream.content.read()).decode()
        assert '"status":"cancelled"' in text
        assert "shutting down" in text
        assert await ended(process) == 0


async def test_keys_from_a_file_let_in_and_their_scopes_count(
    agents: Agents, cli: Cli, home: Path
) -> None:
    made = cli("key", "ann", "--file", "keys")
    assert made.exit_code == 0
    secret = made.stdout.strip()
    assert secret not in (home / "keys").read_text()
    code = 'helper = Agent(Scripted("Hi"), name="helper")'
    target = f"{agents(code)}:helper"
    async with (
        server(target, "--no-memory", "--api-keys", "keys") as (url, _),
        aiohttp.ClientSession(url) as client,
    ):
        assert (await post(client, "/v1/turns", {"input": "Hi"}))[0] == 401
        good = {"authorization": f"Bearer {secret}"}
        assert (await post(client, "/v1/turns", {"input": "Hi"}, **good))[0] == 200
        async with client.get("/metrics", headers=good) as response:
            assert response.status == 403


async def test_it_answers_for_the_address_that_it_listens_on_and_takes_bodies_as_large_as_said(
    agents: Agents,
) -> None:
    code = 'helper = Agent(Scripted("Hi"), name="helper")'
    target = f"{agents(code)}:helper"
    options = ("--no-memory", "--host", "127.0.0.2", "--body-bytes", "100")
    async with server(target, *options) as (url, _), aiohttp.ClientSession(url) as client:
        assert url.startswith("http://127.0.0.2:")
        assert (await post(client, "/v1/turns", {"input": "Hi"}))[0] == 200
        assert (await post(client, "/v1/turns", {"input": "x" * 100}))[0] == 413


async def test_a_page_that_leads_a_name_of_its_own_here_gets_nothing(agents: Agents) -> None:
    target = f"{agents('helper = Agent(Scripted())')}:helper"
    async with (
        server(target, "--no-memory") as (url, _),
        aiohttp.ClientSession(url) as client,
        client.get("/v1/agents", headers={"host": "evil.example"}) as response,
    ):
        assert response.status == 403


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--host", "0.0.0.0"), "--without-authentication"),
        (("--host", "example.org"), "not the loopback interface"),
        (("--api-keys", "nowhere"), "retinue key OWNER"),
        (("--jwt-key", "nowhere"), "cannot be read"),
        (("--jwt-issuer", "door"), "give --jwt-key too"),
        (("--jwt-audience", "house"), "give --jwt-key too"),
        (("--tls-cert", "a"), "--tls-key"),
        (("--tls-client-ca", "a"), "needs TLS"),
        (("--workers",), "--grpc-port"),
        (("--route", "random"), "give --workers"),
        (("--on-loss", "fail"), "give --workers"),
        (("--rate", "-1"), "rate"),
        (("--origin", "https://app.example/"), "without a path"),
        (("--origin", "app.example"), "is no origin"),
        (("--no-memory", "--database", "x.db"), "drop one"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_listens(
    cli: Cli, agents: Agents, options: tuple[str, ...], complaint: str
) -> None:
    target = f"{agents('helper = Agent(Scripted())')}:helper"
    done = cli("serve", target, *options)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_what_is_said_of_workers_reaches_their_dispatcher(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dispatcher(**said: Any) -> None:
        raise ConfigError(" ".join(f"{name}={value}" for name, value in said.items()))

    monkeypatch.setattr("retinue.serve.grpc.Grpc", dispatcher)
    start = ("serve", "--workers", "--grpc-port", "0")
    said = ("--route", "round-robin", "--queue", "0", "--patience", "1.5", "--on-loss", "fail")
    assert "route=round_robin queue=0 patience=1.5 on_loss=fail" in cli(*start, *said).stderr
    assert "=" not in cli(*start).stderr  # what is not said is left to the dispatcher


def test_the_routes_that_can_be_said_are_those_there_are(cli: Cli, home: Path) -> None:
    for name in get_args(RouteName):
        route_of(name)
        done = cli("serve", "--route", name.replace("_", "-"))
        assert "give --workers" in done.stderr


@pytest.mark.parametrize("option", ["--port", "--grpc-port"])
def test_a_port_that_is_taken_is_told_in_one_line(
    agents: Agents, capfd: pytest.CaptureFixture[str], option: str
) -> None:
    target = f"{agents('helper = Agent(Scripted())')}:helper"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ports = {"--port": "0", option: port}
        options = [word for pair in ports.items() for word in pair]
        code = subprocess.run(
            [sys.executable, "-m", "retinue.cli", "serve", target, "--no-memory", *options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=BOUND,
            check=False,
        ).returncode
    (line,) = capfd.readouterr().err.splitlines()
    assert "cannot listen" in line
    assert port in line
    assert code == 2


@pytest.mark.parametrize(
    "command", [("serve",), ("serve", "--workers"), ("worker", "--connect", "127.0.0.1:1")]
)
def test_a_database_that_cannot_be_read_is_told_before_anything_listens(
    cli: Cli, agents: Agents, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("RETINUE_DATABASE", "nowhere/chat.db")
    name, *options = command
    if "--workers" in options:
        options += ["--grpc-port", "0"]
    else:
        options.insert(0, f"{agents('helper = Agent(Scripted())')}:helper")
    done = cli(name, *options)
    assert done.exit_code == 1
    assert "nowhere of the database is not there" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Listening" not in done.stdout


def test_where_sqlite_is_not_installed_the_way_out_is_named(
    cli: Cli, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("retinue.stores.sql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    done = cli("serve", f"{agents('helper = Agent(Scripted())')}:helper")
    assert done.exit_code == 2
    assert done.stderr.endswith("pip install 'retinue[sqlite]'. Or serve with --no-memory.\n")
    assert "chat" not in done.stderr


async def test_an_address_of_ip_6_may_stand_in_brackets(agents: Agents) -> None:
    target = f"{agents('helper = Agent(Scripted())')}:helper"
    async with server(target, "--no-memory", "--host", "[::1]") as (url, _):
        assert url.startswith("http://[::1]:")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ann", "--file", "keys", "--scope", "everything"), "no scope 'everything'"),
        ((" ", "--file", "keys"), "cannot have the owner"),
        (("ann", "--file", "nowhere/keys"), "cannot be written"),
    ],
)
def test_a_key_that_cannot_be_is_refused(
    cli: Cli, home: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = cli("key", *arguments)
    assert done.exit_code == 2
    assert complaint in done.stderr
    assert done.stdout == ""
