"""The core of the chat onion: one model call, and calls on the side."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

from retinue.agent.plan import Plan
from retinue.chains import (
    Booking,
    ChatRequest,
    ChatResponse,
    Output,
    Scope,
    Settings,
    Spent,
    Transform,
    Transforms,
    TurnRequest,
)
from retinue.chains.meter import book, settle
from retinue.chains.send import Collector, Delivery, Refusal
from retinue.chains.weight import request_tokens
from retinue.errors import ConfigError, ModelError
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
        if scope.log.journals:
            await scope.log.record(scope.log.transcript)
        transforms = [
            one if scope.times is None else scope.times.transform(one, hook, name)
            for name, hook in self._streams
            for one in _made(name, hook(request))
        ]
        bookings = await book(request, model.name, model.provider) if scope.meters else ()
        delivery = Delivery(
            scope,
            transforms,
            model=model.name,
            provider=model.provider,
            waits=request.turn.held,
        )
        measured = nullcontext() if scope.times is None else scope.times.model(model.name)
        try:
            with measured:
                return await self._call(request, model, delivery, bookings, visible=True)
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
        bookings = await book(request, asked.name, asked.provider) if scope.meters else ()
        collector = Collector(asked.name, asked.provider)
        return await self._call(request, asked, collector, bookings, visible=False)

    async def _call(
        self,
        request: ChatRequest,
        model: Model,
        sink: Collector,
        bookings: Sequence[Booking],
        *,
        visible: bool,
    ) -> ChatResponse:
        """One model call with its retries; whatever comes of it is charged to the turn."""
        bill = _Bill(request, model, sink)
        try:
            meta = await generate(model, request, sink, self._plan.retry, bill.on_retry)
            await sink.finish()
            sink.started = True  # an empty answer is one too
        finally:
            bill.charge(sink.usage)
            if sink.usage is None and sink.started:
                bill.estimate(needed=bool(bookings))
            if bookings:
                await settle(bookings, bill.spent)
        return ChatResponse(
            message=sink.message(),
            usage=sink.usage,
            tools=request.tools if visible else None,
            meta=meta or NOTHING,
        )


class _Bill:
    """What one model call comes to, try by try.

    It is an object, since functions that share its variables would keep a dozen cells for each of
    the calls that wait at the same time, and the garbage collector visits them all.

    Attributes:
        spent: what was charged to the turn, and what was estimated.
    """

    __slots__ = ("_model", "_request", "_sink", "spent")

    def __init__(self, request: ChatRequest, model: Model, sink: Collector) -> None:
        self._request = request
        self._model = model
        self._sink = sink
        self.spent: list[Spent] = []

    def on_retry(self, error: ModelError, wait: float) -> None:
        """A try has failed: charges what it used, and tells the reader."""
        self.charge(self._sink.restart())
        self._sink.retried(error, wait)

    def charge(self, usage: Usage | None) -> None:
        """Charges what the provider reported, if it did."""
        if usage is not None:
            self.spent.append(self._spent(usage))
            self._request.scope.charge(self.spent[-1:])

    def estimate(self, *, needed: bool) -> None:
        """Estimates a call that the provider told nothing of, where somebody counts.

        Args:
            needed: whether a meter counts; else it is only for the turn's limit of tokens.
        """
        scope = self._request.scope
        if needed or scope.token_limit is not None:
            guess = Usage(input=request_tokens(self._request), output=self._sink.estimate)
            self.spent.append(self._spent(guess, estimated=True))
            scope.estimated += guess.total

    def _spent(self, usage: Usage, *, estimated: bool = False) -> Spent:
        model = self._model
        return Spent(model.name, model.provider, usage, self._request.round, estimated)


def _made(name: str, given: Transforms) -> Sequence[Transform]:
    """The transforms that a stream hook gave."""
    if given is None:
        return ()
    several = given if isinstance(given, tuple | list) else (given,)
    for one in several:
        if not (hasattr(one, "feed") and hasattr(one, "flush")):
            raise ConfigError(
                f"The stream hook of {name} gave {type(one).__name__}, which has no feed() and"
                " flush(); return a transform, several in a list, or None for none."
            )
    return cast("Sequence[Transform]", several)
