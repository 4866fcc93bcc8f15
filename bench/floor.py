"""The floor over HTTP: a loop written by hand on aiohttp, with nothing but what the work needs.

It posts the bodies that retinue posts and reads the answers that retinue reads, with `json` from
the standard library. It has no retries, no time limits and no idea of any fault.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp

Message = dict[str, Any]

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer key"}


class Floor:
    """One model, asked by hand.

    Args:
        base_url: the server's.
        model: the model's name.
        instructions: what its messages begin with.
        tools: functions by their names.
        schemas: what the model is told of them.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        model: str,
        instructions: str,
        tools: dict[str, Callable[..., Awaitable[str]]] | None = None,
        schemas: Sequence[dict[str, Any]] = (),
    ) -> None:
        self._session = session
        self._url = base_url + "/chat/completions"
        self._fields: dict[str, Any] = {"model": model}
        if schemas:
            self._fields["tools"] = list(schemas)
        self._instructions = instructions
        self._tools = tools or {}

    async def run(self, question: str) -> str:
        """One turn: model, tools, model, until there is an answer."""
        messages = self._messages(question)
        while True:
            answer = await self._ask(messages)
            messages.append(answer)
            calls = answer.get("tool_calls")
            if not calls:
                return answer["content"]
            functions = [call["function"] for call in calls]
            results = await asyncio.gather(
                *(self._tools[f["name"]](**json.loads(f["arguments"])) for f in functions)
            )
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": result}
                for call, result in zip(calls, results, strict=True)
            ]

    async def stream(self, question: str, on_text: Callable[[str], object]) -> None:
        """One answer, its pieces handed on as they come."""
        fields = {"stream": True, "stream_options": {"include_usage": True}}
        body = self._body(self._messages(question), fields)
        async with self._session.post(self._url, data=body, headers=HEADERS) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if choices and (text := choices[0]["delta"].get("content")):
                        on_text(text)

    def _messages(self, question: str) -> list[Message]:
        return [
            {"role": "system", "content": self._instructions},
            {"role": "user", "content": question},
        ]

    async def _ask(self, messages: list[Message]) -> Message:
        body = self._body(messages, {})
        async with self._session.post(self._url, data=body, headers=HEADERS) as response:
            return json.loads(await response.read())["choices"][0]["message"]

    def _body(self, messages: list[Message], fields: dict[str, Any]) -> bytes:
        return json.dumps({**self._fields, "messages": messages, **fields}).encode()


def schema_of(name: str, description: str) -> dict[str, Any]:
    """What the model is told of a tool that takes one text."""
    x = {"type": "string", "description": "the input."}
    parameters = {
        "type": "object",
        "properties": {"x": x},
        "required": ["x"],
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
