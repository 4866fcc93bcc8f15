"""Requests for the tests of what is sent: encoded alone, or sent to a server that keeps them."""

import base64
import json
from typing import Any

from retinue.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
)
from retinue.models.gateways import GATEWAYS, Gateway
from retinue.models.openai.encode import RequestEncoder
from retinue.models.openai.model import OpenAI
from retinue.tools import tool
from tests.models.calling import Answer, ask, chat
from tests.wire.sends.recorder import Recorder

KEY = "sk-something"
PNG = b"\x89PNG\r\n\x1a\n"
PNG_URI = "data:image/png;base64," + base64.b64encode(PNG).decode()


@tool
def weather(city: str, days: int = 1) -> str:
    """The weather to come.

    Args:
        city: where.
        days: how many days.
    """
    return f"sunny in {city} for {days}"


@tool
def clock() -> str:
    """The time."""
    return "12:00"


def encoder_for(row: Gateway, model: str = "some-model") -> RequestEncoder:
    return RequestEncoder(model, row, row.capabilities(model))


def encoded(*messages: str | Message, gateway: str | Gateway = "openai", **fields: Any) -> Any:
    """The body for a request, without a server."""
    row = GATEWAYS[gateway] if isinstance(gateway, str) else gateway
    return json.loads(encoder_for(row).encode(chat(*messages, **fields)))


def sent_messages(*messages: Message, gateway: str | Gateway = "openai") -> list[dict[str, Any]]:
    return encoded(*messages, gateway=gateway)["messages"]


async def send(
    recorder: Recorder, *messages: str | Message, gateway: str = "openai", **fields: Any
) -> Answer:
    model = OpenAI("some-model", base_url=recorder.url, gateway=gateway, api_key=KEY)
    return await ask(model, *messages, **fields)


def thought(provider: str, opaque: str | None = None) -> Message:
    return Message(
        "assistant",
        (Thinking("Hm.", opaque=opaque, provider=provider), Text("Yes"), ToolCall("a" * 9, "look")),
    )
