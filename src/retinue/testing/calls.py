"""One call of a model without an agent round it: the request, and what was heard of the answer."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from retinue.chains.requests import ChatRequest, TurnRequest
from retinue.chains.scope import Scope
from retinue.messages import Accumulator, Delta, FinishDelta, Message, UsageDelta, user


class Heard:
    """Takes deltas, as the turn's delivery does.

    Attributes:
        deltas: all of them, in order.
        spoke: set when the first has come that cannot be taken back.
    """

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.spoke = asyncio.Event()
        self._folded = Accumulator()

    async def __call__(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self._folded.add(delta)
        if not isinstance(delta, UsageDelta | FinishDelta):
            self.spoke.set()

    @property
    def started(self) -> bool:
        """Whether something has come that cannot be taken back."""
        return self.spoke.is_set()

    @property
    def text(self) -> str:
        """All text so far."""
        return self._folded.text

    @property
    def message(self) -> Message:
        """The answer so far."""
        return self._folded.message()


def chat(*messages: str | Message, **fields: Any) -> ChatRequest:
    """A request of one model call.

    Args:
        messages: texts are messages of the user; without any, one that says "hi".
        fields: further fields of the request, such as `stream` or `settings`.
    """
    sent = tuple(m if isinstance(m, Message) else user(m) for m in messages or ("hi",))
    scope = Scope(_nobody)
    return ChatRequest(
        scope=scope,
        turn=TurnRequest(scope=scope, messages=sent),
        round=1,
        messages=sent,
        **fields,
    )


def _nobody(*_: Any) -> Awaitable[Any]:
    raise AssertionError("a model call asks nothing on the side")
