"""The console on a phone, by keyboard, in light and dark, in scripts of all directions."""

import pytest
from playwright.async_api import expect

from retinue.models.scripted import Say, call
from tests.serve.console.page import Opener, Shown
from tests.serve.console.scenes import adviser, payer, saying
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}

AWKWARD = f"""{"unbreakable" * 40}

```text
{"wide " * 80}
```

| {" | ".join(f"column {n}" for n in range(12))} |
|{"---|" * 12}
| {" | ".join("x" for _ in range(12))} |

{"長い文章" * 60}

https://example.org/{"path/" * 60}
"""


async def test_nothing_is_wider_than_a_phone(pages: Opener) -> None:
    script = [call("pay", amount=5, to="x" * 300), Say(thinking="y" * 300, text=AWKWARD)]
    async with serving(payer(*script)) as here:
        shown = await pages(here.url, **PHONE)
        width = "Math.max(...[document.documentElement, document.getElementById('scroller')].map("
        width += "(node) => node.scrollWidth - node.clientWidth))"
        assert await shown.eval(width) == 0
        await shown.ask("z" * 300)
        await shown.button("Edit…").click()
        assert await shown.eval(width) == 0
        await shown.button("Approve with these arguments").click()
        await expect(shown.answers).to_contain_text("unbreakable")
        await shown.page.locator(".call summary").click()
        await shown.page.locator(".thinking summary").click()
        assert await shown.eval(width) == 0


async def test_on_a_phone_the_sides_are_drawers_that_keep_the_focus(pages: Opener) -> None:
    async with serving(adviser()) as here:
        shown = await pages(here.url, **PHONE)
        await shown.ask("Do I need an umbrella?")
        side = shown.page.get_by_role("navigation", name="Conversations")
        await expect(side).to_be_hidden()
        await shown.button("Conversations").click()
        await expect(side).to_be_visible()
        await expect(shown.button("Conversations")).to_have_attribute("aria-expanded", "true")
        await shown.page.keyboard.press("Escape")
        await expect(side).to_be_hidden()
        await expect(shown.button("Conversations")).to_be_focused()
        await shown.turns.last.locator(".figures").click()
        await expect(shown.page.get_by_role("group", name="The onion of adviser")).to_be_visible()
        side = shown.page.get_by_role("complementary", name="Turn and workers")
        await expect(side).to_be_focused()
        for _ in range(6):
            await shown.page.keyboard.press("Tab")
            assert not await shown.eval("!!document.activeElement.closest('main, .top')")
        await shown.page.set_viewport_size({"width": 1280, "height": 800})
        await shown.question.click()
        await expect(shown.question).to_be_focused()


async def test_a_conversation_needs_no_mouse(pages: Opener) -> None:
    async with serving(payer()) as here:
        shown = await pages(here.url)
        await expect(shown.conversations).to_have_count(0)
        keyboard = shown.page.keyboard
        await keyboard.press("/")
        await expect(shown.question).to_be_focused()
        await keyboard.type("Pay Ann")
        await keyboard.press("Shift+Enter")
        await keyboard.type("five.")
        assert await shown.question.input_value() == "Pay Ann\nfive."
        await keyboard.press("Enter")
        await expect(shown.button("Approve")).to_be_visible()
        await expect(shown.page.locator("#said")).to_have_text("The turn waits for you: pay.")
        for _ in range(12):
            await keyboard.press("Shift+Tab")
            if await shown.button("Edit…").evaluate("(node) => node === document.activeElement"):
                break
        await keyboard.press("Enter")
        await keyboard.press("Control+A")
        await keyboard.type('{"amount": 3, "to": "Ann"}')
        await keyboard.press("Escape")
        await expect(shown.button("Edit…")).to_be_focused()
        await keyboard.press("Enter")
        await keyboard.press("Control+A")
        await keyboard.type('{"amount": 3, "to": "Ann"}')
        await keyboard.press("Control+Enter")
        await expect(shown.answers).to_have_text(["It is done."])
        await expect(shown.page.get_by_label("Result")).to_have_text("paid 3 to Ann")
        await expect(shown.page.locator("#said")).to_have_text("It is done.")


async def test_every_control_has_a_name_and_is_reached_by_tab(pages: Opener) -> None:
    async with serving(adviser()) as here:
        shown = await pages(here.url)
        await shown.ask("Do I need an umbrella?")
        nameless = await shown.eval(
            """() => [...document.querySelectorAll("button, a, input, textarea, select")]
                .filter((node) => node.checkVisibility() && !node.ariaLabel
                    && !node.textContent.trim() && !node.labels?.length && !node.title)
                .map((node) => node.outerHTML)"""
        )
        assert nameless == []
        reached: list[str] = []
        await shown.page.reload()
        await expect(shown.answers).to_have_count(2)
        for _ in range(30):
            await shown.page.keyboard.press("Tab")
            reached.append(
                await shown.eval(
                    "document.activeElement.id || document.activeElement.ariaLabel"
                    " || document.activeElement.textContent"
                )
            )
        assert reached[0] == "skip"
        in_order = ["new", "Copy the answer", "Fork here", "Roll back to here", "question", "send"]
        assert [name for name in reached if name in in_order][: len(in_order)] == in_order


_CONTRAST = """() => {
    const light = (colour) => {
        const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
            .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const ground = (node) => {
        for (; node; node = node.parentElement) {
            const colour = getComputedStyle(node).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)" && !colour.startsWith("color(")) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const weak = [];
    for (const node of document.querySelectorAll("body *")) {
        const words = [...node.childNodes].filter((one) => one.nodeType === 3 && one.data.trim());
        if (!words.length || !node.checkVisibility({ opacityProperty: true })) continue;
        if (node.closest(".unseen, .skip")) continue;
        const [a, b] = [light(getComputedStyle(node).color), light(ground(node))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) weak.push(`${words[0].data.trim()} (${ratio.toFixed(2)})`);
    }
    return weak;
}"""


async def _weak(shown: Shown) -> list[str]:
    """The words that are hard to read, in the dark and in the light."""
    found: list[str] = []
    for scheme in ("dark", "light"):
        await shown.page.emulate_media(color_scheme=scheme)
        ground = await shown.eval("getComputedStyle(document.body).backgroundColor")
        is_dark = sum(map(int, ground.strip("rgb()").split(","))) < 300
        assert is_dark == (scheme == "dark")
        found += await shown.eval(_CONTRAST)
    return found


async def test_all_words_stand_out_from_their_ground(pages: Opener) -> None:
    said = "# Head\n\n> quoted `code` [link](https://example.org)\n\n```py\nx = 1\n```"
    script = [call("pay", amount=5, to="Ann"), said, RuntimeError("no")]
    async with serving(payer(*script)) as here:
        shown = await pages(here.url)
        assert await _weak(shown) == []
        await shown.ask("Pay Ann five.")
        await expect(shown.button("Approve")).to_be_visible()
        assert await _weak(shown) == []
        await shown.button("Approve").click()
        await expect(shown.answers).to_have_count(1)
        await shown.settled()
        await shown.ask("Fail")
        assert await _weak(shown) == []


async def test_scripts_run_in_their_own_direction(pages: Opener) -> None:
    said = "שלום **עולם**\n\nHello\n\n1. مرحبا\n\n```\ncode\n```"
    async with serving(saying(said)) as here:
        shown = await pages(here.url)
        await shown.ask("שלום")
        direction = "(nodes) => nodes.map((node) => getComputedStyle(node).direction)"
        assert await shown.answers.locator("p").evaluate_all(direction) == ["rtl", "ltr"]
        assert await shown.answers.locator("li").evaluate_all(direction) == ["rtl"]
        assert await shown.answers.locator("pre").evaluate_all(direction) == ["ltr"]
        assert await shown.turns.locator(".bubble div").evaluate_all(direction) == ["rtl"]
        await expect(shown.answers.locator("strong")).to_have_text("עולם")


async def test_a_reader_goes_where_he_likes_while_the_model_writes(pages: Opener) -> None:
    text = "\n\n".join(f"Paragraph {number}." for number in range(80))
    async with serving(
        saying(Say(text=[f"{word} " for word in text.split(" ")], delay=0.005))
    ) as here:
        shown = await pages(here.url)
        await shown.ask("Speak", wait=False)
        await expect(shown.answers).to_contain_text("Paragraph 40")
        at_end = "document.getElementById('scroller')"
        at_end = f"{at_end}.scrollHeight - {at_end}.scrollTop - {at_end}.clientHeight"
        assert await shown.eval(at_end) < 100
        await shown.page.locator("#scroller").hover()
        await shown.page.mouse.wheel(0, -3000)
        await expect(shown.button("Latest")).to_be_visible()
        await shown.settled()
        assert await shown.eval(at_end) > 500
        await shown.button("Latest").click()
        await expect(shown.button("Latest")).to_be_hidden()
        assert await shown.eval(at_end) < 100
