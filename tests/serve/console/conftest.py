"""A real browser for the tests of the console: Chromium as the system has it.

It is driven by Playwright for Python, so that one test holds the page in one hand and the scripted
model in the other: the model says a word, waits for the test, and goes on.
"""

import os
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from tests import needs
from tests.serve.console.page import Opener, desk_of, pages_of


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests."""
    path = needs.CHROMIUM.path()
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(
            executable_path=path,
            chromium_sandbox=os.geteuid() != 0,  # which root cannot have
            args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        yield made
        await made.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def desk(browser: Browser) -> Page:
    """The page that every test begins with, for a new one takes longer than most tests."""
    return await desk_of(browser)


@pytest_asyncio.fixture(loop_scope="session")
async def pages(browser: Browser, desk: Page) -> AsyncIterator[Opener]:
    """Opens pages. After the test, none of them may have complained of anything, broken its
    policy, or asked another server for something."""
    async with pages_of(browser, desk) as opener:
        yield opener
