"""The public fake says what its script says."""

from collections.abc import Awaitable, Callable

import pytest

from retinue import Agent, ChatRequest
from retinue.errors import ModelRefused
from retinue.models.scripted import Scripted, Step, call


def plain(request: ChatRequest) -> str:
    return f"You said: {request.messages[-1].text}"


async def waits(request: ChatRequest) -> str:
    return plain(request)


class Answers:
    async def __call__(self, request: ChatRequest) -> str:
        return plain(request)


@pytest.mark.parametrize("step", [plain, waits, Answers()], ids=["plain", "async", "object"])
async def test_a_function_in_the_script_answers_what_was_asked(
    step: Callable[[ChatRequest], Step | Awaitable[Step]],
) -> None:
    assert (await Agent(Scripted(step)).run("hello")).text == "You said: hello"


async def test_a_script_that_is_used_up_says_so() -> None:
    agent = Agent(Scripted("one", call("search")))
    await agent.run("1?")
    with pytest.raises(ModelRefused, match=r"2 steps.*repeat=True"):
        await agent.run("2?")
