"""A conversation in the console, as a person has it."""

import pytest
from playwright.async_api import expect

from retinue.stores import InMemory
from tests.serve.console.page import Opener
from tests.serve.console.scenes import adviser, saying
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_whole_conversation_shows_what_happened_also_after_a_reload(pages: Opener) -> None:
    async with serving(adviser()) as here:
        shown = await pages(here.url)
        await expect(shown.page.get_by_role("heading", name="adviser", exact=True)).to_be_visible()
        await shown.ask("Do I need an umbrella?")
        turn = shown.turns.last
        await expect(turn.locator(".bubble")).to_have_text("Do I need an umbrella?")
        await expect(shown.answers).to_have_text(["Let me look.", "It will rain in Oslo."])
        await expect(turn.locator(".prose strong")).to_have_text("rain")

        thoughts = turn.get_by_text("Oslo is meant, the one in Norway.")
        await expect(thoughts).to_be_hidden()
        await turn.locator("summary", has_text="Thought").click()
        await expect(thoughts).to_be_visible()

        call = turn.locator(".call")
        await expect(call.locator("summary")).to_contain_text('weathercity: "Oslo"')
        await expect(call.locator("summary .time")).to_contain_text("s")
        await call.locator("summary").click()
        await expect(call.get_by_label("Arguments")).to_contain_text('"city": "Oslo"')
        await expect(call.get_by_label("Result")).to_contain_text('"sky": "rain"')

        await shown.page.reload()
        await expect(shown.answers).to_have_text(["Let me look.", "It will rain in Oslo."])
        await expect(shown.turns.locator(".bubble")).to_have_text("Do I need an umbrella?")
        await expect(call.locator("summary")).to_contain_text("weather")

        await shown.ask("Thank you")
        await expect(shown.answers.last).to_have_text("You are welcome.")
        await expect(shown.turns).to_have_count(2)
        await expect(shown.conversations).to_have_count(1)
        await expect(shown.conversations).to_contain_text("Do I need an umbrella?")


async def test_the_side_shows_layers_rounds_and_workers(pages: Opener) -> None:
    async with serving(adviser(), capacity=7) as here:
        shown = await pages(here.url)
        await expect(shown.page.locator(".workers")).to_contain_text("This server0 of 7")
        onion = shown.page.get_by_role("group", name="The onion of adviser")
        await expect(onion.locator(".of-turn .name").first).to_have_text("Guard")
        await expect(onion.locator(".layer .time")).to_have_count(0)
        await shown.ask("Do I need an umbrella?")
        guard = onion.locator(".layer", has=shown.page.get_by_text("Guard", exact=True))
        await expect(guard.locator(".time")).to_contain_text("s")
        model = onion.locator(".core .layer", has_text="gpt-5-mini")
        await expect(model).to_contain_text("\N{MULTIPLICATION SIGN}2")
        await expect(
            onion.locator(".core .layer", has_text="weather").locator(".time")
        ).to_be_visible()
        nested = onion.locator(".of-turn .of-turn .of-chat .core")
        await expect(nested).to_contain_text("gpt-5-mini")

        rows = shown.page.locator(".account tr")
        await expect(rows).to_have_count(4)
        cells = [await rows.nth(at).locator("th, td").all_inner_texts() for at in range(4)]
        assert cells[0] == ["Round", "In", "Out", "Cost"]
        assert [row[:3] for row in cells[1:]] == [
            ["1", "1,200", "80"],
            ["2", "1,200", "80"],
            ["Turn", "2,400", "160"],
        ]
        assert all(row[3].startswith("$0.00") for row in cells[1:])
        await expect(shown.turns.last.locator(".figures")).to_contain_text(
            "2,400 in · 160 out · $0.00"
        )


async def test_a_failed_turn_says_why_and_the_next_one_can_be_asked(pages: Opener) -> None:
    async with serving(saying(RuntimeError("secret of the server"), "Better.")) as here:
        shown = await pages(here.url)
        await shown.ask("Hello")
        foot = shown.turns.last.locator("footer")
        await expect(foot).to_contain_text("Failed")
        await expect(foot).to_contain_text("The server failed; its log says why.")
        await expect(shown.page.get_by_text("secret of the server")).to_have_count(0)
        await shown.ask("Again")
        await expect(shown.answers.last).to_have_text("Better.")


async def test_forks_and_rollbacks_are_a_click_away(pages: Opener) -> None:
    async with serving(saying("one", "two", "three", store=InMemory())) as here:
        shown = await pages(here.url)
        for text in ("first", "second"):
            await shown.ask(text)
        await shown.button("Fork here", shown.turns.first).click()
        await expect(shown.conversations).to_have_count(2)
        await expect(shown.turns).to_have_count(1)
        await expect(shown.page.locator(".tree li li a")).to_have_attribute("aria-current", "page")
        await expect(shown.turns).to_be_focused()
        await shown.ask("third")
        await expect(shown.answers).to_have_text(["one", "three"])

        await shown.page.locator(".tree > ul > li > .item a").click()
        await expect(shown.answers).to_have_text(["one", "two"])
        await shown.button("Roll back to here", shown.turns.first).click()
        await expect(shown.page.get_by_role("dialog")).to_contain_text("1 turn after this one")
        await shown.button("Roll back").click()
        await expect(shown.answers).to_have_text(["one"])
        await expect(shown.turns).to_be_focused()


async def test_a_conversation_is_deleted_when_that_is_meant(pages: Opener) -> None:
    async with serving(saying("one", "two")) as here:
        shown = await pages(here.url)
        await shown.ask("Hello")
        await shown.conversations.hover()
        await shown.button("Delete “Hello”").click()
        await shown.button("Leave it").click()
        await expect(shown.conversations).to_have_count(1)
        await shown.button("Delete “Hello”").click()
        await shown.button("Delete").click()
        await expect(shown.conversations).to_have_count(0)
        await expect(shown.turns).to_have_count(0)


async def test_several_agents_can_be_chosen_from(pages: Opener) -> None:
    async with serving({"left": saying("from left"), "right": saying("from right")}) as here:
        shown = await pages(here.url)
        await shown.page.get_by_label("Agent", exact=True).select_option("right")
        await shown.ask("Who are you?")
        await expect(shown.answers).to_have_text(["from right"])
