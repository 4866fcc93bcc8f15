"""`retinue serve` as a process of its own: it says where it listens, serves, drains and ends."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

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
        (("--tls-cert", "a"), "--tls-key"),
        (("--tls-client-ca", "a"), "needs TLS"),
        (("--workers",), "--grpc-port"),
        (("--rate", "-1"), "rate"),
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
