"""`python -m bench`: all works in one run, interleaved, on one core; then one table.

`python -m bench WORK` runs one work once and prints its figures as JSON. `python -m bench leaks`
counts what ten thousand turns leave behind.
"""

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass

from msgspec import structs

from bench.leaks import leaks
from bench.works import WORKS, Figures

ROUNDS = 3


@dataclass
class Row:
    """One line of the table: a figure, its goal, and the bare loop's figure beside it."""

    what: str
    work: str
    key: str
    unit: str
    goal: float | None = None
    bare: str | None = None


ROWS = (
    Row("one-shot turn", "one_shot_turn", "us_0", "µs", 60, "bare_us_0"),
    Row("… with 1 no-op layer", "one_shot_turn", "us_1", "µs", None, "bare_us_1"),
    Row("… with 10", "one_shot_turn", "us_10", "µs", None, "bare_us_10"),
    Row("… with 50", "one_shot_turn", "us_50", "µs", None, "bare_us_50"),
    Row("a layer, of 10", "one_shot_turn", "us_a_layer_10", "µs", 1),
    Row("a layer, of 50", "one_shot_turn", "us_a_layer_50", "µs", 1),
    Row("8 parallel tools", "parallel_tools", "ms", "ms", 0.4, "bare_ms"),
    Row("50 rounds", "long_loop", "ms_50", "ms", None, "bare_ms_50"),
    Row("200 rounds", "long_loop", "ms_200", "ms", 20, "bare_ms_200"),
    Row("200 rounds / 50 rounds", "long_loop", "growth", "x", None),
    Row("a streamed delta", "streamed_delta", "us_0", "µs", 2),
    Row("a transform on it", "streamed_delta", "us_a_transform", "µs", 0.1),
    Row("500 tools, built and first used", "many_tools", "ms", "ms", 40),
    Row("windowed turn on 100 stored", "windowed_turn", "ms_100", "ms", 6),
    Row("windowed turn on 10,000 stored", "windowed_turn", "ms_10000", "ms", 6),
    Row("… ratio of the two", "windowed_turn", "ratio", "x", 1.5),
    Row("… bytes written, on 100", "windowed_turn", "bytes_100", "B"),
    Row("… bytes written, on 10,000", "windowed_turn", "bytes_10000", "B"),
    Row("import retinue, with Python", "importing", "retinue_s", "s", 0.2),
    Row("… Python alone", "importing", "python_s", "s"),
    Row("… import aiohttp, for comparison", "importing", "aiohttp_s", "s"),
    Row("1,000 turns at once, each", "concurrent_turns", "us_a_turn", "µs"),
    Row("… peak memory above the start", "concurrent_turns", "peak_mb_over_start", "MB"),
    Row("… tasks left behind", "concurrent_turns", "tasks_left", "", 0),
    Row("… turns left behind", "concurrent_turns", "scopes_left", "", 0),
)


def measured(work: str) -> Figures:
    """One work in a fresh process on one core."""
    run = subprocess.run(
        [sys.executable, "-m", "bench", work], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"The work {work} failed:\n{run.stderr}")
    return json.loads(run.stdout)


def main() -> None:
    """Runs all works, round by round, and prints the medians."""
    runs: dict[str, list[Figures]] = {work: [] for work in WORKS}
    for _ in range(ROUNDS):
        for work in WORKS:
            runs[work].append(measured(work))
    medians = {
        work: {key: statistics.median(run[key] for run in figures) for key in figures[0]}
        for work, figures in runs.items()
    }
    loop = medians["long_loop"]
    loop["growth"] = loop["ms_200"] / loop["ms_50"]
    print(f"Python {platform.python_version()}, CPU time, one core, median of {ROUNDS} runs\n")
    print(f"{'':<34}{'retinue':>12}{'bare loop':>12}{'ratio':>8}   goal")
    for row in ROWS:
        print(_line(row, medians[row.work]))


def _line(row: Row, figures: Figures) -> str:
    value = figures[row.key]
    bare = figures[row.bare] if row.bare else None
    beside = f"{'':>20}" if bare is None else f"{_number(bare, row.unit):>12}{value / bare:>7.1f}x"
    goal = ""
    if row.goal is not None:
        verdict = "met" if value <= row.goal else f"missed by {_number(value - row.goal, row.unit)}"
        goal = f"≤ {_number(row.goal, row.unit)}: {verdict}"
    return f"{row.what:<34}{_number(value, row.unit):>12}{beside}   {goal}".rstrip()


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 1_000 or value == int(value) else 3 if value < 1 else 1
    return f"{value:,.{digits}f} {unit}".rstrip()


def one(work: str) -> None:
    """Runs one work in this process and prints its figures."""
    if work == "leaks":  # on all cores: its vendors have a process of their own
        print(json.dumps(structs.asdict(asyncio.run(leaks()))))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps(asyncio.run(WORKS[work]())))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    one(sys.argv[1]) if len(sys.argv) > 1 else main()
