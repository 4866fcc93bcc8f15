"""The console as a person has it before them: what is there, and what can be done."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urljoin

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from tests.serve.scenes import within

BOUND: Final = 20_000
"""Milliseconds after which a wait has failed, on the slowest machine."""

expect.set_options(timeout=BOUND)

_WATCH: Final = """
    addEventListener("securitypolicyviolation", (event) => {
        console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
"""

_SETTLED: Final = """() => new Promise((resolve) => {
    const isSo = () => !document.getElementById("send").hidden
        && !document.querySelector("article[aria-busy]");
    const look = () => {
        if (!isSo()) return;
        watch.disconnect();
        resolve();
    };
    const watch = new MutationObserver(look);
    watch.observe(document.body, { subtree: true, childList: true, attributes: true });
    look();
})"""

TWO_PICTURES: Final = (
    "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
)
"""After which the page has seen that something has grown."""

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
        # What was shown before goes on until this is there, and may ask its own server.
        self._known = (url, urljoin(page.url, "/"), "data:")
        self.elsewhere: list[str] = []
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": self._hear,
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"),
            "request": self._see,
        }
        for name, listener in self._listeners.items():
            page.on(name, listener)

    @property
    def question(self) -> Locator:
        """Where one writes."""
        return self.page.get_by_label("Your question")

    @property
    def key(self) -> Locator:
        """Where the key or the token is asked for."""
        return self.page.get_by_label("API key or token")

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

    async def sign_in(self, secret: str) -> None:
        """Gives a key or a token."""
        await self.key.fill(secret)
        await self.key.press("Enter")

    async def ask(self, text: str, *, wait: bool = True) -> None:
        """Asks something; by default until the turn is over."""
        await self.question.fill(text)
        await self.question.press("Enter")
        if wait:
            await self.settled()

    async def settled(self) -> None:
        """The turn that runs is over. The page says so itself; to be asked takes it longer."""
        await within(self.page.evaluate(_SETTLED))

    async def eval(self, script: str, argument: Any = None) -> Any:
        """What a piece of JavaScript gives in the page."""
        return await self.page.evaluate(script, argument)

    def check(self) -> None:
        """Listens no more; there may be nothing to complain of."""
        for name, listener in self._listeners.items():
            self.page.remove_listener(name, listener)
        assert not self.complaints, self.complaints
        assert not self.elsewhere, self.elsewhere

    def _hear(self, message: ConsoleMessage) -> None:
        # That the server refused something, or could not be reached, is seen on the page.
        is_answer = "status of 4" in message.text or "net::ERR_" in message.text
        if message.type in ("error", "warning") and not is_answer:
            self.complaints.append(message.text)

    def _see(self, request: Any) -> None:
        if not request.url.startswith(self._known):
            self.elsewhere.append(request.url)


async def desk_of(browser: Browser, **options: Any) -> Page:
    """A page in a window of its own."""
    options.setdefault("viewport", {"width": 1280, "height": 800})
    context = await browser.new_context(**options)
    context.set_default_timeout(BOUND)
    await context.add_init_script(_WATCH)
    return await context.new_page()


@asynccontextmanager
async def pages_of(browser: Browser, desk: Page) -> AsyncIterator[Opener]:
    """Opens pages, the first one on the desk if it is to be like that; at the end they must have
    nothing to complain of. With `clock` the time of the page is the test's."""
    shown: list[Shown] = []
    contexts: list[BrowserContext] = []

    async def opened(url: str, path: str = "/", *, clock: bool = False, **options: Any) -> Shown:
        page = desk
        if shown or clock or options:
            page = await desk_of(browser, **options)
            contexts.append(page.context)
        if clock:
            await page.clock.install()
        shown.append(Shown(page, url))
        await page.goto(url + path)
        return shown[-1]

    try:
        yield opened
        for one in shown:
            one.check()
    finally:
        for context in contexts:
            await context.close()
        await desk.unroute_all()
        await desk.evaluate("try { sessionStorage.clear() } catch {}")  # "about:blank" has none


def whole(text: str) -> re.Pattern[str]:
    """Matches this text and nothing more."""
    return re.compile(f"^{re.escape(text)}$")
