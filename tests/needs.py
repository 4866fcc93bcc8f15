"""What some tests need of the machine: servers, which a variable names, programs, and a package
that has no wheel for some machines. Without them these tests are left out, which the run says; in
CI they fail.
"""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import pytest


class Needed(Protocol):
    """Something that a test asks for by a fixture."""

    @property
    def name(self) -> str:
        """What it is."""
        ...

    @property
    def fixture(self) -> str:
        """The fixture that gives it."""
        ...

    @property
    def lack(self) -> str:
        """What is missing and what to do; empty where it is there."""
        ...


class Server(NamedTuple):
    """A server.

    Attributes:
        name: what it is.
        fixture: the fixture that gives its URL.
        variable: the environment variable that holds it.
        start: the command that starts one, for the length of another command.
    """

    name: str
    fixture: str
    variable: str
    start: str

    @property
    def lack(self) -> str:
        """See `Needed`."""
        if os.environ.get(self.variable):
            return ""
        return f"{self.variable} names no server; run this under {self.start}"

    def url(self) -> str:
        """The URL of the server, for a user who may do everything there."""
        if self.lack:
            pytest.fail(self.lack, pytrace=False)
        return os.environ[self.variable]


class Program(NamedTuple):
    """A program, and what must be installed for it.

    Attributes:
        name: what is tested with it.
        fixture: the fixture that runs it.
        commands: the names that it may have.
        install: the command that brings it.
        beside: a folder that it needs, or None.
    """

    name: str
    fixture: str
    commands: tuple[str, ...]
    install: str
    beside: Path | None = None

    @property
    def lack(self) -> str:
        """See `Needed`."""
        if not any(map(shutil.which, self.commands)):
            return f"there is no {self.commands[0]}; {self.install}"
        if self.beside is not None and not self.beside.is_dir():
            return f"there is no {self.beside.name}; {self.install}"
        return ""

    def path(self) -> str:
        """Where the program is."""
        if self.lack:
            pytest.fail(self.lack, pytrace=False)
        return next(path for name in self.commands if (path := shutil.which(name)))


class Package(NamedTuple):
    """A package of Python.

    Attributes:
        name: what is tested with it.
        fixture: the fixture that uses it.
        module: what it is imported as.
    """

    name: str
    fixture: str
    module: str

    @property
    def lack(self) -> str:
        """See `Needed`."""
        if find_spec(self.module):
            return ""
        return f"{self.module} is not installed; make test installs it where it has a wheel"


POSTGRES: Final = Server("PostgreSQL", "server", "RETINUE_POSTGRES", ".ci/with-postgres")
REDIS: Final = Server("Redis", "redis_server", "RETINUE_REDIS", ".ci/with-redis")
CHROMIUM: Final = Program(
    "the console",
    "browser",
    ("chromium", "chromium-browser", "google-chrome", "chrome"),
    "on Debian: apt-get install chromium",
)
AGUI_CLIENT: Final = Program(
    "AG-UI's own client",
    "node",
    ("node",),
    "on Debian: apt-get install nodejs npm; then make test, with npm's registry in reach",
    Path(__file__).parent / "serve/agui_client/node_modules",
)
ROTEL: Final = Package("a collector of OpenTelemetry", "collector", "rotel")

_left_out = pytest.StashKey[list[tuple[Needed, int]]]()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests away that need what is not there."""
    counts = config.stash[_left_out] = []
    every: tuple[Needed, ...] = (POSTGRES, REDIS, CHROMIUM, AGUI_CLIENT, ROTEL)
    for needed in every:
        if not needed.lack:
            continue
        missing = [item for item in items if needed.fixture in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if item not in missing]
        counts.append((needed, len(missing)))
        config.hook.pytest_deselected(items=missing)


def lines(config: pytest.Config) -> list[str]:
    """What was left out, and how to have it run."""
    return [
        f"{count} tests of {needed.name} were left out: {needed.lack}"
        for needed, count in config.stash.get(_left_out, [])
        if count
    ]
