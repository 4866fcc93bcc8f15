"""Connections that break, servers that go and come back, keys that run out, and other tabs."""

from functools import partial

import pytest
from playwright.async_api import Route, expect

from retinue import Agent
from retinue.models.scripted import Scripted
from retinue.serve import app
from retinue.serve.bounds import Bounds
from retinue.stores import InMemory
from tests.serve.console.page import TWO_PICTURES, Opener
from tests.serve.console.scenes import Held, saying
from tests.serve.scenes import within
from tests.serve.serving import keys, listening, serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_connection_on_which_nothing_comes_any_more_is_made_again(pages: Opener) -> None:
    held = Held(["One. "], ["Two."])
    async with serving(held.agent()) as here:
        shown = await pages(here.url, clock=True)
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_have_text(["One."])
        async with shown.page.expect_request("**/events"):
            await shown.page.clock.fast_forward(41_000)
        held.go.set()
        await expect(shown.answers).to_have_text(["One. Two."])
        await shown.settled()


async def test_a_question_that_is_asked_while_the_server_is_away_arrives_later(
    pages: Opener,
) -> None:
    store = InMemory()
    async with serving(saying("one", store=store)) as here:
        shown = await pages(here.url)
        await shown.ask("first")
        port = int(here.url.rpartition(":")[2])
    await shown.ask("second", wait=False)
    await expect(shown.page.get_by_text("The connection is lost")).to_be_visible()
    made = app(saying("two", store=store))
    async with listening(made, made.state.gateway, port=port):
        await expect(shown.answers).to_have_text(["one", "two"])
        await shown.settled()
        await expect(shown.page.get_by_text("The connection is lost")).to_be_hidden()


async def test_a_question_that_cannot_be_sent_can_be_stopped(pages: Opener) -> None:
    async with serving(saying("one")) as here:
        shown = await pages(here.url)
        await expect(shown.page.locator(".workers")).to_be_visible()
    await shown.ask("first", wait=False)
    await expect(shown.page.get_by_text("The connection is lost")).to_be_visible()
    await shown.page.keyboard.press("Escape")
    await shown.settled()
    await expect(shown.turns.locator("footer")).to_contain_text("It may not have arrived")
    await expect(shown.question).to_have_value("first")
    await shown.question.press("Enter")
    await expect(shown.page.get_by_text("The connection is lost")).to_be_visible()
    await shown.button("New").click()
    await expect(shown.page.get_by_text("The connection is lost")).to_be_hidden()


async def _refuse(status: int, route: Route) -> None:
    fault = {"error": {"code": "refused", "message": "The key lacks it."}}
    await route.fulfill(status=status, json=fault)


async def test_a_turn_that_cannot_be_read_to_its_end_says_why(pages: Opener) -> None:
    held = Held(["Half"], [])
    async with serving(Agent(held, name="speaker")) as here:
        shown = await pages(here.url)
        for status, reason in ((404, "knows nothing of this turn"), (403, "The key lacks it.")):
            await shown.page.route("**/events", partial(_refuse, status))
            await shown.ask("Speak", wait=False)
            await expect(shown.answers.last).to_have_text("Half")
            here.cut()
            await expect(shown.turns.last.locator("footer")).to_contain_text(reason)
            await expect(shown.answers.last).to_have_text("Half")
            await expect(shown.button("Send")).to_be_visible()
        held.go.set()


_ASK_WITH_OLD_KEY = """(isRunning) => {
    sessionStorage["retinue.key"] = "rk-old";
    if (isRunning) return;
    document.getElementById("question").value = "Speak";
    document.getElementById("composer").requestSubmit();
}"""


async def test_a_key_that_runs_out_is_asked_for_and_nothing_is_lost(pages: Opener) -> None:
    access, secrets = keys("ann", scopes=("conversations", "turns", "metrics"))
    held = Held(["One. "], ["Two."])
    async with serving(held.agent(), access=access) as here:
        shown = await pages(here.url)
        await shown.sign_in(secrets["ann"])
        await expect(shown.page.locator("#agent-name")).to_have_text("speaker")

        for is_running in (False, True):
            # At once, for the page asks for the load meanwhile.
            await shown.eval(_ASK_WITH_OLD_KEY, is_running)
            if is_running:
                here.cut()
            await expect(shown.page.get_by_role("alert")).to_contain_text("is not known")
            await shown.sign_in(secrets["ann"])
            await expect(shown.answers).to_have_text(["One."])
        held.go.set()
        await expect(shown.answers).to_have_text(["One. Two."])
        await shown.settled()
        await expect(shown.turns).to_have_count(1)


async def test_who_signs_out_leaves_nothing_for_the_next_one(pages: Opener) -> None:
    access, secrets = keys("ann")
    held = Held(["One."], [])
    async with serving(held.agent(), access=access) as here:
        shown = await pages(here.url)
        await shown.sign_in(secrets["ann"])
        await shown.ask("My secret", wait=False)
        await expect(shown.answers).to_have_text(["One."])
        await shown.button("Sign out").click()
        await expect(shown.key).to_be_visible()
        assert await shown.eval("sessionStorage.length") == 0
        held.go.set()


async def test_a_key_without_conversations_still_finds_its_turn_after_a_reload(
    pages: Opener,
) -> None:
    access, secrets = keys("ann", scopes=("turns",))
    held = Held(["One. "], ["Two."])
    async with serving(held.agent(), access=access) as here:
        shown = await pages(here.url)
        await shown.sign_in(secrets["ann"])
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_have_text(["One."])
        await shown.page.reload()
        await expect(shown.answers).to_have_text(["One."])
        held.go.set()
        await expect(shown.answers).to_have_text(["One. Two."])
        await expect(shown.page.locator("#tree")).to_contain_text("no scope “conversations”")


async def test_a_conversation_that_is_slow_to_open_does_not_take_the_place_of_another(
    pages: Opener,
) -> None:
    async with serving(saying("one", "two", "three")) as here:
        shown = await pages(here.url, clock=True)
        await shown.ask("first")
        first = shown.page.url.partition("#")[2]
        await shown.button("New").click()
        await shown.ask("second")
        await expect(shown.conversations).to_have_count(2)

        async def fail(route: Route) -> None:
            await route.abort()

        await shown.page.route(f"**/{first}*", fail)
        await shown.page.locator(f"a[data-conversation='{first}']").click()
        await expect(shown.page.get_by_text("cannot be reached")).to_be_visible()
        await shown.conversations.filter(has_text="second").click()
        await expect(shown.answers).to_have_text(["two"])
        await shown.page.unroute(f"**/{first}*")
        await shown.page.clock.fast_forward(5_000)
        await shown.ask("third")
        await expect(shown.answers).to_have_text(["two", "three"])
        await shown.page.go_back()
        await expect(shown.answers).to_have_text(["one"])
        await shown.page.go_forward()
        await expect(shown.answers).to_have_text(["two", "three"])


async def test_what_another_tab_said_is_there_when_somebody_comes_back(pages: Opener) -> None:
    async with serving(saying("one", "two")) as here:
        shown = await pages(here.url)
        await shown.ask("first")
        await expect(shown.conversations).to_have_count(1)
        body = {"input": "second", "conversation": shown.page.url.partition("#")[2]}
        assert (await here.json("POST", "/v1/turns", body))[0] == 200
        await shown.eval("dispatchEvent(new Event('focus'))")
        await expect(shown.answers).to_have_text(["one", "two"])


async def test_a_question_that_is_refused_can_be_asked_again(pages: Opener) -> None:
    text = "x" * 3_000
    async with serving(saying("one"), bounds=Bounds(body_bytes=2_000)) as here:
        shown = await pages(here.url)
        await shown.eval("text => document.getElementById('question').value = text", text)
        await shown.question.press("Enter")
        await expect(shown.turns.locator("footer")).to_contain_text("Failed")
        assert await shown.question.input_value() == text
        await shown.ask("shorter")
        await expect(shown.answers).to_have_text(["one"])


async def test_a_long_question_is_folded_and_kept_whole(pages: Opener) -> None:
    text = "word " * 100_000
    async with serving(Agent(Scripted("one"), name="speaker")) as here:
        shown = await pages(here.url)
        await shown.eval("text => document.getElementById('question').value = text", text)
        await within(shown.question.press("Enter"))
        await expect(shown.answers).to_have_text(["one"])
        bubble = shown.turns.locator(".bubble")
        assert len(await bubble.inner_text()) < 3_000
        place = "document.getElementById('scroller').scrollTop"
        before = await shown.eval(place)
        await shown.button("Show all (500K characters)").press("Enter")
        assert len(await bubble.inner_text()) == len(text.strip())
        await expect(shown.turns).to_be_focused()
        await shown.eval(TWO_PICTURES)
        assert await shown.eval(place) == before


async def test_a_question_is_asked_also_where_the_browser_keeps_no_more(pages: Opener) -> None:
    access, secrets = keys("ann")
    async with serving(saying("one"), access=access) as here:
        shown = await pages(here.url)
        await shown.eval(
            """() => {
                sessionStorage["retinue.key"] = "rk-old";
                for (let size = 2 ** 23; size >= 1; size /= 2) {
                    try {
                        sessionStorage[size] = "x".repeat(size);
                    } catch {}
                }
            }"""
        )
        await shown.sign_in(secrets["ann"])
        await shown.ask("Hello")
        await expect(shown.answers).to_have_text(["one"])
        await shown.page.reload()
        await expect(shown.key).to_be_visible()
        # What could not be overwritten is not taken up again.
        await expect(shown.page.locator("#sign-in-complaint")).to_be_empty()
