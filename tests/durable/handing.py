"""Short ways to have a turn broken off, and gone on with by the next worker."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from retinue import Agent, TurnResponse, Usage
from retinue.chains import ChatRequest
from retinue.durable import Durable
from retinue.models import Scripted
from retinue.models.scripted import Step

Opening = Callable[..., Awaitable[Durable]]

BOUND: Final = 30.0
"""Seconds after which a wait has failed, on the slowest machine."""

USED: Final = Usage(input=10, output=1)


class Blocks:
    """A place where a turn waits for ever, the first time that it comes there."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.count = 0

    async def __call__(self) -> None:
        """Waits, the first time."""
        self.count += 1
        if self.count == 1:
            self.reached.set()
            await asyncio.Event().wait()


async def handed_on(
    opened: Opening, agent: Agent, block: Blocks, question: str = "Go.", **options: Any
) -> TurnResponse:
    """The response of a turn whose first worker closes when it has come to the block."""
    first = await opened(agent)
    handle = await first.start(question, **options)
    await asyncio.wait_for(block.reached.wait(), BOUND)
    second = await opened(agent)
    return await asyncio.wait_for(second.result(handle.id), BOUND)


def blocking(block: Blocks, *steps: Step, at: int) -> Scripted:
    """A model that blocks before its answer number `at`, and says the script by what was asked."""

    async def answer(request: ChatRequest) -> Step:
        said = sum(message.role == "assistant" for message in request.messages)
        if said == at:
            await block()
        return steps[said]

    return Scripted(answer, repeat=True)
