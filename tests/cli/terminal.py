"""A command in a pseudo-terminal, as a user would run it. Every wait is bounded."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.structure.sources import SRC

PATIENCE: Final = 30.0
"""Seconds; far more than anything here takes on a busy machine."""

COMMAND: Final = (sys.executable, "-P", "-m", "retinue.cli")
"""`retinue`, which like any script does not find what lies in the current folder by itself."""

_ASKS: Final = "\x1b[?2004h"  # pasting is announced from here on: a prompt is ready
_ESCAPE: Final = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_=>78])")


def environment(**more: str) -> dict[str, str]:
    """The environment of a child process: this one's, without keys and with our sources."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_ENDPOINT"))}
    return {**kept, "PYTHONPATH": str(SRC), "PYTHONIOENCODING": "utf-8", **more}


class Terminal:
    """A running command and the terminal it believes to be on. Leave its `with` to end it."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        rows: int = 24,
        columns: int = 80,
    ) -> None:
        self._side, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd,
            env={**env, "TERM": "xterm-256color"},
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(other)
        self.raw = ""
        self._rows = rows
        self._prompts = 0

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._side)

    @property
    def text(self) -> str:
        """What has been written so far, without what only moves the cursor or colours."""
        return _ESCAPE.sub("", self.raw)

    def send(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._side, keys.encode())

    def interrupt(self) -> None:
        """Presses Ctrl-C."""
        self.send("\x03")

    def prompt(self) -> None:
        """Waits until the command asks for the next line."""
        self._prompts += 1
        self._until(_ASKS, lambda: self.raw, self._prompts)

    def until(self, wanted: str, *, times: int = 1) -> None:
        """Reads until a text was written so many times."""
        self._until(wanted, lambda: self.text, times)

    def _until(self, wanted: str, written: Callable[[], str], times: int) -> None:
        end = time.monotonic() + PATIENCE
        while written().count(wanted) < times:
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{wanted!r} did not come. What came:\n{self.text}")

    def end(self) -> int:
        """Reads to the end; gives the exit code."""
        end = time.monotonic() + PATIENCE
        while self._read(end - time.monotonic()):
            pass
        return self._process.wait(timeout=max(0.1, end - time.monotonic()))

    def _read(self, seconds: float) -> bool:
        if not select.select([self._side], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._side, 65536)
        except OSError:  # how Linux says that the other side has closed
            return False
        self.raw += data.decode("utf-8", "replace")
        if b"\x1b[6n" in data:
            self.send(f"\x1b[{self._rows};1R")  # a terminal tells where its cursor is
        return bool(data)
