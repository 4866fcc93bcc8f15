"""The console without a mouse: keys, where the focus goes, and what is read out."""

import pytest
from playwright.async_api import expect

from retinue.models.scripted import Say, call
from tests.serve.console.page import TWO_PICTURES, Opener
from tests.serve.console.scenes import Held, payer, saying
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

_COMPOSED = """(node, [key, sign]) => {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...sign });
    return node.dispatchEvent(event);
}"""


async def test_a_key_that_picks_a_word_neither_sends_nor_stops(pages: Opener) -> None:
    signs = [{"isComposing": True}, {"keyCode": 229}]  # of most browsers, and of Safari
    held = Held(["にほん"], ["ご"])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        await shown.question.fill("にほんご")
        for sign in signs:
            assert await shown.question.evaluate(_COMPOSED, ["Enter", sign])
        await expect(shown.question).to_have_value("にほんご")
        await shown.ask("にほんご", wait=False)
        await expect(shown.answers).to_have_text(["にほん"])
        for sign in signs:
            await shown.question.evaluate(_COMPOSED, ["Escape", sign])
        held.go.set()
        await shown.settled()
        await expect(shown.answers).to_have_text(["にほんご"])


async def test_the_focus_is_never_lost(pages: Opener) -> None:
    both = [call("pay", amount=5, to="Ann"), "It is done.", "one", "two"]
    async with serving(payer(*both)) as here:
        shown = await pages(here.url)
        keyboard = shown.page.keyboard
        await shown.ask("Pay Ann")
        await shown.button("Approve").focus()
        await keyboard.press("Enter")
        await expect(shown.answers).to_have_text(["It is done."])
        await expect(shown.turns.last).to_be_focused()

        await shown.question.fill("Another")
        await shown.button("Send").focus()
        await keyboard.press("Enter")
        await shown.settled()
        await expect(shown.button("Send")).to_be_focused()

        await shown.button("New").focus()
        await keyboard.press("Enter")
        await expect(shown.question).to_be_focused()
        await shown.ask("Another one")
        await expect(shown.conversations).to_have_count(2)
        remove = shown.button("Delete “Pay Ann”")
        await remove.focus()
        await keyboard.press("Enter")
        await keyboard.press("Enter")
        await expect(shown.conversations).to_have_count(1)
        await expect(shown.conversations.first).to_be_focused()


async def test_stop_is_reached_and_left_by_keyboard(pages: Opener) -> None:
    held = Held(["Half"], [])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        await shown.question.fill("Speak")
        await shown.button("Send").focus()
        await shown.page.keyboard.press("Enter")
        await expect(shown.button("Stop")).to_be_focused()
        await expect(shown.answers).to_have_text(["Half"])
        await shown.page.keyboard.press("Enter")
        await expect(shown.turns.locator(".status")).to_have_text("Cancelled")
        await expect(shown.button("Send")).to_be_focused()


async def test_what_is_unfolded_is_not_scrolled_away(pages: Opener) -> None:
    thoughts = "\n".join(f"Thought {number}" for number in range(100))
    async with serving(saying(Say(thinking=thoughts, text="Short."))) as here:
        shown = await pages(here.url)
        await shown.ask("Speak")
        fold = shown.turns.locator(".thinking summary")
        await fold.focus()
        await shown.page.keyboard.press("Enter")
        await expect(shown.turns.locator(".thoughts")).to_be_visible()
        await shown.eval(TWO_PICTURES)
        await expect(fold).to_be_in_viewport()


async def test_a_long_answer_is_read_out_once_and_not_word_by_word(pages: Opener) -> None:
    text = "word " * 200
    async with serving(saying(Say(text=[f"{word} " for word in text.split()]))) as here:
        shown = await pages(here.url)
        await shown.eval(
            """() => {
                window.said = [];
                const live = document.getElementById("said");
                new MutationObserver(() => window.said.push(live.textContent))
                    .observe(live, { childList: true, characterData: true, subtree: true });
            }"""
        )
        await shown.ask("Speak")
        await expect(shown.page.locator("#said")).to_contain_text("word word")
        assert await shown.eval("window.said.length") == 1
