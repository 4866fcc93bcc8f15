"""What the console never does: trust the model, or let anybody in whom the server does not know."""

from typing import Any

import pytest
from playwright.async_api import expect

from retinue.models.scripted import Say, call
from tests.serve.console.page import Opener
from tests.serve.console.scenes import adviser, payer, saying
from tests.serve.serving import keys, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

EVIL = (
    "<script>document.title = 'owned'</script>"
    '<img src="http://127.0.0.1:9/x" onerror="document.title = \'owned\'">'
    "<iframe srcdoc='<script>parent.document.title = 1</script>'></iframe>"
    "<svg onload=\"document.title = 'owned'\"></svg>"
)


async def test_markup_stays_text_wherever_it_stands(pages: Opener) -> None:
    said = Say(thinking=EVIL, text=[*EVIL])
    async with serving(payer(call("pay", amount=5, to=EVIL), said)) as here:
        shown = await pages(here.url)
        await shown.ask(EVIL)
        await shown.button("Approve").click()
        for _ in range(2):
            await expect(shown.answers).to_have_text([EVIL])
            await expect(shown.turns.locator(".bubble")).to_have_text(EVIL)
            await expect(shown.page.get_by_label("Result")).to_have_text(f"paid 5 to {EVIL}")
            await expect(shown.turns.locator(".thoughts")).to_have_text(EVIL)
            await expect(shown.conversations).to_contain_text("<script>")
            assert await shown.page.title() == "payer · retinue"
            assert await shown.page.locator("main img:not([alt='']), main iframe").count() == 0
            assert await shown.turns.locator("script, img, iframe, .prose svg").count() == 0
            await shown.page.reload()


async def test_links_lead_only_to_the_web_and_pictures_are_not_fetched(pages: Opener) -> None:
    said = (
        "[a](javascript:alert(1)) [b](data:text/html,x) [c](https://example.org/c) "
        "![d](https://example.org/leak?secret=1) [e](JaVaScRiPt:alert(1)) [f](/relative) "
        "<javascript:alert(1)>"
    )
    async with serving(saying(said)) as here:
        shown = await pages(here.url)
        await shown.ask("Hello")
        links = shown.answers.locator("a")
        assert await links.evaluate_all("links => links.map((link) => link.href)") == [
            "https://example.org/c",
            "https://example.org/leak?secret=1",
        ]
        for at in range(2):
            await expect(links.nth(at)).to_have_attribute("rel", "noopener noreferrer nofollow")
        assert await shown.answers.locator("img").count() == 0


async def test_the_policy_forbids_what_the_page_does_not_need(pages: Opener) -> None:
    async with serving(adviser()) as here:
        async with here.client.get("/") as response:
            policy = response.headers["content-security-policy"].split("; ")
            assert response.headers["x-content-type-options"] == "nosniff"
        assert policy[:5] == [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
        ]
        assert "frame-ancestors 'none'" in policy
        shown = await pages(here.url)
        await expect(shown.question).to_be_visible()
        told = await shown.eval(
            """() => {
                try {
                    document.body.innerHTML = "<p>";
                    return "taken";
                } catch (error) {
                    return error.name;
                }
            }"""
        )
        assert told == "TypeError"
        assert "trusted" in shown.complaints.pop().lower()
        await shown.eval("new Promise((resolve) => setTimeout(resolve))")  # the event beside it
        assert shown.complaints.pop().startswith("policy: require-trusted-types-for")


async def test_assets_are_sent_once_and_nothing_lies_beside_them() -> None:
    async with serving(adviser()) as here:
        async with here.client.get("/console/console.js") as response:
            assert response.headers["content-type"] == "text/javascript; charset=utf-8"
            mark = response.headers["etag"]
        for known in (mark, f"W/{mark}", f'"other", {mark}'):
            headers = {"if-none-match": known}
            async with here.client.get("/console/console.js", headers=headers) as again:
                assert again.status == 304
        for path in ("/console/", "/console/..%2Fgateway.py", "/console/console.py", "/console/x"):
            assert (await here.json("GET", path))[0] == 404


async def test_a_server_can_do_without_the_console() -> None:
    async with serving(adviser(), console=False) as here:
        assert (await here.json("GET", "/"))[0] == 404


async def test_a_key_is_asked_for_kept_in_the_tab_and_sent_along(pages: Opener) -> None:
    access, secrets = keys("ann", "bob")
    async with serving(saying("one", "two"), access=access) as here:
        shown = await pages(here.url)
        dialog = shown.page.get_by_role("dialog", name="Sign in")
        await expect(dialog).to_be_visible()
        await expect(shown.key).to_be_focused()
        for wrong, why in (
            ("Bearer schlüssel", "neither a key nor a token"),
            ("rk-wrong", "is not known"),
        ):
            await shown.sign_in(wrong)
            await expect(dialog.get_by_role("alert")).to_contain_text(why)
        for _ in range(2):
            await shown.key.press("Escape")
        await expect(dialog).to_be_visible()
        await shown.sign_in(secrets["ann"])
        await shown.ask("Hello")
        await expect(shown.answers).to_have_text(["one"])
        kept = await shown.eval(
            "[sessionStorage['retinue.key'], localStorage.length, document.cookie]"
        )
        assert kept == [secrets["ann"], 0, ""]
        await expect(shown.page.locator("#workers")).to_contain_text("no scope “metrics”")
        await shown.page.reload()
        await expect(shown.answers).to_have_text(["one"])

        conversation = shown.page.url.partition("#")[2]
        await shown.button("Sign out").click()
        await shown.sign_in(secrets["bob"])
        await expect(shown.conversations).to_have_count(0)
        await expect(shown.turns).to_have_count(0)
        assert conversation in shown.page.url


async def test_the_console_works_where_the_app_is_mounted(pages: Opener) -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    from retinue.serve import app
    from tests.serve.serving import listening

    made: Any = app(saying("one"))
    outer = Starlette(routes=[Mount("/agents", made)])
    async with listening(outer, made.state.gateway) as here:
        shown = await pages(here.url, "/agents/")
        await shown.ask("Hello")
        await expect(shown.answers).to_have_text(["one"])
        assert "/agents/#" in shown.page.url
