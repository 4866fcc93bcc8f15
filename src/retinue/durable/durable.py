"""`Durable`: turns that outlive the process they were begun in.

This is what an application uses: it begins turns, finds them and waits for them. `turns.py` runs
them, with a record before the agent's model and engine. The record, and the engine behind it, are
DBOS and its database; `host.py` is all that knows them.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from retinue.agent import Agent
from retinue.agent.pause import check_answers
from retinue.chains import TurnResponse
from retinue.chains.events import Event
from retinue.chains.snapshot import Snapshot
from retinue.durable.documents import Answered, Asked, check_plain, encode
from retinue.durable.handle import Handle
from retinue.durable.reader import Reader
from retinue.durable.turns import DataMaker, Turns
from retinue.durable.values import check, url_of
from retinue.errors import ConfigError, TurnNotFound
from retinue.messages import Input, as_messages, new_id
from retinue.tools import NOTHING, Answer

if TYPE_CHECKING:
    from retinue.durable.host import Host


class Durable:
    """Runs an agent's turns so that another process goes on with them when this one dies.

    Each model call and each tool call is a step whose outcome is recorded in a database. A worker
    that dies is known to be dead when its lease has run out; a live worker of the same name and
    version then runs its turns from their record: what is recorded is not done again.

    Use it as `async with Durable(agent, database=...) as durable`. There is one in a process.

    Args:
        agent: the agent. All workers have one built the same way.
        database: a file for SQLite, for workers on one machine, or a "postgresql://..." URL.
        name: of the service: 3 to 200 lower-case letters, digits, "-" and "_".
        version: of the agent. Workers leave turns of another version alone; change it when layers,
            tools or the gate change, or a turn that is taken over may fail.
        lease: seconds without a sign of life after which a worker is dead; 0.2 or more. Its turns
            go on elsewhere within four thirds of that and one second more.
        data: makes the object for tools and layers, called with the conversation and the owner.
        grace: seconds that `close` waits for turns that run here; those left are taken over.

    Raises:
        ConfigError: a value cannot be one.
        MissingExtraError: DBOS is not installed.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        database: str | Path,
        name: str = "retinue",
        version: str = "1",
        lease: float = 10.0,
        data: DataMaker | None = None,
        grace: float = 10.0,
    ) -> None:
        check(name, version, lease, grace)
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"Durable({agent!r}) cannot be used; give an Agent.")
        self._url = url_of(database)
        self._name, self._version, self._lease, self._grace = name, version, lease, grace
        self._turns = Turns(agent, data)
        self._host: Host | None = None

    async def open(self) -> None:
        """Becomes a worker: turns can be begun here, and those of dead workers are taken over.

        Raises:
            ConfigError: a Durable is open in this process already.
            Exception: the database cannot be used, as its driver says it.
        """
        from retinue.durable.host import Host

        host = Host(self._url, self._name, self._version, new_id(), self._lease, self._turns)
        self._turns.open()
        await host.open()
        self._host = host

    async def close(self) -> None:
        """Ends being a worker. Turns that have not ended in time go on in another worker."""
        host, self._host = self._host, None
        if host is None:
            return
        await self._turns.close(self._grace)
        await host.close()

    async def serve(self) -> None:
        """Opens it and works for others until cancelled, then closes."""
        async with self:
            await asyncio.Event().wait()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(
        self,
        question: Input,
        *,
        conversation: str | None = None,
        owner: str | None = None,
        state: Mapping[str, Any] = NOTHING,
        context: Mapping[str, Any] = NOTHING,
        workflow_id: str | None = None,
    ) -> Handle:
        """Begins a turn. When this returns, the turn is in the database and will be ended.

        Turns of one conversation run one after another, in the order in which they were begun.

        Args:
            question: a text, parts, a message, or several messages.
            conversation, owner: as for `Agent.run`.
            state, context: as for `Agent.run`; JSON values.
            workflow_id: the turn's id. A turn that has it already is found, not begun again, so a
                caller that does not know whether it was begun can begin it once more.

        Raises:
            ConfigError: the input is none, or JSON cannot hold it; nothing was begun.
        """
        check_plain("state", state)
        check_plain("context", context)
        asked = Asked(
            messages=as_messages(question),
            conversation=conversation,
            owner=owner,
            state=dict(state),
            context=dict(context),
        )
        return await self._start(asked, workflow_id)

    async def run(self, question: Input, **options: Any) -> TurnResponse:
        """Begins a turn and waits for its end.

        Args:
            question: as for `start`.
            options: those of `start`.

        Raises:
            TurnFailed: it raised.
        """
        return await (await self.start(question, **options)).result()

    async def start_resume(
        self,
        paused: str | Snapshot,
        answers: Mapping[str, Answer] = NOTHING,
        *,
        owner: str | None = None,
        context: Mapping[str, Any] = NOTHING,
        workflow_id: str | None = None,
    ) -> Handle:
        """Begins to go on with a paused turn. It is a durable turn of its own.

        Args:
            paused: the conversation whose turn waits, or the snapshot of a turn without one.
            answers, owner, context: as for `Agent.resume`; the context of JSON values.
            workflow_id: as for `start`. A caller that begins again after a failure gives the same
                one, for the pause is used up by then.

        Raises:
            ConfigError: an answer fits no call that waits, or JSON cannot hold it.
            PauseNotFound: nothing waits there.
            ConversationNotFound: there is no such conversation, or turn, for this owner.
        """
        if workflow_id is not None and (known := await self._known(workflow_id)) is not None:
            return known
        check_plain("context", context)
        agent = self._turns.agent
        snapshot = await agent.waiting(paused, owner)
        check_answers(snapshot, answers, agent.tools)
        check_plain("answers", answers)
        asked = Asked(
            conversation=snapshot.conversation,
            owner=owner,
            context=dict(context),
            paused=snapshot.dump().decode(),
            answers={name: Answered.of(answer) for name, answer in answers.items()},
        )
        return await self._start(asked, workflow_id)

    async def resume(
        self, paused: str | Snapshot, answers: Mapping[str, Answer] = NOTHING, **options: Any
    ) -> TurnResponse:
        """Goes on with a paused turn and waits for its end.

        Args:
            paused, answers: as for `start_resume`.
            options: the others of `start_resume`.
        """
        return await (await self.start_resume(paused, answers, **options)).result()

    async def stream(self, question: Input, **options: Any) -> AsyncGenerator[Event]:
        """Begins a turn and gives its events as long as it runs in this process.

        A reader that leaves does not end the turn. If the turn goes on in another process, its
        events end here, and its end is waited for.

        Args:
            question: as for `start`.
            options: those of `start`.

        Raises:
            TurnFailed: it raised; after the last event.
        """
        id = options.pop("workflow_id", None) or new_id()
        reader = self._turns.readers[id] = Reader()
        try:
            handle = await self.start(question, workflow_id=id, **options)
            ended = asyncio.ensure_future(handle.result())
            ended.add_done_callback(reader.end)
            async for event in reader:
                yield event
            await ended
        finally:
            reader.leave()
            self._turns.readers.pop(id, None)

    async def handle(self, id: str) -> Handle:
        """The handle on a turn that was begun here or elsewhere.

        Raises:
            TurnNotFound: there is none.
        """
        found = await self._known(id)
        if found is None:
            raise TurnNotFound(f"There is no durable turn {id!r}.")
        return found

    async def result(self, id: str) -> TurnResponse:
        """How a turn ended, when it has; begun here or elsewhere.

        Raises:
            TurnNotFound: there is none.
            TurnFailed: it raised.
        """
        return await (await self.handle(id)).result()

    async def cancel(self, id: str) -> None:
        """Cancels a turn: at once where it runs here, elsewhere with the next beat of its worker.

        A turn that has ended stays as it is.

        Raises:
            TurnNotFound: there is none.
        """
        await self.handle(id)
        await self._opened.cancel(id)
        self._turns.cancel(id)

    async def _start(self, asked: Asked, id: str | None) -> Handle:
        host, id = self._opened, new_id() if id is None else id
        if not id.strip() or len(id) > 200 or not id.isprintable():
            raise ConfigError(
                f"The workflow_id {id!r} cannot be one; give 1 to 200 printable characters."
            )
        try:
            document = encode(asked)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"A durable turn is kept as JSON: {error}.") from error
        return self._handle(id, await host.start(id, document))

    async def _known(self, id: str) -> Handle | None:
        found = await self._opened.find(id)
        return None if found is None else self._handle(id, found)

    def _handle(self, id: str, found: Any) -> Handle:
        return Handle(self._opened, id, self._turns.agent.output, found)

    @property
    def _opened(self) -> "Host":
        if self._host is None:
            raise ConfigError(
                "This Durable is not open; use it as `async with Durable(...) as durable`."
            )
        return self._host
