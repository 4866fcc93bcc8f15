"""What a PostgreSQL server knows of its clients, by the application name that each one gave."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from tests.stores.conftest import Admin

PATIENCE: Final = 20.0
"""Seconds after which a wait that should have ended is a failure."""


def count(admin: Admin, name: str) -> int:
    """How many connections the application has."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    row = admin.execute(query, (name,)).fetchone()
    assert row is not None
    return row[0]


def waiting(admin: Admin, name: str) -> int:
    """How many of them wait for another transaction."""
    row = admin.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = %s AND wait_event_type = 'Lock'",
        (name,),
    ).fetchone()
    assert row is not None
    return row[0]


def end(admin: Admin, name: str) -> None:
    """Ends them, as a server does that is shut down."""
    admin.execute(
        "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = %s",
        (name,),
    )


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what happens on the server, which tells nobody."""

    def wait() -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.002)

    await asyncio.to_thread(wait)
