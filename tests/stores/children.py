"""Other processes that use a store: each runs a script, and is over when the test is."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PRELUDE: Final = """
import asyncio, sys
from retinue.messages import assistant, user
from retinue.stores import SQLite
path = sys.argv[1]
"""

_HOLD: Final = """
async def main():
    async with SQLite(path).writing(sys.argv[2]):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""


class Child:
    """A script that runs, with its input and output."""

    def __init__(self, script: str, *args: str | Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PRELUDE + script, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def said(self) -> str:
        """The next line that it prints; empty if it is over."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, line: str = "") -> None:
        """A line for it to read."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Ends it as a power cut would (SIGKILL), and waits until it is gone."""
        self._process.kill()
        self._process.wait(timeout=60)

    def rest(self) -> str:
        """What else it prints until it ends, which it must do well."""
        output, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0
        return output.strip()

    def close(self) -> None:
        """Ends it if it still runs."""
        with contextlib.suppress(BrokenPipeError), self._process:
            self._process.kill()


@contextlib.contextmanager
def child(script: str, *args: str | Path) -> Iterator[Child]:
    """A process that runs the script; `path` is its first argument."""
    process = Child(script, *args)
    try:
        yield process
    finally:
        process.close()


@contextlib.contextmanager
def holder(path: Path, conversation: str) -> Iterator[Child]:
    """A process that holds `writing` until it is told a line or killed."""
    with child(_HOLD, path, conversation) as process:
        assert process.said() == "held"
        yield process
