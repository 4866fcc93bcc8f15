"""A model that looks for the tools it needs, and reports what a provider's cache would serve."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from retinue import ChatRequest, Tool, Usage
from retinue.messages import ToolCall
from retinue.messages.estimate import text_tokens
from retinue.models import Scripted
from retinue.models.scripted import Say, call


class CachingModel(Scripted):
    """Calls each of the tools it needs once, searching for what it does not see, and answers.

    A prompt is tools, instructions and messages, in this order. What it has in common with one of
    the last `lifetime` seconds is read from the cache, if that is `minimum` tokens or more.

    Args:
        needs: the tools it is to call, each with a query that finds it.
        minimum: tokens of the shortest prompt that is cached.
        lifetime: seconds of the loop's clock that a prompt is kept after it was last sent.
        count: tokens of a text.
        arguments: of every call.
    """

    def __init__(
        self,
        needs: Mapping[str, str],
        *,
        minimum: int = 1_024,
        lifetime: float = 300.0,
        count: Callable[[str], int] = text_tokens,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(self._step, repeat=True)
        self.usages: list[Usage] = []
        self._needs = needs
        self._minimum = minimum
        self._lifetime = lifetime
        self._count = count
        self._arguments = dict(arguments or {})
        self._kept: list[tuple[float, tuple[str, ...]]] = []

    def _step(self, request: ChatRequest) -> Say:
        calls = self._calls(request)
        written = [c.name + c.arguments for c in calls] or ["All of it is done."]
        usage = self._usage(prompt_of(request), sum(map(self._count, written)))
        self.usages.append(usage)
        return Say(calls=calls, usage=usage) if calls else Say(text=written[0], usage=usage)

    def _calls(self, request: ChatRequest) -> list[ToolCall]:
        last = max(at for at, m in enumerate(request.messages) if m.role == "user")
        turn = request.messages[last:]
        results = [result for message in turn for result in message.tool_results]
        if any(result.name in (*self._needs, "call_tool") for result in results):
            return []
        seen = {tool.name for tool in request.tools}
        told = "".join(result.text for result in results)
        if all(name in seen for name in self._needs):
            return [call(name, **self._arguments) for name in self._needs]
        if "call_tool" in seen and all(f'"{name}"' in told for name in self._needs):
            return [call("call_tool", name=n, arguments=self._arguments) for n in self._needs]
        return [call("search_tools", query=query) for query in self._needs.values()]

    def _usage(self, prompt: tuple[str, ...], output: int) -> Usage:
        now = asyncio.get_running_loop().time()
        self._kept = [kept for kept in self._kept if now - kept[0] <= self._lifetime]
        shared = max((common(prompt, kept) for _, kept in self._kept), default=0)
        read = sum(map(self._count, prompt[:shared]))
        self._kept.append((now, prompt))
        total = sum(map(self._count, prompt))
        return Usage(total, output, cache_read=read if read >= self._minimum else 0)


def prompt_of(request: ChatRequest) -> tuple[str, ...]:
    """A request as the pieces of a prompt, in the order in which providers cache them."""
    tools = [msgspec.json.encode(tool.spec).decode() for tool in request.tools]
    said = [msgspec.json.encode((m.role, m.parts)).decode() for m in request.messages]
    return (*tools, *request.instructions, *said)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many pieces two prompts begin with alike; ids of calls count."""
    at = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        at += 1
    return at


def many_tools(number: int, words: int = 12) -> list[Tool]:
    """Tools with different names and things to do, and descriptions of so many words."""

    def one(name: str, description: str) -> Tool:
        async def run(city: str = "Oslo", days: int = 1) -> str:
            return f"{name} ran for {city}"

        return Tool(run, name=name, description=description)

    padding = " ".join(["and", "more", "of", "it"] * words)[: 5 * words]
    return [
        one("get_weather", f"Gets the weather of a city. {padding}"),
        one("sendEmail", f"Sends an e-mail to a person. {padding}"),
        *(
            one(f"archive_{n}", f"Does number{n} to what is stored. {padding}")
            for n in range(number - 2)
        ),
    ]
