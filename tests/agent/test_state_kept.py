"""What tools wrote to the state is kept however the turn goes on: it was done."""

import asyncio
from typing import Any

import pytest

from retinue import Agent, ConfigError, Layer, Limits, Slot, ToolContext, ToolReturn
from retinue.models import Scripted, call
from tests.virtual_time import virtual_time

NOTES = Slot("notes", reducer=lambda old, new: [*old, new], default=[])


async def note(text: str) -> ToolReturn:
    """Note something."""
    return ToolReturn("noted", {"notes": text})


async def wait(ctx: ToolContext) -> str:
    """Wait for long."""
    await asyncio.sleep(3600)
    return "done"


def agent(*steps: Any, **options: Any) -> Agent:
    return Agent(Scripted(*steps), tools=[note, wait], slots=[NOTES], **options)


@pytest.mark.rule("R-LOOP-3", "R-TOOL-4")
@virtual_time
async def test_a_turn_whose_time_is_up_keeps_what_was_written() -> None:
    slow = agent(call("note", text="a"), call("wait"), limits=Limits(seconds=5))
    result = await slow.run("?")
    assert (result.status, result.state["notes"]) == ("limit", ["a"])


@pytest.mark.rule("R-LOOP-8", "R-TOOL-4")
async def test_a_cancelled_or_failed_turn_keeps_what_was_written() -> None:
    failing = agent(call("note", text="a"), RuntimeError("gone")).stream("?")
    with pytest.raises(RuntimeError, match="gone"):
        await failing.result()
    assert failing.outcome is not None
    assert failing.outcome.state["notes"] == ["a"]


@pytest.mark.rule("R-LOOP-5", "R-TOOL-4")
async def test_a_turn_that_is_asked_again_goes_on_with_what_was_written() -> None:
    seen: list[Any] = []

    async def look(ctx: ToolContext) -> str:
        """Look at the notes."""
        seen.append(list(ctx.state["notes"]))
        return "looked"

    async def insist(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.again("Look at your notes."))

    model = Scripted(call("note", text="a"), "done", call("look"), "so it is")
    result = await Agent(
        model, tools=[note, look], slots=[NOTES], advisors=[Layer("insist", turn=insist)]
    ).run("?")
    assert seen == [["a"]]
    assert result.state["notes"] == ["a"]


@pytest.mark.rule("R-TOOL-3", "R-ONION-12")
async def test_no_turn_sees_what_another_one_did_to_a_default_or_to_what_the_caller_gave() -> None:
    def grow(old: list[str], new: str) -> list[str]:
        old.append(new)  # a reducer that should not, but may
        return old

    slot = Slot("notes", reducer=grow, default=[])
    model = Scripted(call("note", text="a"), "one", call("note", text="b"), "two")
    growing = Agent(model, tools=[note], slots=[slot])
    assert (await growing.run("?")).state["notes"] == ["a"]
    assert (await growing.run("?")).state["notes"] == ["b"]


@pytest.mark.rule("R-TOOL-3")
async def test_a_tool_cannot_write_to_the_state_it_is_shown() -> None:
    async def scribble(ctx: ToolContext) -> str:
        """Write where it is not allowed."""
        ctx.state["n"] = 2  # pyright: ignore[reportIndexIssue]
        return "done"

    given = {"n": 1}
    result = await Agent(Scripted(call("scribble"), "ok"), tools=[scribble]).run("?", state=given)
    assert given == {"n": 1}
    assert result.state["n"] == 1
    assert not result.messages[2].tool_results[0].ok


@pytest.mark.rule("R-ONION-9")
def test_what_an_advisor_brings_along_wrongly_is_refused_with_its_name() -> None:
    async def chat(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    wrong: Any = ["notes"]
    with pytest.raises(ConfigError, match=r"scribe: slots=.*give a list of Slot"):
        Agent(Scripted(), advisors=[Layer("scribe", chat=chat, slots=wrong)])
    single: Any = NOTES
    with pytest.raises(ConfigError, match=r"scribe\.tools=.*give a list"):
        Agent(Scripted(), advisors=[Layer("scribe", chat=chat, tools=single)])
    with pytest.raises(ConfigError, match="one of the agent and one of scribe"):
        Agent(
            Scripted(),
            slots=[NOTES],
            advisors=[Layer("scribe", chat=chat, slots=[Slot("notes")])],
        )
