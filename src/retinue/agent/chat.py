"""The core of the chat onion: one model call, and calls on the side."""

from typing import Any

from retinue.agent.plan import Plan
from retinue.chains import (
    ChatRequest,
    ChatResponse,
    Output,
    Scope,
    Settings,
    Spent,
    TurnRequest,
    events,
)
from retinue.chains.send import Collector, Delivery
from retinue.errors import ModelError
from retinue.messages import Message, Usage
from retinue.models import Model, generate, resolve
from retinue.tools import NOTHING


class Chat:
    """Calls the agent's model, or the one that a layer chose."""

    __slots__ = ("_plan", "_streams")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._streams = plan.streams()

    async def ask(self, request: ChatRequest) -> ChatResponse:
        """One model call, its answer delivered as it comes."""
        scope = request.scope
        model = self._plan.model if request.model is None else resolve(request.model)
        if scope.journals:
            await scope.record(scope.transcript)
        transforms = [made for hook in self._streams if (made := hook(request)) is not None]
        delivery = Delivery(scope, transforms, model=model.name, provider=model.provider)

        def on_retry(error: ModelError, wait: float) -> None:
            _charge(scope, model, delivery.restart())
            scope.emit(events.ModelRetried, error=str(error), wait=wait)

        try:
            meta = await generate(model, request, delivery, self._plan.retry, on_retry)
            await delivery.finish()
        finally:
            _charge(scope, model, delivery.usage)
            if delivery.usage is None:
                scope.estimated += delivery.estimate
        return ChatResponse(
            message=delivery.message(),
            usage=delivery.usage,
            tools=request.tools,
            meta=meta or NOTHING,
        )

    async def consult(
        self,
        scope: Scope,
        messages: tuple[Message, ...],
        model: Any,
        instructions: str | None,
        settings: Settings | None,
        output: Output | None,
    ) -> ChatResponse:
        """A model call on the side: counted, bound by budgets, seen by no reader (R-USAGE-4)."""
        plan = self._plan
        reason = plan.over_budget(scope)
        if reason is not None:
            scope.interrupt("limit", reason)
        asked = plan.model if model is None else resolve(model)
        request = ChatRequest(
            scope=scope,
            turn=TurnRequest(scope=scope, messages=messages),
            round=scope.round,
            messages=messages,
            instructions=(instructions,) if instructions else (),
            settings=settings or Settings(),
            output=output,
        )
        collector = Collector()

        def on_retry(error: ModelError, wait: float) -> None:
            _charge(scope, asked, collector.restart())

        try:
            meta = await generate(asked, request, collector, plan.retry, on_retry)
        finally:
            _charge(scope, asked, collector.usage)
            if collector.usage is None:
                scope.estimated += collector.estimate
        return ChatResponse(
            message=collector.message(model=asked.name, provider=asked.provider),
            usage=collector.usage,
            meta=meta or NOTHING,
        )


def _charge(scope: Scope, model: Model, usage: Usage | None) -> None:
    if usage is not None:
        scope.charge([Spent(model.name, model.provider, usage, scope.round)])
