"""Keeps what a `Telemetry` records in memory, and shows it as a tree."""

from collections.abc import Iterator, Sequence
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from retinue.telemetry import Telemetry


class Traces:
    """An SDK of its own whose spans and metrics stay here."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def telemetry(self, **options: Any) -> Telemetry:
        """An advisor that records here."""
        return Telemetry(
            tracer_provider=self.tracer_provider, meter_provider=self.meter_provider, **options
        )

    @property
    def tracer(self) -> Tracer:
        """For spans of an application's own."""
        return self.tracer_provider.get_tracer("application")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The spans that have ended, in the order they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def all(self, start: str) -> list[ReadableSpan]:
        """The spans whose names begin so."""
        return [span for span in self.spans if span.name.startswith(start)]

    def one(self, start: str) -> ReadableSpan:
        """The only span whose name begins so."""
        (span,) = self.all(start)
        return span

    def tree(self) -> list[str]:
        """The names of the spans, each indented under its parent."""
        return list(self._below(None, 0))

    def points(self, metric: str) -> list[tuple[dict[str, Any], Any]]:
        """What was measured: attributes and data points."""
        data = self._reader.get_metrics_data()
        found = () if data is None else data.resource_metrics
        return [
            (dict(point.attributes or {}), point)
            for resource in found
            for scope in resource.scope_metrics
            for one in scope.metrics
            if one.name == metric
            for point in one.data.data_points
        ]

    def _below(self, parent: int | None, depth: int) -> Iterator[str]:
        for span in self.spans:
            if (span.parent.span_id if span.parent else None) == parent:
                yield "  " * depth + span.name
                context = span.context
                yield from self._below(context.span_id if context else None, depth + 1)
