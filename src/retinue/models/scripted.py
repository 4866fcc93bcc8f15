"""A model that says what it is told: the public fake, for tests of agents and advisors.

It never reaches a network. What it was asked stands in `requests`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from retinue.chains.requests import ChatRequest
from retinue.errors import ModelRefused
from retinue.messages import (
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    UsageDelta,
    new_id,
)
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN, Capabilities


class Say(Struct, frozen=True, kw_only=True):
    """One scripted answer.

    Attributes:
        text: the text: one chunk, or its chunks.
        thinking: reasoning that comes before it: one chunk, or its chunks.
        signature: the provider's proof of that reasoning.
        calls: the tool calls that come after it.
        usage: what is reported at the end; None reports nothing.
        finish: the finish reason; by default "tool_calls" or "stop", and "" sends none.
        deltas: further deltas, sent as they are after the text.
        delay: seconds before each chunk.
        error: raised after all of it.
    """

    text: str | Sequence[str] = ""
    thinking: str | Sequence[str] = ""
    signature: str | None = None
    calls: Sequence[ToolCall] = ()
    usage: Usage | None = None
    finish: str | None = None
    deltas: Iterable[Delta] = ()
    delay: float = 0.0
    error: BaseException | None = None


Step = str | Say | ToolCall | Sequence[ToolCall] | BaseException
"""What a script is made of: a text, an answer, one or more calls, or an error to raise."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call of the tool `name`, for a script."""
    return ToolCall(f"call_{new_id()}", name, msgspec.json.encode(arguments).decode())


class Scripted:
    """Answers with the steps of a script, one a call, in order.

    Args:
        steps: the script. A function, plain or async, takes its place where answers depend on
            what is asked; it gets the request and returns a step.
        repeat: go on with the last step for ever; by default a used-up script is an error.
        name: what the model is called.
        provider: whose it is said to be.
        capabilities: what it is said to take; nothing of it is refused.

    Attributes:
        requests: what it was asked, in order.
    """

    def __init__(
        self,
        *steps: Step | Callable[[ChatRequest], Step | Awaitable[Step]],
        repeat: bool = False,
        name: str = "script",
        provider: str = "scripted",
        capabilities: Capabilities = UNKNOWN,
    ) -> None:
        self.name = name
        self.provider = provider
        self.capabilities = capabilities
        self.requests: list[ChatRequest] = []
        self._steps = steps
        self._repeat = repeat

    def __repr__(self) -> str:
        return f"Scripted({len(self._steps)} steps)"

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Sends the next step of the script.

        Raises:
            ModelRefused: the script is used up.
        """
        at = len(self.requests)
        self.requests.append(request)
        if at >= len(self._steps):
            if not (self._repeat and self._steps):
                raise ModelRefused(
                    f"The script has {len(self._steps)} steps and was asked once more; add a step,"
                    " or repeat=True."
                )
            at = len(self._steps) - 1
        step = self._steps[at]
        if callable(step):
            step = step(request)
            if isinstance(step, Awaitable):
                step = await step
        say = _say(step)
        if say.delay:
            async for delta in _slowly(say):
                await send(delta)
        else:
            for delta in _deltas(say):
                await send(delta)
        if say.error is not None:
            raise say.error
        return None

    async def close(self) -> None:
        """Nothing is held."""


def _say(step: Step) -> Say:
    if isinstance(step, Say):
        return step
    if isinstance(step, str):
        return Say(text=step)
    if isinstance(step, ToolCall):
        return Say(calls=(step,))
    if isinstance(step, BaseException):
        return Say(error=step, finish="")
    return Say(calls=step)


def _deltas(say: Say) -> Iterable[Delta]:
    for chunk in (say.thinking,) if isinstance(say.thinking, str) else say.thinking:
        if chunk:
            yield ThinkingDelta(chunk)
    if say.signature is not None:
        yield ThinkingDelta(signature=say.signature)
    for chunk in (say.text,) if isinstance(say.text, str) else say.text:
        if chunk:
            yield TextDelta(chunk)
    yield from say.deltas
    for index, one in enumerate(say.calls):
        yield ToolCallDelta(index, one.id, one.name, one.arguments)
    if say.usage is not None:
        yield UsageDelta(say.usage)
    if say.finish != "":
        yield FinishDelta(say.finish or ("tool_calls" if say.calls else "stop"))


async def _slowly(say: Say) -> AsyncIterator[Delta]:
    for delta in _deltas(say):
        await asyncio.sleep(say.delay)
        yield delta
