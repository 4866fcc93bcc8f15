"""`python -m bench`: all works in one run, interleaved; then four tables.

The first is of retinue in its process, beside models that answer at once; the second of retinue
over HTTP, beside a loop on aiohttp at the same server; both are CPU times, on one core. The third
is of the stores, beside each other; the fourth of retinue as a server, beside bare servers. Their
times are by the clock, on all cores.

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

from msgspec import structs

from bench.advised import ADVISED
from bench.leaks import leaks
from bench.over_http import HTTP_WORKS
from bench.pauses import PAUSES
from bench.rows import HTTP_ROWS, ROWS, SERVING_ROWS
from bench.serving import SERVING_WORKS
from bench.stores import STORES, at_hand, lines
from bench.works import IN_PROCESS, Figures

ROUNDS = 3
ALONE = IN_PROCESS | ADVISED | PAUSES | HTTP_WORKS
WORKS = ALONE | STORES | SERVING_WORKS


def measured(work: str) -> Figures:
    """One work in a fresh process."""
    run = subprocess.run(
        [sys.executable, "-m", "bench", work], capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"The work {work} failed:\n{run.stderr}")
    return json.loads(run.stdout)


def main() -> None:
    """Runs all works, round by round, and prints the medians."""
    runs: dict[str, list[Figures]] = {work: [] for work in [*ALONE, *SERVING_WORKS, *at_hand()]}
    for _ in range(ROUNDS):
        for work in runs:
            runs[work].append(measured(work))
    medians = {
        work: {key: statistics.median(run[key] for run in figures) for key in figures[0]}
        for work, figures in runs.items()
    }
    for work in ("long_loop", "http_loop"):
        loop = medians[work]
        for bare in ("", "bare_"):
            loop[f"{bare}growth"] = loop[f"{bare}ms_200"] / loop[f"{bare}ms_50"]
    print(f"Python {platform.python_version()}, median of {ROUNDS} runs")
    for title, beside, rows in (
        ("In process, CPU, one core", "bare loop", ROWS),
        ("Over HTTP, CPU, one core", "floor", HTTP_ROWS),
        ("Serving, clock, all cores", "bare", SERVING_ROWS),
    ):
        print(f"\n{title:<34}{'retinue':>12}{beside:>12}{'ratio':>8}   goal")
        for row in rows:
            print(row.line(medians[row.work]))
    print("", *lines(medians), sep="\n")


def one(work: str) -> None:
    """Runs one work in this process and prints its figures."""
    if work == "leaks":  # on all cores: its vendors have a process of their own
        print(json.dumps(structs.asdict(asyncio.run(leaks()))))
        return
    if work not in SERVING_WORKS and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps(asyncio.run(WORKS[work]())))  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    one(sys.argv[1]) if len(sys.argv) > 1 else main()
