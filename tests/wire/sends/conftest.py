"""One recorder for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.wire.sends.recorder import Recorder, recording


@pytest_asyncio.fixture
async def recorder() -> AsyncIterator[Recorder]:
    """A server on this machine that keeps what it is sent."""
    async with recording() as listening:
        yield listening
