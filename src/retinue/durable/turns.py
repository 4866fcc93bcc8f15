"""The durable turns that run in this process: what a host calls, and what an application does not.

A turn is in here from its first step until its end is recorded. One that comes when the worker is
closing is not begun: it stays as it is in the database, for another worker.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from retinue.agent import Agent
from retinue.chains import TurnResponse
from retinue.chains.log import Keeper
from retinue.chains.snapshot import Snapshot
from retinue.durable.documents import Asked, Ended, asked_in, encode
from retinue.durable.engine import RecordedEngine
from retinue.durable.execution import Execution
from retinue.durable.layers import Innermost, Outermost, Pump
from retinue.durable.model import RecordedModel
from retinue.durable.reader import Reader

if TYPE_CHECKING:
    from retinue.durable.host import Host

DataMaker = Callable[[str | None, str | None], Any]
"""Makes the object for tools and layers in the process that runs a turn: `data(conversation,
owner)`."""

_log: Final = logging.getLogger("retinue.durable")


class Turns:
    """The turns of one agent that run here.

    Args:
        agent: who runs them; a record is put before its model and its engine.
        data: makes the object for its tools and layers, or None.

    Attributes:
        agent: the agent with the record before it.
        readers: who reads the events of a turn, by its id.
    """

    def __init__(self, agent: Agent, data: DataMaker | None) -> None:
        keeper = next((one for one in agent.advisors if isinstance(one, Keeper)), None)
        self.agent = agent.with_(
            model=RecordedModel(agent.model),
            engine=RecordedEngine(agent.engine, keeper),
            advisors=[Outermost(keeper, self._pump_of), *agent.advisors, Innermost()],
        )
        self.readers: dict[str, Reader] = {}
        self._make_data = data
        self._running: dict[str, Execution] = {}
        self._closing = False

    def open(self) -> None:
        """Turns may come from here on."""
        self._closing = False

    async def close(self, grace: float) -> None:
        """No turn is begun any more. Those that have not ended in time are left to others.

        Args:
            grace: seconds that turns which run here may still take.
        """
        self._closing = True
        tasks = [one.task for one in self._running.values() if one.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for one in [*self._running.values()]:
            one.abandon()
            if one.task is not None:
                one.task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def cancel(self, id: str) -> None:
        """Cancels a turn, if it runs here."""
        running = self._running.get(id)
        if running is not None:
            running.cancel()

    async def work(self, host: "Host", execution: Execution, asked: str) -> str:
        """Runs a turn to its end; see `host.Work`."""
        if self._closing:
            raise asyncio.CancelledError("This worker is closing; another one has the turn.")
        question = asked_in(asked)
        self._running[execution.id] = execution
        try:
            if question.conversation is not None or question.paused is not None:
                await self._begin(host, execution, question)
            with execution.running():
                response = await self._respond(question)
        except Exception as error:
            _log.warning("The durable turn %s failed.", execution.id, exc_info=error)
            told = " ".join([str(error), *getattr(error, "__notes__", ())]).strip()
            failed = f"{type(error).__name__}: {told}" if told else type(error).__name__
            return encode(Ended(turn=execution.id, status="failed", failed=failed))
        finally:
            if execution.task is not None:  # until the end is recorded, too
                execution.task.add_done_callback(lambda _: self._forget(execution))
        return encode(Ended.of(response))

    def beat(self, host: "Host") -> None:
        """Looks for turns that were cancelled elsewhere; called from another thread."""
        running = {one.id: one for one in [*self._running.values()]}
        for id in host.cancelled([*running]) if running else ():
            task = running[id].task
            if task is not None:
                task.get_loop().call_soon_threadsafe(running[id].cancel)

    async def _begin(self, host: "Host", execution: Execution, asked: Asked) -> None:
        async def wait() -> str:
            if asked.conversation is not None:
                await host.wait_for_earlier(execution.id, asked.conversation)
            return execution.token

        execution.again = await execution.step("begin", wait) != execution.token

    async def _respond(self, asked: Asked) -> TurnResponse:
        make = self._make_data
        data = None if make is None else make(asked.conversation, asked.owner)
        if asked.paused is None:
            return await self.agent.run(
                asked.messages,
                conversation=asked.conversation,
                owner=asked.owner,
                data=data,
                state=asked.state,
                context=asked.context,
            )
        return await self.agent.resume(
            Snapshot.load(asked.paused),
            {name: one.answer for name, one in asked.answers.items()},
            owner=asked.owner,
            data=data,
            context=asked.context,
        )

    def _forget(self, execution: Execution) -> None:
        if self._running.get(execution.id) is execution:  # another run of it may be here by now
            del self._running[execution.id]

    def _pump_of(self, id: str) -> Pump | None:
        reader = self.readers.get(id)
        return None if reader is None else reader.pump
