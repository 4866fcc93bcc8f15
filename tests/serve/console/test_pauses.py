"""Turns that wait for the person before the console."""

import pytest
from playwright.async_api import expect

from retinue import Agent
from retinue.advisors import Memory
from retinue.errors import ToolError
from retinue.models.scripted import Scripted, call
from retinue.stores import InMemory
from retinue.tools import ask_user, tool
from tests.serve.console.page import Opener
from tests.serve.console.scenes import payer
from tests.serve.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.rule("R-HITL-3")
async def test_a_call_is_approved_with_other_arguments(pages: Opener) -> None:
    async with serving(payer()) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann five.")
        pause = shown.turns.get_by_role("region", name="1 call waiting for an answer")
        await expect(pause).to_contain_text("This call needs approval.")
        await shown.button("Edit…", pause).click()
        box = pause.get_by_label("The arguments, as a JSON object")
        await expect(box).to_be_focused()
        await box.fill('{"amount": 4')
        await box.press("Control+Enter")
        await expect(pause.get_by_role("alert").filter(has_text="This is no JSON")).to_be_visible()
        await box.fill('{"amount": "four", "to": "Ann"}')
        await box.press("Control+Enter")
        await expect(pause.get_by_role("alert").filter(has_text="amount")).to_be_visible()
        await box.fill('{"amount": 4, "to": "Ann"}')
        await box.press("Control+Enter")
        await expect(shown.answers).to_have_text(["It is done."])
        await expect(shown.page.locator(".call pre").last).to_have_text("paid 4 to Ann")
        await expect(pause).to_have_count(0)


async def test_a_call_is_approved_by_one_click_also_after_a_reload(pages: Opener) -> None:
    async with serving(payer()) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann five.")
        await expect(shown.button("Approve")).to_be_visible()
        await expect(shown.conversations).to_contain_text("waits")
        await shown.page.reload()
        await shown.button("Approve").click()
        await expect(shown.answers).to_have_text(["It is done."])
        await expect(shown.turns).to_have_count(1)
        await expect(shown.page.locator(".call")).to_have_count(1)


async def test_a_rejected_call_does_not_run_and_the_model_is_told_why(pages: Opener) -> None:
    agent = payer(call("pay", amount=5, to="Ann"), "I see.")
    async with serving(agent) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann five.")
        await shown.button("Reject…").click()
        await shown.page.get_by_label("Why? The model is told").fill("Too much")
        await shown.page.keyboard.press("Enter")
        await expect(shown.answers).to_have_text(["I see."])
        call_shown = shown.page.locator(".call")
        await expect(call_shown).to_have_attribute("data-state", "failed")
        await expect(call_shown).to_contain_text("Too much")


async def test_answers_to_several_calls_are_chosen_taken_back_and_sent_together(
    pages: Opener,
) -> None:
    both = [call("pay", amount=5, to="Ann"), call("pay", amount=6, to="Bob")]
    async with serving(payer(both, "Half of it is done.")) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann five and Bob six.")
        first, last = (shown.page.locator(".card").nth(at) for at in (0, 1))
        colour = "(node) => getComputedStyle(node).backgroundColor"
        plain = await shown.button("Approve", first).evaluate(colour)
        await shown.button("Approve", first).click()
        assert await shown.button("Approve", first).evaluate(colour) != plain
        assert await shown.button("Approve", last).evaluate(colour) == plain
        await shown.button("Approve", first).click()
        await expect(shown.button("Send 0 of 2 answers")).to_be_disabled()
        await shown.button("Edit…", last).click()
        await shown.page.keyboard.press("Control+A")
        await shown.page.keyboard.type("[]")
        await shown.page.keyboard.press("Control+Enter")
        await expect(shown.button("Send 1 of 2 answers")).to_be_focused()
        await shown.page.keyboard.press("Enter")
        await expect(last.get_by_role("alert")).to_contain_text("a JSON object")
        await shown.page.keyboard.press("Escape")
        await expect(shown.button("Send 0 of 2 answers")).to_be_disabled()
        await expect(shown.button("Edit…", last)).to_be_focused()

        await shown.button("Approve", first).click()
        await expect(shown.button("Send 1 of 2 answers")).to_be_enabled()
        await shown.button("Reject…", last).click()
        await shown.page.keyboard.type("Too much")
        await shown.button("Send 2 of 2 answers").click()
        await expect(shown.answers).to_have_text(["Half of it is done."])
        states = shown.page.locator(".call")
        await expect(states.first).to_have_attribute("data-state", "done")
        await expect(states.last).to_have_attribute("data-state", "failed")
        await expect(states.last).to_contain_text("Too much")


async def test_long_numbers_are_shown_and_sent_as_they_are(pages: Opener) -> None:
    async with serving(payer(call("pay", amount=2**60 + 1, to="Ann"), "Done.")) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann a lot.")
        given = shown.page.locator(".card pre")
        await expect(given).to_contain_text(str(2**60 + 1))
        await shown.page.reload()
        await expect(given).to_contain_text(str(2**60 + 1))
        await shown.button("Edit…").click()
        box = shown.page.get_by_label("The arguments, as a JSON object")
        await box.fill((await box.input_value()).replace("Ann", "Bob"))
        await box.press("Control+Enter")
        await expect(shown.page.get_by_label("Result")).to_have_text(f"paid {2**60 + 1} to Bob")


async def test_calls_that_are_left_out_go_on_waiting(pages: Opener) -> None:
    both = [call("pay", amount=5, to="Ann"), call("pay", amount=6, to="Bob")]
    async with serving(payer(both, "All done.")) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann five and Bob six.")
        await shown.button("Approve", shown.page.locator(".card").first).click()
        await shown.button("Send 1 of 2 answers").click()
        await expect(shown.page.locator(".card")).to_have_count(1)
        await expect(shown.page.locator(".card")).to_contain_text("Bob")
        await shown.button("Approve").click()
        await expect(shown.answers).to_have_text(["All done."])


async def test_a_question_of_the_model_is_answered(pages: Opener) -> None:
    script = Scripted(call("ask_user", question="Which city?"), "Oslo it is.")
    agent = Agent(script, tools=[ask_user()], advisors=[Memory(InMemory())], name="asker")
    async with serving(agent) as here:
        shown = await pages(here.url)
        await shown.ask("Book a room.")
        await expect(shown.page.locator(".card")).to_contain_text("Which city?")
        await expect(shown.page.get_by_label("Your answer")).to_be_focused()
        await shown.page.keyboard.type("Oslo")
        await shown.page.keyboard.press("Enter")
        await expect(shown.answers).to_have_text(["Oslo it is."])
        assert "Oslo" in script.requests[-1].messages[-1].tool_results[0].text


async def test_a_call_is_tried_again_when_somebody_has_mended_what_it_needs(pages: Opener) -> None:
    mended = False

    @tool
    def save(text: str) -> str:
        """Saves a text."""
        if not mended:
            raise ToolError("The disk is full.", failure="environment")
        return "saved"

    script = Scripted(call("save", text="a"), "It is saved.")
    agent = Agent(
        script, tools=[save], gate="sensitive", advisors=[Memory(InMemory())], name="saver"
    )
    async with serving(agent) as here:
        shown = await pages(here.url)
        await shown.ask("Save it.")
        await expect(shown.page.locator(".card")).to_contain_text("The disk is full.")
        mended = True
        await shown.button("Try again").click()
        await expect(shown.answers).to_have_text(["It is saved."])


@pytest.mark.rule("R-HITL-5")
async def test_a_new_question_closes_the_pause_and_its_calls_do_not_wait_for_ever(
    pages: Opener,
) -> None:
    agent = payer(call("pay", amount=5, to="Ann"), "Never mind, then.")
    async with serving(agent) as here:
        shown = await pages(here.url)
        await shown.ask("Pay Ann five.")
        await expect(shown.button("Approve")).to_be_visible()
        state = shown.page.locator(".call")
        await expect(state).to_have_attribute("data-state", "waiting")
        await shown.ask("Forget it.")
        await expect(shown.answers).to_have_text(["Never mind, then."])
        await expect(shown.button("Approve")).to_have_count(0)
        await expect(state).to_have_attribute("data-state", "unfinished")
