"""Workers as processes, and what they leave behind."""

import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.durable.worker import TURN
from tests.structure.sources import ROOT

SECONDS = 10.0
"""How long a turn may take from the death of its worker: with its lease of 0.6 s some two seconds,
and more on a busy machine, but less than it takes by the lease that is usual."""


class Worker:
    """A worker's process."""

    def __init__(self, role: str, database: str, folder: Path, point: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.durable.worker", role, database, str(folder), point],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def opened(self) -> None:
        """Waits until it works."""
        assert self.said() == "open"

    def said(self) -> str:
        """The next line that it says; empty if it is over."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._process.kill()
        self._process.wait(timeout=30)

    def result(self, turn: str = TURN) -> dict[str, Any]:
        """How a turn ended, when it has."""
        self._tell(f"result {turn}")
        return json.loads(self.said())

    def cancel(self, turn: str) -> None:
        """Cancels a turn."""
        self._tell(f"cancel {turn}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """Ends it if it still runs."""
        with contextlib.suppress(BrokenPipeError), self._process:
            self._process.kill()


@contextlib.contextmanager
def worker(role: str, database: str, folder: Path, point: str = "") -> Iterator[Worker]:
    """A worker that is gone when the test is."""
    process = Worker(role, database, folder, point)
    try:
        process.opened()
        yield process
    finally:
        process.close()


def killed_at(
    point: str, database: str, folder: Path, *, role: str = "begin", turn: str = TURN
) -> tuple[dict[str, Any], Counter[str]]:
    """Kills the worker of a turn at a point, beside another that is alive.

    Returns:
        how the turn ended, and how often each thing was done.
    """
    first, second = Worker(role, database, folder, point), Worker("serve", database, folder)
    try:
        second.opened()
        first.opened()
        assert first.said() == f"at {point}"
        first.kill()
        died = time.monotonic()
        ended = second.result(turn)
        assert time.monotonic() - died < SECONDS
    finally:
        first.close()
        second.close()
    return ended, Counter((folder / "effects").read_text().splitlines())
