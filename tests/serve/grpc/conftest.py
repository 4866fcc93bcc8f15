"""What several files of tests begin with."""

from typing import Any

import pytest_asyncio

from tests.serve.grpc.stage import stage
from tests.serve.scenes import echoing


@pytest_asyncio.fixture(loop_scope="session")
async def echo() -> Any:
    """A gateway with a worker that says what it is told."""
    async with stage() as one, one.worker(echoing()):
        yield one
