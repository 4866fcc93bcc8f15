"""Calls a model behind HTTP as the loop does, without the loop."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from msgspec import Struct

from retinue.chains.requests import ChatRequest, TurnRequest
from retinue.chains.scope import Scope
from retinue.errors import ModelError
from retinue.messages import Accumulator, Delta, FinishDelta, Message, UsageDelta, user
from retinue.models.base import Model
from retinue.models.openai.model import OpenAI


class Heard:
    """Takes deltas, as the turn's delivery does."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self._folded = Accumulator()

    async def __call__(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self._folded.add(delta)

    @property
    def started(self) -> bool:
        """Whether something has come that cannot be taken back."""
        return any(not isinstance(delta, UsageDelta | FinishDelta) for delta in self.deltas)

    @property
    def text(self) -> str:
        """All text so far."""
        return self._folded.text

    @property
    def message(self) -> Message:
        """The answer so far."""
        return self._folded.message()


class Answer(Struct, frozen=True):
    """What a model said, and what its provider said besides."""

    message: Message
    meta: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.message.text


def _nobody(*_: Any) -> Awaitable[Any]:
    raise AssertionError("a model call asks nothing on the side")


def chat(*messages: str | Message, **fields: Any) -> ChatRequest:
    """A request of one model call; texts are messages of the user."""
    sent = tuple(m if isinstance(m, Message) else user(m) for m in messages or ("hi",))
    scope = Scope(_nobody)
    return ChatRequest(
        scope=scope,
        turn=TurnRequest(scope=scope, messages=sent),
        round=1,
        messages=sent,
        **fields,
    )


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
