"""The console as a person has it before them: what is there, and what can be done."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

BOUND: Final = 10_000
"""Milliseconds after which a wait has failed, on the slowest machine."""

expect.set_options(timeout=BOUND)

_WATCH: Final = """
    addEventListener("securitypolicyviolation", (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
"""

Opener = Callable[..., Awaitable["Shown"]]


class Shown:
    """One page.

    Attributes:
        page: as Playwright has it.
        complaints: what the page or its browser complained of.
        elsewhere: what it asked of other servers.
    """

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))
        page.on("request", self._see)

    @property
    def question(self) -> Locator:
        """Where one writes."""
        return self.page.get_by_label("Your question")

    @property
    def turns(self) -> Locator:
        """The turns of the open conversation."""
        return self.page.locator("article.turn")

    @property
    def answers(self) -> Locator:
        """All texts that the model has said, those taken back included."""
        return self.page.locator("article.turn .rounds .prose")

    @property
    def conversations(self) -> Locator:
        """The list at the side."""
        return self.page.get_by_role("navigation", name="Conversations").get_by_role("link")

    def button(self, name: str, within: Locator | None = None) -> Locator:
        """The button of this name."""
        return (within or self.page).get_by_role("button", name=name, exact=True)

    async def ask(self, text: str, *, wait: bool = True) -> None:
        """Asks something; by default until the turn is over."""
        await self.question.fill(text)
        await self.question.press("Enter")
        if wait:
            await self.settled()

    async def settled(self) -> None:
        """The turn that runs is over."""
        await expect(self.button("Send")).to_be_visible()
        await expect(self.page.locator("article[aria-busy]")).to_have_count(0)

    async def eval(self, script: str, argument: Any = None) -> Any:
        """What a piece of JavaScript gives in the page."""
        return await self.page.evaluate(script, argument)

    def _hear(self, message: ConsoleMessage) -> None:
        # That the server refused something, or could not be reached, is seen on the page.
        is_answer = "status of 4" in message.text or "net::ERR_" in message.text
        if message.type in ("error", "warning") and not is_answer:
            self.complaints.append(message.text)

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.elsewhere.append(request.url)


@asynccontextmanager
async def pages_of(browser: Browser) -> AsyncIterator[Opener]:
    """Opens pages, and closes them; at the end they must have nothing to complain of."""
    shown: list[Shown] = []
    contexts: list[BrowserContext] = []

    async def opened(url: str, path: str = "/", **options: Any) -> Shown:
        options.setdefault("viewport", {"width": 1280, "height": 800})
        context = await browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(BOUND)
        await context.add_init_script(_WATCH)
        page = Shown(await context.new_page(), url)
        shown.append(page)
        await page.page.goto(url + path)
        return page

    try:
        yield opened
        for one in shown:
            assert not one.complaints, one.complaints
            assert not one.elsewhere, one.elsewhere
    finally:
        for context in contexts:
            await context.close()


def whole(text: str) -> re.Pattern[str]:
    """Matches this text and nothing more."""
    return re.compile(f"^{re.escape(text)}$")
