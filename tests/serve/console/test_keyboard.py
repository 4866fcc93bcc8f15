"""The console without a mouse: keys, where the focus goes, and what is read out."""

import pytest
from playwright.async_api import expect

from retinue.models.scripted import Say, call
from tests.serve.console.page import Opener
from tests.serve.console.scenes import Held, adviser, payer, saying
from tests.serve.console.test_frame import PHONE
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

_COMPOSED = """(node, [key, sign]) => {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...sign });
    return node.dispatchEvent(event);
}"""


@pytest.mark.parametrize("sign", [{"isComposing": True}, {"keyCode": 229}], ids=["most", "safari"])
async def test_a_key_that_picks_a_word_neither_sends_nor_stops(
    pages: Opener, sign: dict[str, object]
) -> None:
    held = Held(["にほん"], ["ご"])
    async with serving(held.agent()) as here:
        shown = await pages(here.url)
        await shown.question.fill("にほんご")
        assert await shown.question.evaluate(_COMPOSED, ["Enter", sign])
        await expect(shown.question).to_have_value("にほんご")
        await shown.ask("にほんご", wait=False)
        await expect(shown.answers).to_have_text(["にほん"])
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


async def test_a_drawer_keeps_the_focus_until_it_is_closed(pages: Opener) -> None:
    async with serving(adviser()) as here:
        shown = await pages(here.url, **PHONE)
        await shown.ask("Do I need an umbrella?")
        await shown.button("Turn and workers").click()
        side = shown.page.get_by_role("complementary", name="Turn and workers")
        await expect(side).to_be_focused()
        for _ in range(6):
            await shown.page.keyboard.press("Tab")
            assert not await shown.eval("!!document.activeElement.closest('main, .top')")
        await shown.page.set_viewport_size({"width": 1280, "height": 800})
        await shown.question.click()
        await expect(shown.question).to_be_focused()


async def test_what_is_unfolded_is_not_scrolled_away(pages: Opener) -> None:
    thoughts = "\n".join(f"Thought {number}" for number in range(100))
    async with serving(saying(Say(thinking=thoughts, text="Short."))) as here:
        shown = await pages(here.url)
        await shown.ask("Speak")
        fold = shown.turns.locator(".thinking summary")
        await fold.focus()
        await shown.page.keyboard.press("Enter")
        await expect(shown.turns.locator(".thoughts")).to_be_visible()
        # Two pictures later the page has seen that the turn has grown.
        await shown.eval(
            "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
        )
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
