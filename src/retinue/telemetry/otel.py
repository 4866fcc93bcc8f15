"""`Telemetry`: OpenTelemetry spans and metrics of turns, rounds, model calls and tool runs."""

import os
from collections.abc import Callable
from typing import Any

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    RoundRequest,
    RoundResponse,
    ToolRequest,
    Transform,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.callables import takes
from retinue.errors import ConfigError
from retinue.messages.masking import mask as without_secrets
from retinue.telemetry import conventions as names
from retinue.telemetry.calls import Chat
from retinue.telemetry.content import Content
from retinue.telemetry.spans import TRACEPARENT, Operation, Recorder, linked
from retinue.tools import ToolResponse


class Telemetry(Advisor):
    """Records what happens as OpenTelemetry does: `invoke_agent` ⊃ `round` ⊃ `chat` and
    `execute_tool`, and metrics of tokens and time.

    Put it outermost, so that its turn holds all that happens. Without an SDK in the process it
    records nothing, at little cost.

    Args:
        content: whether spans hold what was said: prompts, answers, arguments and results. None
            leaves it to the variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, read once,
            here; where that is not set, they do not.
        mask: gives each text without what must not be seen; by default what looks like a key or a
            password is masked.
        tracer_provider, meter_provider: where spans and metrics go; by default to the process's
            own, also if it is set later.

    Raises:
        ConfigError: an argument is of no such kind.
    """

    order = 0
    traits = frozenset({"traces"})

    def __init__(
        self,
        *,
        content: bool | None = None,
        mask: Callable[[str], str] = without_secrets,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        if content not in (None, True, False):
            raise ConfigError(f"Telemetry(content={content!r}): give True, False or None.")
        if not takes(mask, 1):
            raise ConfigError(f"Telemetry(mask={mask!r}): give a function from text to text.")
        _check_provider("tracer_provider", tracer_provider, "get_tracer")
        _check_provider("meter_provider", meter_provider, "get_meter")
        if content is None:
            content = os.environ.get(names.CAPTURE, "").strip().lower() in names.CAPTURES
        self._recorder = Recorder(tracer_provider, meter_provider, Content(mask), bool(content))

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """The span of the turn; inner layers, tools and the caller find its place in their
        context, and the span of a resumed turn is linked to that of the paused one."""
        links = linked(request.context.get(TRACEPARENT)) if request.resumed else ()
        before = len(request.spent)
        told, measured = names.of_turn(request)
        name = f"invoke_agent {request.agent}".rstrip()
        with Operation(self._recorder, name, told, measured, links) as operation:
            place = operation.place
            inner = request if place is None else request.with_context(**{TRACEPARENT: place})
            try:
                response = await call_next(inner)
            finally:
                if operation.recording:
                    usage = names.total(request.spent[before:])
                    operation.span.set_attributes(names.of_usage(usage))
            self._ended(operation, request, response)
            if place is not None and response.status == "paused":
                # Whoever resumes goes on from here, whatever layers have done to the context.
                response = response.with_(context={**response.context, TRACEPARENT: place})
            return response

    async def round(
        self, request: RoundRequest, call_next: CallNext[RoundRequest, RoundResponse]
    ) -> RoundResponse:
        """The span of a round."""
        with Operation(self._recorder, "round", names.of_round(request)) as operation:
            response = await call_next(request)
            operation.note(response.status, response.reason, response.blocked_by)
            return response

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Finishes the spans of the model calls that are made inside."""
        with Chat() as chat:
            response = await call_next(request)
            chat.answered(response)
            return response

    def stream(self, request: ChatRequest) -> Transform | None:
        """Begins the span of a model call, and times it as it streams by."""
        return Chat.call(self._recorder, request)

    async def tool(
        self, request: ToolRequest, call_next: CallNext[ToolRequest, ToolResponse]
    ) -> ToolResponse:
        """The span of a tool run."""
        content = self._recorder.content
        with Operation(self._recorder, *names.of_tool(request)) as operation:
            if content is not None and operation.recording:
                arguments = content.text(request.call.arguments)
                operation.span.set_attribute(names.ARGUMENTS, arguments)
            response = await call_next(request)
            if content is not None and operation.recording:
                operation.span.set_attribute(names.RESULT, content.text(response.result.text))
            if response.blocked_by is not None:
                operation.note(None, response.reason, response.blocked_by)
            elif response.failure is not None:
                operation.span.set_attribute(names.FAILURE, response.failure)
                if response.error is None:
                    operation.went_wrong(response.failure)
                else:
                    operation.failed(response.error)
            return response

    def _ended(self, operation: Operation, request: TurnRequest, response: TurnResponse) -> None:
        operation.note(response.status, response.reason, response.blocked_by)
        content = self._recorder.content
        if not operation.recording:
            return
        operation.span.set_attribute("retinue.rounds", response.rounds)
        if content is not None:
            operation.span.set_attribute(names.INPUT, content.messages(request.messages))
            if response.message is not None:
                operation.span.set_attribute(names.OUTPUT, content.answer(response.message))


def _check_provider(name: str, provider: Any, method: str) -> None:
    if provider is not None and not callable(getattr(provider, method, None)):
        kind = type(provider).__name__
        raise ConfigError(
            f"Telemetry({name}=...): {kind} has no {method}(); give a provider of OpenTelemetry."
        )
