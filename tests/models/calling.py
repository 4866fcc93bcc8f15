"""Calls a model behind HTTP as the loop does, without the loop."""

import asyncio
from typing import Any

import pytest
from msgspec import Struct

from retinue.errors import ModelError
from retinue.messages import Message
from retinue.models.base import Model
from retinue.models.openai.model import OpenAI
from retinue.testing.calls import Heard, chat

__all__ = ["BOTH", "TEXT", "Answer", "Heard", "ask", "chat", "failure", "log", "model_of"]


class Answer(Struct, frozen=True):
    """What a model said, and what its provider said besides."""

    message: Message
    meta: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.message.text


async def ask(model: Model, *messages: str | Message, **fields: Any) -> Answer:
    """The whole answer of one model call."""
    heard = Heard()
    meta = await model.generate(chat(*messages, **fields), heard)
    return Answer(heard.message, dict(meta or {}))


BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
TEXT = "Grüße aus 東京 🌍, und noch viel mehr Text."


def model_of(rig: Any, session: str, **options: Any) -> OpenAI:
    """A model of OpenAI that the fake provider plays."""
    options = {"api_key": rig.key, "timeout": 5.0} | options
    return OpenAI("gpt-4o", base_url=rig.openai(session), gateway="openai", **options)


async def failure(model: OpenAI, **fields: Any) -> ModelError:
    """The error of one call."""
    with pytest.raises(ModelError) as caught:
        await ask(model, **fields)
    return caught.value


async def log(rig: Any, session: str) -> list[dict[str, Any]]:
    """What the fake provider has seen."""
    return await asyncio.to_thread(rig.log, session)
