"""Turns that are cancelled, reloaded and cut off while they stream: nothing is lost."""

import pytest
from playwright.async_api import expect

from retinue.serve.keeping import Keeping
from tests.serve.console.page import Opener
from tests.serve.console.scenes import Held
from tests.serve.scenes import BOUND, within
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORDS = [f"word{number} " for number in range(400)]


@pytest.mark.rule("R-LOOP-8")
async def test_stop_and_escape_reach_the_model_and_keep_what_had_come(pages: Opener) -> None:
    held = Held(["Half of ", "it"], ["never"])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        for stop in (shown.button("Stop").click, lambda: shown.page.keyboard.press("Escape")):
            held.stopped.clear()
            await shown.ask("Speak", wait=False)
            await expect(shown.answers.last).to_have_text("Half of it")
            await stop()
            await within(held.stopped.wait())
            await expect(shown.turns.last.locator(".status")).to_have_text("Cancelled")
            await expect(shown.answers.last).to_have_text("Half of it")
            await expect(shown.button("Send")).to_be_visible()
            await shown.button("New").click()


@pytest.mark.parametrize("kept", [1024, 20], ids=["all-is-kept", "only-the-last-is-kept"])
async def test_a_reload_in_the_middle_of_a_stream_loses_nothing(pages: Opener, kept: int) -> None:
    held = Held(WORDS[:200], WORDS[200:])
    async with serving(held.agent(), keeping=Keeping(events=kept)) as here:
        shown = await pages(here.url)
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_contain_text("word199")
        await shown.page.reload()
        await expect(shown.answers).to_have_text(["".join(WORDS[:200]).strip()])
        await expect(shown.turns.locator(".bubble")).to_have_text("Speak")
        held.go.set()
        await shown.settled()
        await expect(shown.answers).to_have_text(["".join(WORDS).strip()])
        await expect(shown.turns).to_have_count(1)


async def test_a_turn_that_ends_while_the_page_is_away_is_there_afterwards(pages: Opener) -> None:
    held = Held(["One. "], ["Two."])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_have_text(["One."])
        url = shown.page.url
        await shown.page.goto("about:blank")
        held.go.set()
        await within(here.gateway.drain(BOUND))
        await shown.page.goto(url)
        await expect(shown.answers).to_have_text(["One. Two."])
        await shown.settled()
        await expect(shown.turns).to_have_count(1)


async def test_a_connection_that_breaks_is_made_again_and_the_stream_goes_on(pages: Opener) -> None:
    held = Held(WORDS[:200], WORDS[200:])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_contain_text("word199")
        here.cut()
        held.go.set()
        await shown.settled()
        await expect(shown.answers).to_have_text(["".join(WORDS).strip()])


async def test_a_turn_that_somebody_else_began_can_be_watched(pages: Opener) -> None:
    held = Held(["One. "], ["Two."])
    async with serving(held.agent()) as here:
        body = {"input": "Speak", "conversation": "c-1", "stream": True}
        async with here.stream("/v1/turns", body):
            await within(held.said.wait())
            shown = await pages(here.url, "/#c-1")
            await expect(shown.answers).to_have_text(["One."])
            held.go.set()
            await expect(shown.answers).to_have_text(["One. Two."])
            await shown.settled()


async def test_another_conversation_can_be_opened_while_a_turn_runs(pages: Opener) -> None:
    held = Held(["One. "], ["Two."])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_have_text(["One."])
        url = shown.page.url
        await shown.button("New").click()
        await expect(shown.turns).to_have_count(0)
        await expect(shown.button("Send")).to_be_visible()
        held.go.set()
        await shown.page.go_back()
        assert shown.page.url == url
        await expect(shown.answers).to_have_text(["One. Two."])
