"""One model call as a span, wherever in the onion the advisor stands.

The span begins when the request leaves the innermost layer and ends with the last delta. So it is
begun by the stream hook, as a transform that lets everything pass, and finished by the chat hook
round it, which sees errors and the whole answer.
"""

from contextvars import ContextVar
from itertools import zip_longest
from types import TracebackType
from typing import Final, Self

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode

from retinue.chains import ChatRequest, ChatResponse
from retinue.errors import ModelError
from retinue.messages import Delta, Usage
from retinue.telemetry import conventions as names
from retinue.telemetry.spans import Recorder, Stopwatch, mark


class ModelCall:
    """One model call: its span, and the transform that times it and changes nothing.

    Args:
        recorder: where it goes.
        request: what the model is asked.
        outer: the context that its span stands in.

    Attributes:
        request, outer: as above.
        asked: the provider and the model.
        span: its span.
        finished: whether the model has said all.
        spent_before: how many model calls the turn's account held when it began.
    """

    __slots__ = (
        "_ended", "_first", "_measured", "_recorder", "_watch", "asked", "finished", "outer",
        "request", "span", "spent_before",
    )  # fmt: skip

    def __init__(self, recorder: Recorder, request: ChatRequest, outer: Context) -> None:
        self.asked = names.asked(request)
        told, self._measured = names.of_chat(request, *self.asked)
        self._recorder = recorder
        self._first: int | None = None
        self._ended: int | None = None
        self.request = request
        self.outer = outer
        self.finished = False
        self.spent_before = len(request.spent)
        self._watch = Stopwatch()
        self.span = recorder.tracer.start_span(
            f"chat {self._measured[names.MODEL]}", outer, SpanKind.CLIENT, told,
            start_time=self._watch.began,
        )  # fmt: skip
        if self.span.get_span_context().is_valid:
            context.attach(trace.set_span_in_context(self.span))  # `Chat` puts it back
        content = recorder.content
        if content is not None and self.span.is_recording():
            self.span.set_attribute(names.INPUT, content.messages(request.messages))
            if request.instructions:
                prompt = content.instructions(request.instructions)
                self.span.set_attribute(names.INSTRUCTIONS, prompt)

    def feed(self, delta: Delta) -> tuple[Delta]:
        """Lets it pass."""
        if self._first is None:
            self._first = self._watch.elapsed()
        return (delta,)

    def flush(self) -> tuple[Delta, ...]:
        """The model has said all; what layers do from here on is not its work."""
        self.finished = True
        self._ended = self._watch.elapsed()
        context.attach(self.outer)
        return ()

    def retried(self, error: ModelError, wait: float) -> None:
        """Notes a try that failed before its first token."""
        kind = {names.ERROR: names.error_type(error)}
        told = {**kind, **names.http_status_of(error), names.WAIT: wait}
        self.span.add_event(names.RETRY, told, self._watch.began + self._watch.elapsed())

    def answered(self, usage: Usage | None, response: ChatResponse | None) -> None:
        """Ends it.

        Args:
            usage: its tokens, as far as the provider reported any.
            response: the answer, where it is still known.
        """
        if response is not None:
            told = names.of_answer(response)
            if names.RESPONSE_MODEL in told:
                self._measured[names.RESPONSE_MODEL] = told[names.RESPONSE_MODEL]
            self.span.set_attributes(told)
            content = self._recorder.content
            if content is not None and self.span.is_recording():
                self.span.set_attribute(names.OUTPUT, content.answer(response.message))
        self._end(usage)

    def failed(self, usage: Usage | None, error: BaseException | None) -> None:
        """Ends it as failed; the error is not known where a layer inside has dealt with it."""
        if error is not None:
            mark(self.span, self._recorder, error, self._measured)
        else:
            self._measured[names.ERROR] = names.OTHER
            self.span.set_attribute(names.ERROR, names.OTHER)
            self.span.set_status(StatusCode.ERROR, "A layer has dealt with the error.")
        self._end(usage)

    def refused(self, usage: Usage | None, response: ChatResponse) -> None:
        """Ends it as given up by a transform, which is no error."""
        self.span.set_attribute(names.BLOCKED_BY, response.blocked_by or names.OTHER)
        self._end(usage)

    def _end(self, usage: Usage | None) -> None:
        recorder, measured, span = self._recorder, self._measured, self.span
        where = trace.set_span_in_context(span)
        took = self._watch.elapsed() if self._ended is None else self._ended
        recorder.duration.record(took / 1e9, measured, where)
        if usage is not None:
            for kind, count in names.counts(usage):
                recorder.tokens.record(count, {**measured, names.TOKEN_TYPE: kind}, where)
            span.set_attributes(names.of_usage(usage))
        if self.request.stream and self._first is not None:
            seconds = self._first / 1e9
            recorder.first_chunk.record(seconds, measured, where)
            span.set_attribute(names.FIRST_CHUNK, seconds)
        span.end(self._watch.began + took)


class Chat:
    """The model calls that one pass of the chat onion makes: one, none, or as many as layers ask.

    A context manager round `call_next`. It undoes what its calls have made current.
    """

    __slots__ = ("_calls", "_reset", "_token")

    def __init__(self) -> None:
        self._calls: list[ModelCall] = []

    def __enter__(self) -> Self:
        self._token = context.attach(context.get_current())
        self._reset = _passing.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            self._close(error, None)
        _passing.reset(self._reset)
        context.detach(self._token)

    @staticmethod
    def call(recorder: Recorder, request: ChatRequest) -> ModelCall | None:
        """One more model call of the pass that is under way here; None if there is none."""
        chat = _passing.get()
        if chat is None:
            return None
        outer, current = context.get_current(), trace.get_current_span()
        for earlier in chat._calls:
            if earlier.span is current:  # it has failed, and a layer asks again
                outer = earlier.outer
        call = ModelCall(recorder, request, outer)
        chat._calls.append(call)
        return call

    def answered(self, response: ChatResponse) -> None:
        """The pass has its answer, from the last model call or from a layer."""
        self._close(None, response)

    def _close(self, error: BaseException | None, response: ChatResponse | None) -> None:
        for call, later in zip_longest(self._calls, self._calls[1:]):
            usage = _charged(call, None if later is None else later.spent_before)
            given = response if later is None else None
            if call.finished:
                own = given is not None and given.blocked_by is None
                call.answered(usage, given if own else None)
            elif given is not None and given.refused:
                call.refused(usage, given)
            else:
                call.failed(usage, error if later is None else None)


_passing: Final[ContextVar[Chat | None]] = ContextVar("retinue_chat", default=None)
"""The pass of the chat onion that is under way, in its task and in those that layers start."""


def _charged(call: ModelCall, until: int | None) -> Usage | None:
    """What the turn was charged for this call, failed tries included and side calls left out.

    Args:
        call: the call.
        until: how many model calls the account held when the next one began; None at the end.
    """
    provider, model = call.asked
    by_text = isinstance(call.request.model, str)  # "local" is the text of a model with a name
    charged = call.request.spent[call.spent_before : until]
    own = [one for one in charged if one.provider == provider and (by_text or one.model == model)]
    return names.total(own) if own else None
