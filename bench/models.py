"""Models that answer at once, for retinue and for the bare loop: only the loop is measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.bare import Message
from retinue import ChatRequest
from retinue.messages import Delta, FinishDelta, TextDelta, ToolCallDelta
from retinue.models.base import Send

ANSWER = "The capital of France is Paris."


class Deltas:
    """Sends the same deltas to every request."""

    name = "bench"
    provider = "bench"

    def __init__(self, deltas: Sequence[Delta]) -> None:
        self.deltas = deltas

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Sends them."""
        for delta in self.deltas:
            await send(delta)
        return None

    async def close(self) -> None:
        """Nothing is held."""


class Calls(Deltas):
    """Asks for `width` calls in each of `rounds` rounds, then answers."""

    def __init__(self, rounds: int, width: int = 1) -> None:
        super().__init__(one_shot().deltas)
        self.rounds = rounds
        self._width = width

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Counts the results that are there, and goes on from them."""
        done = sum(message.role == "tool" for message in request.messages) // self._width
        if done >= self.rounds:
            return await super().generate(request, send)
        for index in range(self._width):
            arguments = f'{{"x":"{done}"}}'
            await send(ToolCallDelta(index, f"call_{done}_{index}", "noop", arguments))
        await send(FinishDelta("tool_calls"))
        return None


def one_shot() -> Deltas:
    """One chunk of text."""
    return Deltas([TextDelta(ANSWER), FinishDelta("stop")])


def bare_calls(rounds: int, width: int = 1):
    """The twin of `Calls` for the bare loop."""

    async def model(messages: list[Message]) -> Message:
        done = sum(message["role"] == "tool" for message in messages) // width
        if done >= rounds:
            return {"role": "assistant", "content": ANSWER}
        calls = [
            {"id": f"call_{done}_{index}", "name": "noop", "arguments": f'{{"x":"{done}"}}'}
            for index in range(width)
        ]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    return model
