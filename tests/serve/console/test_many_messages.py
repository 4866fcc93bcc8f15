"""A conversation of 5,000 messages."""

import asyncio

import pytest
from playwright.async_api import Route, expect

from retinue.messages import assistant, user
from retinue.stores import InMemory
from tests.serve.console.page import Opener
from tests.serve.console.scenes import saying
from tests.serve.scenes import within
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

_PRESS = """async () => {
    const box = document.getElementById("question");
    const times = [];
    for (let press = 0; press < 20; press += 1) {
        const begun = performance.now();
        box.value += "x";
        box.dispatchEvent(new Event("input"));
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        times.push(performance.now() - begun);
    }
    return times.sort((a, b) => a - b)[10];
}"""


# The end of the way up comes into sight again and again, as for one who scrolls.
_UP = """async () => {
    while (document.querySelector(".older")) {
        document.getElementById("scroller").scrollTop = 0;
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    }
}"""


async def test_five_thousand_messages_open_at_the_last_and_stay_light(pages: Opener) -> None:
    store = InMemory()
    for number in range(2_500):
        answer = f"Answer **{number}**:\n\n- one `a`\n- two\n\n```py\nx = {number}\n```"
        asked = [user(f"Question {number}"), assistant(answer)]
        await store.append("long", asked, turn=f"t-{number}")
    async with serving(saying("And one more.", store=store)) as here:
        shown = await pages(here.url, "/#long")
        await expect(shown.turns.last).to_contain_text("Answer 2499")
        assert await shown.turns.count() < 300

        await expect(shown.turns.last).to_be_in_viewport()
        await within(shown.eval(_UP), 60)
        await expect(shown.turns).to_have_count(2_500)
        await expect(shown.turns.first).to_contain_text("Question 0Answer 0")

        assert await shown.eval(_PRESS) < 150
        # By id: to find it by its label, Playwright looks at all 2,500 turns.
        await shown.page.fill("#question", "One more")
        await shown.page.press("#question", "Enter")
        await expect(shown.answers.last).to_have_text("And one more.")
        assert await shown.eval(_PRESS) < 150


async def test_reading_on_upwards_does_not_move_what_is_read(pages: Opener) -> None:
    store = InMemory()
    for number in range(400):
        asked = [user(f"Question {number}"), assistant(f"Answer {number}")]
        await store.append("long", asked, turn=f"t-{number}")
    async with serving(saying("x", store=store)) as here:
        shown = await pages(here.url, "/#long")
        await expect(shown.turns.last).to_contain_text("Answer 399")
        await expect(shown.turns.last).to_be_in_viewport()
        await shown.button("Earlier messages").focus()  # which scrolls there
        anchor = shown.turns.filter(has_text="Question 300")
        await expect(shown.turns).not_to_have_count(100)
        box = await anchor.bounding_box()
        assert box is not None
        assert 0 < box["y"] < 400
        await expect(shown.button("Earlier messages")).to_be_focused()


async def test_what_is_read_late_neither_comes_twice_nor_in_a_wrong_place(pages: Opener) -> None:
    store = InMemory()
    for number in range(150):
        asked = [user(f"Question {number}"), assistant(f"Answer {number}")]
        await store.append("long", asked, turn=f"t-{number}")
    is_asked, go = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        is_asked.set()
        await go.wait()
        await route.continue_()

    async with serving(saying("Answer 151", store=store)) as here:
        shown = await pages(here.url, "/#long")
        await expect(shown.turns).to_have_count(100)
        await expect(shown.conversations).to_have_count(1)
        await shown.page.route("**/messages?*before=*", hold)
        await shown.eval("document.getElementById('scroller').scrollTop = 0")
        await within(is_asked.wait())
        # Somebody comes back to the page, and finds that it was written elsewhere.
        await store.append("long", [user("Question 150"), assistant("Answer 150")], turn="t-150")
        await shown.eval("dispatchEvent(new Event('focus'))")
        await expect(shown.turns.last).to_contain_text("Answer 150")
        async with shown.page.expect_response("**/messages?*before=*"):
            go.set()
        await expect(shown.button("Earlier messages")).to_be_visible()
        await shown.eval(_UP)
        numbers = "(turns) => turns.map((turn) => parseInt(turn.textContent.slice(9)))"
        assert await shown.turns.evaluate_all(numbers) == [*range(151)]

        go.clear()
        await shown.page.route("**/messages?*", hold)
        await shown.button("New").click()
        await shown.conversations.click()
        await shown.ask("Question 151")
        await expect(shown.turns).to_have_count(1)
        go.set()
        await expect(shown.turns).to_have_count(100)
        assert await shown.turns.evaluate_all(numbers) == [*range(52, 152)]
