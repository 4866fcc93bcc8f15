"""A real browser for the tests of the console: Chromium as the system has it.

It is driven by Playwright for Python, so that one test holds the page in one hand and the scripted
model in the other: the model says a word, waits for the test, and goes on. Without a browser these
tests are left out, which the run says; in CI they fail.
"""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.conftest import IN_CI
from tests.serve.console.page import Opener, pages_of

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FOUND = next((path for name in _NAMES if (path := shutil.which(name))), None)

_left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what cannot run here."""
    if IN_CI or _FOUND is not None:
        return
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    missing = [item for item in here if "pages" in getattr(item, "fixturenames", ())]
    items[:] = [item for item in items if item not in missing]
    config.stash[_left_out] = len(missing)
    config.hook.pytest_deselected(items=missing)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Says what was left out, and how to have it run."""
    count = config.stash.get(_left_out, 0)
    if count:
        terminalreporter.line(
            f"{count} tests of the console were left out, as there is no Chromium; on Debian:"
            " apt-get install chromium"
        )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests; each has pages of its own."""
    if _FOUND is None:
        pytest.fail("There is no Chromium; on Debian: apt-get install chromium", pytrace=False)
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(
            executable_path=_FOUND,
            chromium_sandbox=os.geteuid() != 0,  # which root cannot have
            args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        yield made
        await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def pages(browser: Browser) -> AsyncIterator[Opener]:
    """Opens pages. After the test, none of them may have complained of anything, broken its
    policy, or asked another server for something."""
    async with pages_of(browser) as opener:
        yield opener
