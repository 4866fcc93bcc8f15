"""A user of the command line: a home and a folder of their own, no keys, and agents in modules."""

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from typer.testing import CliRunner

from retinue.cli.app import app

_number = itertools.count()

_PREAMBLE = """
import asyncio
from retinue import *
from retinue.advisors import Memory
from retinue.models.scripted import Say, Scripted, call
from retinue.stores import SQLite
"""


class Result(Protocol):
    """How a command ended: what it wrote, and its exit code."""

    @property
    def exit_code(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


Cli = Callable[..., Result]
"""`cli("run", "question", input=...)` runs a command in this process."""

Agents = Callable[[str], str]
"""`agents(code)` writes a module with an `agent`, and gives the module's name."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a command runs in; what it keeps is kept below it."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_AUTH_TOKEN", "_BASE_URL", "_ENDPOINT")) or name.startswith(
            "RETINUE_"
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli() -> Cli:
    runner = CliRunner()

    def command(*arguments: str, input: str | None = None) -> Result:
        return runner.invoke(app, arguments, input=input)

    return command


@pytest.fixture
def agents(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agents]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    written: list[str] = []

    def write(code: str) -> str:
        name = f"house{next(_number)}"
        (home / f"{name}.py").write_text(_PREAMBLE + code)
        monkeypatch.syspath_prepend(str(home))
        written.append(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)
