"""What a pause costs after fifty rounds of one call each: to make, to keep, and to go on from."""

import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from bench.models import Calls
from bench.works import FREE, QUESTION, Figures, cpu_us, noop
from retinue import Agent, Approve, ChatRequest, tool
from retinue.advisors import Memory
from retinue.chains.snapshot import Snapshot
from retinue.messages import FinishDelta, ToolCallDelta
from retinue.models.base import Send
from retinue.tools import Tool

ROUNDS = 50


class CallsAndPays(Calls):
    """Asks for a call in each of so many rounds, then for one that pauses, then answers."""

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Counts the results that are there, and goes on from them."""
        if sum(message.role == "tool" for message in request.messages) != self.rounds:
            return await super().generate(request, send)
        await send(ToolCallDelta(0, "pay", "pay", '{"amount":"1"}'))
        await send(FinishDelta("tool_calls"))
        return None


async def pay(amount: str) -> str:
    """Pay.

    Args:
        amount: how much.
    """
    return "paid"


async def pausing(turns: int = 10) -> Figures:
    """A turn of fifty rounds that pauses, and goes on from SQLite in another agent."""
    from retinue.stores import SQLite

    tools: list[Tool] = [tool(noop), tool(sensitive=True)(pay)]
    with tempfile.TemporaryDirectory() as folder:
        store = SQLite(Path(folder) / "bench.db")

        def agent() -> Agent:
            memory = Memory(store)
            model = CallsAndPays(ROUNDS)
            return Agent(model, tools=tools, limits=FREE, gate="sensitive", advisors=[memory])

        paused = [await agent().run(QUESTION, conversation=f"c{n}") for n in range(turns + 1)]
        snapshot = paused[0].snapshot
        assert snapshot is not None
        document = snapshot.dump()
        spent = 0.0
        for number, result in enumerate(paused):
            other, answers = agent(), {result.pending[0].id: Approve()}
            began = time.process_time()
            done = await other.resume(f"c{number}", answers)
            spent += (time.process_time() - began) * (number > 0)  # the first warms up
            assert done.rounds == ROUNDS + 2
        figures = {
            "bytes": float(len(document)),
            "ms_dump": await cpu_us(lambda: _at_once(snapshot.dump)) / 1e3,
            "ms_load": await cpu_us(lambda: _at_once(lambda: Snapshot.load(document))) / 1e3,
            "ms_resume": spent / turns * 1e3,
        }
        await store.close()
    return figures


async def _at_once(work: Callable[[], object]) -> None:
    work()


PAUSES: dict[str, Callable[[], Awaitable[Figures]]] = {"pausing": pausing}
