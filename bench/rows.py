"""The lines of the table: what each shows of which work, and how far it may go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Row:
    """A figure, its goal, and the bare loop's figure beside it.

    Attributes:
        what: what the line is called.
        work: the work that has the figure.
        key: the figure's name there.
        unit: in what it is told.
        goal: the most that the figure should be.
        bare: the name of the bare loop's figure.
        most: the most that the figure should be as a multiple of the bare loop's.
    """

    what: str
    work: str
    key: str
    unit: str
    goal: float | None = None
    bare: str | None = None
    most: float | None = None

    def line(self, figures: Mapping[str, float]) -> str:
        """The line, from the figures of its work."""
        value = figures[self.key]
        beside, goal = f"{'':>20}", ""
        if self.bare is not None:
            bare = figures[self.bare]
            ratio = value / bare
            shown = f"{ratio:.1f}" if self.most is None else f"{ratio:.2f}"
            beside = f"{_number(bare, self.unit):>12}{shown:>7}x"
            if self.most is not None:
                over = f"{ratio - self.most:.2f}"
                missed = "just missed" if over == "0.00" else f"missed by {over}x"
                verdict = "met" if ratio <= self.most else missed
                goal = f"≤ {self.most:.2f}x: {verdict}"
        if self.goal is not None:
            missed = f"missed by {_number(value - self.goal, self.unit)}"
            verdict = "met" if value <= self.goal else missed
            goal = f"≤ {_number(self.goal, self.unit)}: {verdict}"
        return f"{self.what:<34}{_number(value, self.unit):>12}{beside}   {goal}".rstrip()


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 1_000 or value == int(value) else 3 if value < 1 else 1
    return f"{value:,.{digits}f} {unit}".rstrip()


ROWS: Final = (
    Row("one-shot turn", "one_shot_turn", "us_0", "µs", 60, "bare_us_0"),
    Row("… with 1 no-op layer", "one_shot_turn", "us_1", "µs", None, "bare_us_1"),
    Row("… with 10", "one_shot_turn", "us_10", "µs", None, "bare_us_10"),
    Row("… with 50", "one_shot_turn", "us_50", "µs", None, "bare_us_50"),
    Row("a layer, of 10", "one_shot_turn", "us_a_layer_10", "µs", 1),
    Row("a layer, of 50", "one_shot_turn", "us_a_layer_50", "µs", 1),
    Row("8 parallel tools", "parallel_tools", "ms", "ms", 0.4, "bare_ms"),
    Row("50 rounds", "long_loop", "ms_50", "ms", None, "bare_ms_50"),
    Row("200 rounds", "long_loop", "ms_200", "ms", 20, "bare_ms_200"),
    Row("200 rounds / 50 rounds", "long_loop", "growth", "x", None, "bare_growth"),
    Row("a streamed delta", "streamed_delta", "us_0", "µs", 2),
    Row("a transform on it", "streamed_delta", "us_a_transform", "µs", 0.1),
    Row("500 tools, built and first used", "many_tools", "ms", "ms", 40),
    Row("windowed turn on 100 stored", "windowed_turn", "ms_100", "ms", 6),
    Row("windowed turn on 10,000 stored", "windowed_turn", "ms_10000", "ms", 6),
    Row("… ratio of the two", "windowed_turn", "ratio", "x", 1.5),
    Row("… bytes written, on 100", "windowed_turn", "bytes_100", "B"),
    Row("… bytes written, on 10,000", "windowed_turn", "bytes_10000", "B"),
    Row("a turn through 11 advisors", "advised_turn", "us", "µs", 500, "bare_us"),
    Row("10,000 words in 100 kB", "guarding", "ms", "ms", 5),
    Row("a search over 1,000 tools", "searching", "ms", "ms", 2),
    Row("a pause after 50 rounds, written", "pausing", "ms_dump", "ms"),
    Row("… read", "pausing", "ms_load", "ms"),
    Row("… its size", "pausing", "bytes", "B"),
    Row("… gone on with to the end", "pausing", "ms_resume", "ms"),
    Row("import retinue, with Python", "importing", "retinue_s", "s", 0.2),
    Row("… Python alone", "importing", "python_s", "s"),
    Row("… import aiohttp, for comparison", "importing", "aiohttp_s", "s"),
    Row("1,000 turns at once, each", "concurrent_turns", "us_a_turn", "µs"),
    Row("… peak memory above the start", "concurrent_turns", "peak_mb_over_start", "MB"),
    Row("… tasks left behind", "concurrent_turns", "tasks_left", "", 0),
    Row("… turns left behind", "concurrent_turns", "scopes_left", "", 0),
)

HTTP_ROWS: Final = (
    Row("one-shot turn", "http_turn", "us", "µs", None, "bare_us", 1.5),
    Row("… 100 at once, each", "http_turn", "us_at_once", "µs", None, "bare_us_at_once", 1.5),
    Row("8 parallel tools", "http_loop", "ms_8", "ms", None, "bare_ms_8", 1.4),
    Row("50 rounds", "http_loop", "ms_50", "ms", None, "bare_ms_50", 1.0),
    Row("200 rounds", "http_loop", "ms_200", "ms", None, "bare_ms_200", 0.35),
    Row("200 rounds / 50 rounds", "http_loop", "growth", "x", None, "bare_growth"),
    Row("a chunk, in bursts", "http_stream", "us_burst_0", "µs", None, "bare_us_burst_0", 0.6),
    Row("… with 5 transforms", "http_stream", "us_burst_5", "µs", None, "bare_us_burst_5", 0.6),
    Row("a chunk, one a write", "http_stream", "us_drip_0", "µs", None, "bare_us_drip_0", 0.6),
    Row("… with 5 transforms", "http_stream", "us_drip_5", "µs", None, "bare_us_drip_5", 0.6),
    Row("500 tools, a turn", "http_tools", "ms", "ms", None, "bare_ms", 1.2),
    Row("… built, and the first turn", "http_tools", "ms_first", "ms", 40),
    Row("first answer of a process", "first_answer", "s", "s", 0.6, "bare_s"),
    Row("… in CPU time", "first_answer", "cpu_s", "s", None, "bare_cpu_s"),
)

SERVING_ROWS: Final = tuple(
    row
    for work, way in (("grpc_serving", "gRPC, gateway and worker"), ("sse_serving", "SSE"))
    for row in (
        Row(f"an event, {way}", work, "us", "µs", None, "bare_us", 2.0),
        Row("… its way to the reader", work, "late_us", "µs", None, "bare_late_us"),
        Row("… turns a second, 1 client", work, "turns_1", "", None, "bare_turns_1"),
        Row("… 50 clients", work, "turns_50", "", None, "bare_turns_50"),
        Row("… 500 clients", work, "turns_500", "", None, "bare_turns_500"),
    )
)
"""An event that costs at most twice as much as a bare one is half as many of them a second."""
