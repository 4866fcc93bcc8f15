"""The floor: an agent loop written by hand, with nothing but what the work needs."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

Message = dict[str, Any]
Model = Callable[[list[Message]], Awaitable[Message]]


async def loop(model: Model, tools: dict[str, Callable[..., Any]], question: str) -> str:
    """One turn: model, tools, model, until there is an answer."""
    messages: list[Message] = [{"role": "user", "content": question}]
    while True:
        answer = await model(messages)
        messages.append(answer)
        calls = answer.get("tool_calls")
        if not calls:
            return answer["content"]
        results = await asyncio.gather(
            *(tools[c["name"]](**json.loads(c["arguments"])) for c in calls)
        )
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(calls, results, strict=True)
        ]


def layered(model: Model, layers: int) -> Model:
    """The model with no-op functions round it."""
    for _ in range(layers):
        model = _layer(model)
    return model


def _layer(call_next: Model) -> Model:
    async def layer(messages: list[Message]) -> Message:
        return await call_next(messages)

    return layer
