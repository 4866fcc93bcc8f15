"""A server in the test's own loop, and a client of it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from retinue import Agent
from retinue.serve import app
from retinue.serve.access import ApiKeys, new_key
from retinue.serve.gateway import Gateway
from retinue.serve.http.server import Server
from retinue.serve.wire import Sent, decode
from tests.serve.scenes import BOUND, within


class Quick(Server):
    """A server that does not look ten times a second whether it shall end, but at once."""

    async def main_loop(self) -> None:
        while not self.should_exit:  # noqa: ASYNC110 - uvicorn sets an attribute, not an event
            await asyncio.sleep(0.005)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends as soon as nothing is left; what is still there after a while, uvicorn ends."""
        for server in self.servers:
            server.close()
        for connection in [*self.server_state.connections]:
            connection.shutdown()
        for _ in range(20):
            if not (self.server_state.connections or self.server_state.tasks):
                await self.lifespan.shutdown()
                return
            await asyncio.sleep(0.005)
        await super().shutdown(sockets)


class Here(msgspec.Struct):
    """A running server: its address, the gateway behind it, and a client."""

    url: str
    gateway: Gateway
    client: aiohttp.ClientSession
    server: Server

    def cut(self) -> None:
        """Breaks all connections."""
        for connection in [*self.server.server_state.connections]:
            connection.transport.abort()  # pyright: ignore[reportAttributeAccessIssue]

    async def json(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            given["authorization"] = f"Bearer {key}"
        asking = self.client.request(method, path, json=body, headers=given)
        async with asyncio.timeout(BOUND), asking as response:
            text = await response.text()
            is_json = response.content_type == "application/json"
            return response.status, json.loads(text) if is_json and text else text or None

    @asynccontextmanager
    async def stream(
        self, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> AsyncIterator["Frames"]:
        """A stream of events: of a POST with a body, or a GET without one."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            given["authorization"] = f"Bearer {key}"
        method = "GET" if body is None else "POST"
        async with self.client.request(method, path, json=body, headers=given) as response:
            yield Frames(response)

    async def events(self, path: str, body: Any = None, **options: Any) -> list[Any]:
        """All events of a stream."""
        async with asyncio.timeout(60), self.stream(path, body, **options) as frames:
            assert frames.response.status == 200, await frames.response.text()
            return [event async for event in frames]


class Frames:
    """The frames of a stream, as they come; comments are left out."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.last_id = ""
        self.comments = 0

    async def raw(self) -> AsyncIterator[dict[str, str]]:
        """The fields of each frame."""
        frame: dict[str, str] = {}
        async for line in self.response.content:
            text = line.decode().rstrip("\n")
            if not text:
                if frame:
                    yield frame
                frame = {}
            elif text.startswith(":"):
                self.comments += 1
            else:
                name, _, value = text.partition(": ")
                frame[name] = value

    async def __aiter__(self) -> AsyncIterator[Sent]:
        async for frame in self.raw():
            event = decode(frame["data"])
            assert frame["event"] == type(event).__struct_config__.tag
            self.last_id = frame["id"]
            yield event


@asynccontextmanager
async def serving(agents: Agent | Mapping[str, Agent], **options: Any) -> AsyncIterator[Here]:
    """Agents on a socket of this machine; what is left running has ended afterwards."""
    made = app(agents, **options)
    async with listening(made, made.state.gateway) as here:
        yield here


@asynccontextmanager
async def listening(
    made: Any, gateway: Gateway, *, port: int = 0, **options: Any
) -> AsyncIterator[Here]:
    """An ASGI app on a socket of this machine; by default on any free one."""
    ready = asyncio.Event()
    server = Quick(made, gateway, port=port, on_ready=lambda _: ready.set(), grace=0.5, **options)
    running = asyncio.create_task(server.serve())
    await within(ready.wait())
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(server.address, connector=connector) as client:
            yield Here(server.address, gateway, client, server)
    finally:
        server.drain()
        await within(running, 20)


def keys(*owners: str, scopes: tuple[str, ...] = ("conversations", "turns")) -> Any:
    """Who may come in, and the key of each owner."""
    made = {owner: new_key(owner, scopes) for owner in owners}
    access = ApiKeys([kept for _, kept in made.values()])
    return access, {owner: secret for owner, (secret, _) in made.items()}
