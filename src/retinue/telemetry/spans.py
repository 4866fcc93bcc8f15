"""Spans and metrics as OpenTelemetry takes them, and the trace context as plain text."""

import asyncio
from collections.abc import Sequence
from time import perf_counter_ns, time_ns
from types import TracebackType
from typing import Final, Self

from opentelemetry import context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from retinue.errors import ConfigError, ModelError, StoreError
from retinue.telemetry import conventions as names
from retinue.telemetry.content import Content
from retinue.tools.results import said
from retinue.version import __version__

TRACEPARENT: Final = "traceparent"
"""Under which key the trace context stands in a turn's context, in the form of W3C."""

_QUOTING_NOBODY: Final = (ConfigError, ModelError, StoreError)
"""Errors whose words are the library's or a provider's, not a user's or a model's."""

_w3c: Final = TraceContextTextMapPropagator()


class Recorder:
    """Where spans and metrics go, and how much they may tell.

    Args:
        tracer_provider, meter_provider: OpenTelemetry's; None for the process's own.
        texts: writes whatever text is recorded.
        content: whether that may be what was said.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        texts: Content,
        content: bool,
    ) -> None:
        scope = ("retinue", __version__)
        self.tracer = trace.get_tracer(*scope, tracer_provider, names.SCHEMA_URL)
        meter = metrics.get_meter(*scope, meter_provider, names.SCHEMA_URL)
        self.tokens = meter.create_histogram(
            *names.TOKENS, explicit_bucket_boundaries_advisory=names.TOKEN_BOUNDS
        )
        self.duration = meter.create_histogram(
            *names.DURATION, explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS
        )
        self.first_chunk = meter.create_histogram(
            *names.TO_FIRST_CHUNK, explicit_bucket_boundaries_advisory=names.FIRST_CHUNK_BOUNDS
        )
        self.texts = texts
        self.content = texts if content else None

    def told(self, error: BaseException) -> str | None:
        """What a span may say of an error; one that may quote what was said, only if asked to."""
        if self.content is None and not isinstance(error, _QUOTING_NOBODY):
            return None
        return self.texts.text(said(error)) or None


class Stopwatch:
    """Runs from when it is made. Its span's length and its metrics are read from it alone.

    So they agree to the nanosecond, and no correction of the machine's clock makes them longer or
    shorter. Where the span stands beside others follows that clock.

    Attributes:
        began: when it was made, in nanoseconds since 1970.
    """

    __slots__ = ("_ticks", "began")

    def __init__(self) -> None:
        self.began = time_ns()
        self._ticks = perf_counter_ns()

    def elapsed(self) -> int:
        """Nanoseconds since then."""
        return perf_counter_ns() - self._ticks


class Operation:
    """A turn, a round or a tool run: a span that is current while its `with` block runs.

    Args:
        recorder: where it goes.
        name: of the span.
        attributes: those that are known when it begins; samplers see them.
        measured: the attributes of its duration, or None where that is not measured.
        links: spans of other turns that it goes on from.
    """

    __slots__ = ("_context", "_measured", "_recorder", "_token", "_watch", "recording", "span")

    def __init__(
        self,
        recorder: Recorder,
        name: str,
        attributes: names.Attributes,
        measured: names.Attributes | None = None,
        links: Sequence[Link] = (),
    ) -> None:
        self._recorder = recorder
        self._measured = measured
        self._watch = Stopwatch()
        self.span = recorder.tracer.start_span(
            name, attributes=attributes, links=links, start_time=self._watch.began
        )
        self.recording = self.span.is_recording()
        self._context: Context | None = None

    def __enter__(self) -> Self:
        if self.span.get_span_context().is_valid:
            self._context = trace.set_span_in_context(self.span)
            self._token = context.attach(self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            self.failed(error)
        took = self._watch.elapsed()
        if self._measured is not None:
            self._recorder.duration.record(took / 1e9, self._measured, self._context)
        self.span.end(self._watch.began + took)
        if self._context is not None:
            context.detach(self._token)

    @property
    def place(self) -> str | None:
        """Where it stands in its trace, as plain text; None where nothing is traced."""
        if self._context is None:
            return None
        carrier: dict[str, str] = {}
        _w3c.inject(carrier, self._context)
        return carrier.get(TRACEPARENT)

    def failed(self, error: BaseException) -> None:
        """It was cancelled, or ended with an error, raised or not."""
        mark(self.span, self._recorder, error, self._measured)

    def went_wrong(self, kind: str) -> None:
        """It ended with an error that is no exception."""
        if self._measured is not None:
            self._measured[names.ERROR] = kind
        self.span.set_attribute(names.ERROR, kind)
        self.span.set_status(StatusCode.ERROR)

    def note(self, status: str | None, reason: str | None, blocked_by: str | None) -> None:
        """How it ended. A reason that a layer gives may quote what was said; a limit's does not."""
        if not self.recording:
            return
        if status is not None:
            self.span.set_attribute(names.STATUS, status)
        if blocked_by is not None:
            self.span.set_attribute(names.BLOCKED_BY, blocked_by)
        if reason is not None and (status == "limit" or self._recorder.content is not None):
            self.span.set_attribute(names.REASON, self._recorder.texts.text(reason))


def mark(
    span: Span, recorder: Recorder, error: BaseException, measured: names.Attributes | None
) -> None:
    """Tells a span, and the attributes of its metrics, of an error. A cancel is none."""
    told: names.Attributes
    if isinstance(error, asyncio.CancelledError):
        told = {names.STATUS: "cancelled"}
    else:
        told = {names.ERROR: names.error_type(error)}
        span.set_status(StatusCode.ERROR, recorder.told(error))
        span.set_attributes(names.http_status_of(error))
    span.set_attributes(told)
    if measured is not None:
        measured.update(told)


def linked(place: object) -> Sequence[Link]:
    """A link to the span that a text names; none where it names none."""
    if not isinstance(place, str):
        return ()
    found = trace.get_current_span(_w3c.extract({TRACEPARENT: place}, Context()))
    there = found.get_span_context()
    return (Link(there),) if there.is_valid else ()
