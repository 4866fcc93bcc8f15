"""OpenAI's own client against `retinue serve` as a process, on the embedded model."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.serve.grpc.processes import server

ASKED: Any = [{"role": "user", "content": "The forecast for Oslo, five days please."}]
FORECAST: Any = {
    "type": "function",
    "function": {
        "name": "forecast",
        "description": "The weather forecast for a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}


class Wish(BaseModel):
    """What somebody wants to know."""

    city: str
    days: int


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[AsyncOpenAI]:
    """A client of a server that runs the embedded model."""
    async with (
        server(folder, "--no-memory", "local") as (_, url),
        AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


async def test_the_embedded_model_is_asked_in_all_ways_of_the_client(tmp_path: Path) -> None:
    async with embedded(tmp_path) as client:
        (model,) = [one.id async for one in await client.models.list()]
        chat: Any = client.chat.completions
        how = {"model": model, "messages": ASKED, "temperature": 0, "max_tokens": 40}

        whole = await chat.create(**how)
        said = whole.choices[0].message.content
        assert said
        assert whole.usage.completion_tokens > 0

        pieces = [
            chunk.choices[0].delta.content or ""
            async for chunk in await chat.create(**how, stream=True)
            if chunk.choices
        ]
        assert len(pieces) > 2
        assert "".join(pieces) == said

        called = await chat.create(**how, tools=[FORECAST], tool_choice="required")
        (call,) = called.choices[0].message.tool_calls
        assert called.choices[0].finish_reason == "tool_calls"
        assert json.loads(call.function.arguments) == {"city": "Oslo", "days": 5}

        typed = await chat.parse(**how, response_format=Wish)
        assert isinstance(typed.choices[0].message.parsed, Wish)
