"""OpenAI's own Python client of a server, and what the tests ask by it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
from pydantic import BaseModel

from retinue import Agent
from retinue.models.scripted import Scripted
from tests.serve.serving import serving

ASK: list[Any] = [{"role": "user", "content": "Is it raining?"}]
LOCATE: Any = {
    "type": "function",
    "function": {
        "name": "locate",
        "description": "Where the user is.",
        "parameters": {"type": "object", "properties": {"precise": {"type": "boolean"}}},
    },
}


@asynccontextmanager
async def client(agent: Agent, key: str = "none", **options: Any) -> AsyncIterator[Any]:
    """OpenAI's client of a server that serves the agent."""
    async with (
        serving(agent, **options) as here,
        openai.AsyncOpenAI(base_url=f"{here.url}/v1", api_key=key, max_retries=0) as made,
    ):
        yield made


def answering(*steps: Any, **options: Any) -> Agent:
    """An agent that plays a script."""
    return Agent(Scripted(*steps), name="helper", **options)


async def text_of(stream: Any) -> str:
    """The text of a stream of chunks."""
    return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])


async def all_text(openai_client: Any, *, stream: bool, **more: Any) -> str:
    """The answer to `ASK`, however it comes."""
    got = await openai_client.chat.completions.create(
        model="helper", messages=ASK, stream=stream, **more
    )
    return await text_of(got) if stream else got.choices[0].message.content


class Forecast(BaseModel):
    """What the client wants."""

    city: str
    rain: bool
