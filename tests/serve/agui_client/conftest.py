"""Where the client runs."""

import pytest

from tests import needs


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js, with the client beside it."""
    return needs.AGUI_CLIENT.path()
