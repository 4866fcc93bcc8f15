"""The servers that some tests need. A variable names each; without it the tests that ask for the
server are left out, which the run says; in CI they fail.
"""

import os
from typing import Final, NamedTuple

import pytest


class Needed(NamedTuple):
    """A server that a test asks for by a fixture.

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

    def url(self) -> str:
        """The URL of the server, for a user who may do everything there."""
        url = os.environ.get(self.variable)
        if not url:
            pytest.fail(
                f"{self.variable} names no server; run this under {self.start}.", pytrace=False
            )
        return url


POSTGRES: Final = Needed("PostgreSQL", "server", "RETINUE_POSTGRES", ".ci/with-postgres")
REDIS: Final = Needed("Redis", "redis_server", "RETINUE_REDIS", ".ci/with-redis")

_left_out = pytest.StashKey[dict[Needed, int]]()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests away whose servers are not there."""
    counts = config.stash[_left_out] = dict[Needed, int]()
    for needed in (POSTGRES, REDIS):
        if os.environ.get(needed.variable):
            continue
        missing = [item for item in items if needed.fixture in getattr(item, "fixturenames", ())]
        items[:] = [item for item in items if item not in missing]
        counts[needed] = len(missing)
        config.hook.pytest_deselected(items=missing)


def lines(config: pytest.Config) -> list[str]:
    """What was left out, and how to have it run."""
    return [
        f"{count} tests of {needed.name} were left out, as {needed.variable} names no server; to"
        f" run them: {needed.start} make test"
        for needed, count in config.stash.get(_left_out, {}).items()
        if count
    ]
