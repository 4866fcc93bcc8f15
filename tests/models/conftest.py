"""One fake provider for all tests of models."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.provider import running


@pytest.fixture(scope="session")
def rig() -> Iterator[Any]:
    """The strict fake provider. Each test uses a session of its own name."""
    with running() as provider:
        yield provider


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)
