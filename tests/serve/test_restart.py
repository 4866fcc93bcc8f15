"""A gateway that is killed and started again: who comes back is told where things stand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.serve.grpc.processes import Child, line_of, server
from tests.serve.scenes import within
from tests.serve.serving import Frames


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[tuple[Child, aiohttp.ClientSession]]:
    """`retinue serve` as a process of its own, and a client of it."""
    async with (
        server(folder, "tests.serve.grpc.served:halting") as (process, url),
        aiohttp.ClientSession(url) as client,
    ):
        yield process, client


async def get(client: aiohttp.ClientSession, path: str, **headers: str) -> tuple[int, Any]:
    async with client.get(path, headers=headers) as response:
        return response.status, await within(response.json())


async def test_a_reader_who_comes_back_after_a_restart_finds_all_in_the_conversation(
    tmp_path: Path,
) -> None:
    asked = {"input": "Hello", "conversation": "c", "stream": True, "detached": True}
    async with gateway(tmp_path) as (process, client):
        async with client.post("/v1/turns", json=asked) as response:
            turn = response.headers["x-turn-id"]
            frames = Frames(response)
            await within(line_of(tmp_path / "asked"))
            await within(anext(aiter(frames)))
        await process.kill()

    async with gateway(tmp_path) as (_, client):
        events = f"/v1/turns/{turn}/events"
        status, got = await get(client, events, **{"last-event-id": frames.last_id})
        assert (status, got["error"]["code"]) == (404, "not_found")
        assert "its conversation" in got["error"]["message"]
        _, page = await get(client, "/v1/conversations/c/messages")
        assert [one["message"]["parts"][0]["text"] for one in page["messages"]] == ["Hello"]

        (tmp_path / "go").touch()
        async with client.post("/v1/turns", json={**asked, "stream": False}) as response:
            answer = await within(response.json())
        assert (answer["status"], answer["text"]) == ("completed", "one two")
        _, page = await get(client, "/v1/conversations/c/messages")
        assert page["messages"][-1]["message"]["parts"][0]["text"] == "one two"
