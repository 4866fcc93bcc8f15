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
    Transform,
    TurnRequest,
    events,
)
from retinue.chains.send import Collector, Delivery, Refusal
from retinue.errors import ConfigError, ModelError
from retinue.messages import Message, Usage
from retinue.messages.estimate import message_tokens
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
        if scope.log.journals:
            await scope.log.record(scope.log.transcript)
        transforms = [made for name, hook in self._streams if (made := _made(name, hook(request)))]
        delivery = Delivery(scope, transforms, model=model.name, provider=model.provider)
        try:
            return await self._call(request, model, delivery, visible=True)
        except Refusal as refusal:
            response = request.refuse(refusal.reason, answer=refusal.answer)
            return response.with_(blocked_by=refusal.by)

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
            scope.stopping.interrupt("limit", reason)
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
        collector = Collector(asked.name, asked.provider)
        return await self._call(request, asked, collector, visible=False)

    async def _call(
        self, request: ChatRequest, model: Model, sink: Collector, *, visible: bool
    ) -> ChatResponse:
        """One model call with its retries; whatever comes of it is charged to the turn."""
        scope = request.scope

        def on_retry(error: ModelError, wait: float) -> None:
            _charge(scope, model, sink.restart())
            if visible:
                scope.emit(events.ModelRetried, error=str(error), wait=wait)

        try:
            meta = await generate(model, request, sink, self._plan.retry, on_retry)
            await sink.finish()
        finally:
            _charge(scope, model, sink.usage)
            if sink.usage is None and scope.token_limit is not None:
                asked = sum(message_tokens(message) for message in request.messages)
                scope.estimated += asked + sink.estimate
        return ChatResponse(
            message=sink.message(),
            usage=sink.usage,
            tools=request.tools if visible else None,
            meta=meta or NOTHING,
        )


def _made(name: str, transform: Transform | None) -> Transform | None:
    """What a stream hook gave, if it is a transform."""
    if transform is None or (hasattr(transform, "feed") and hasattr(transform, "flush")):
        return transform
    raise ConfigError(
        f"The stream hook of {name} gave {type(transform).__name__}, which has no feed() and"
        " flush(); return a transform, or None for none."
    )


def _charge(scope: Scope, model: Model, usage: Usage | None) -> None:
    if usage is not None:
        scope.charge([Spent(model.name, model.provider, usage, scope.round)])
