"""What Prometheus is told: turns, tokens, times to the first token, and loads.

The names begin with `retinue_`; their labels are agents and fixed words, never what a client says.
"""

import time
from typing import Any, Final

from retinue.chains.events import Event, TextChunk, TurnEnded, UsageReported
from retinue.errors import MissingExtraError
from retinue.serve.gateway import Gateway
from retinue.serve.keeping import Kept

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one gateway, in a registry of their own.

    Args:
        gateway: what is watched.

    Raises:
        MissingExtraError: prometheus-client is not installed.
    """

    def __init__(self, gateway: Gateway) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError as error:
            raise MissingExtraError(
                "Metrics need prometheus-client; install it with: pip install 'retinue[serve]'"
            ) from error
        self._gateway = gateway
        self._write = prometheus.generate_latest
        self._registry: Any = prometheus.CollectorRegistry()
        kept: dict[str, Any] = {"registry": self._registry, "namespace": "retinue"}
        self._turns = prometheus.Counter("turns", "Turns.", ["agent", "status"], **kept)
        self._tokens = prometheus.Counter("tokens", "Tokens.", ["agent", "kind"], **kept)
        self._first = prometheus.Histogram(
            "first_token_seconds", "To the first text.", ["agent"], buckets=_SECONDS, **kept
        )
        self._lasted = prometheus.Histogram(
            "turn_seconds", "Of a whole turn.", ["agent"], buckets=_SECONDS, **kept
        )
        self._running = prometheus.Gauge("turns_running", "Turns that run.", **kept)
        self._queued = prometheus.Gauge("turns_queued", "Turns that wait for a place.", **kept)
        self._workers = prometheus.Gauge("workers", "Workers that are attached.", **kept)
        self._spoken: set[str] = set()
        gateway.watch(self._hear)

    def text(self) -> bytes:
        """The metrics as Prometheus reads them."""
        load = self._gateway.load()
        self._running.set(load.running)
        self._queued.set(load.queued)
        self._workers.set(len(load.workers))
        return self._write(self._registry)

    def _hear(self, turn: Kept, event: Event) -> None:
        agent, now = turn.job.agent, time.monotonic()
        if isinstance(event, UsageReported):
            # Call by call: the sum at the end of a resumed turn has that before the pause in it.
            self._tokens.labels(agent, "input").inc(event.usage.input or 0)
            self._tokens.labels(agent, "output").inc(event.usage.output or 0)
        elif event.path:
            return  # what a sub-agent says is not yet the answer
        elif isinstance(event, TextChunk):
            if turn.stream not in self._spoken:
                self._spoken.add(turn.stream)
                self._first.labels(agent).observe(now - turn.begun)
        elif isinstance(event, TurnEnded):
            self._spoken.discard(turn.stream)
            self._turns.labels(agent, event.status).inc()
            self._lasted.labels(agent).observe(now - turn.begun)
