"""The two layers that a durable agent has besides its own: the outermost and the innermost."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    Output,
    Scope,
    Settings,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.events import Event
from retinue.chains.log import Keeper
from retinue.chains.snapshot import Snapshot
from retinue.durable.execution import Execution, Ledger, current
from retinue.durable.model import RecordedModel
from retinue.messages import Message
from retinue.models import resolve

Pump = Callable[[AsyncIterator[Event]], Awaitable[None]]


class Outermost(Advisor):
    """Takes hold of the turn before any other layer sees it.

    Args:
        keeper: the agent's memory, or None.
        reader: gives what reads the events of a turn, or None where nobody does.
    """

    name = "Durable"

    def __init__(self, keeper: Keeper | None, reader: Callable[[str], Pump | None]) -> None:
        self._keeper = keeper
        self._reader = reader

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Makes calls on the side steps, and lets the turn be read and cancelled."""
        execution = current()
        if execution is None:
            return await call_next(request)
        scope = request.scope
        scope.consult = _recorded(scope.consult)
        scope.spent = Ledger(scope.spent)
        pump = self._reader(execution.id)
        if pump is not None:
            request.tap(pump)
        execution.scope = scope
        return await call_next(await self._paused(execution, request))

    async def _paused(self, execution: Execution, request: TurnRequest) -> TurnRequest:
        """A pause that an earlier run of this turn has used up is not asked for once more.

        No other turn of the conversation has run since: they wait for this one.
        """
        conversation = request.conversation
        if request.pause is None or not execution.again:
            return request
        if self._keeper is None or conversation is None:
            return request
        document = await self._keeper.paused(conversation, request.owner)
        if document is not None and Snapshot.load(document).id == request.pause:
            return request
        return request.with_(pause=None)


class Innermost(Advisor):
    """Records the models that layers choose, too."""

    name = "Durable record"

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Puts the record before another model than the agent's own."""
        if request.model is not None and current() is not None:
            request = request.with_(model=_recorded_model(request.model))
        return await call_next(request)


def _recorded_model(model: Any) -> RecordedModel:
    found = resolve(model)
    return found if isinstance(found, RecordedModel) else RecordedModel(found)


def _recorded(consult: Callable[..., Awaitable[ChatResponse]]) -> Any:
    async def recorded(
        scope: Scope,
        messages: tuple[Message, ...],
        model: Any,
        instructions: str | None,
        settings: Settings | None,
        output: Output | None,
    ) -> ChatResponse:
        asked = None if model is None else _recorded_model(model)
        return await consult(scope, messages, asked, instructions, settings, output)

    return recorded
