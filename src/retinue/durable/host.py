"""DBOS, as far as durable turns use it. Nothing else here knows it, and only its public names.

A turn is a workflow of DBOS whose input and output are documents. DBOS is one object in a process;
so there is one open `Host`.
"""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol

import msgspec
import sqlalchemy as sa
from dbos import (
    DBOS,
    DBOSConfig,
    Serializer,
    SetWorkflowID,
    StepReservation,
    WorkflowHandleAsync,
    WorkflowStatus,
    error,
)

from retinue.durable.execution import Do, Execution, Lost, Stopped
from retinue.durable.leases import Leases
from retinue.durable.order import Order
from retinue.errors import ConfigError, TurnFailed

TAKEOVERS: Final = "takeovers"
GIVEN_UP: Final = 5
"""Deaths of workers after which a turn is given up: it may be what kills them."""

_log: Final = logging.getLogger("retinue.durable")
_WORKFLOW: Final = "retinue_turn"
_UNFINISHED: Final = ["PENDING", "ENQUEUED"]
_PATIENCE: Final = (0.05, 0.5)  # seconds between looks at an earlier turn: at first, at most


class Work(Protocol):
    """What a host runs: a turn of this process."""

    async def work(self, host: "Host", execution: Execution, asked: str) -> str:
        """Runs a turn to its end.

        Args:
            host: where it runs.
            execution: its steps.
            asked: the document that it begins with.

        Returns:
            the document that it ends with.

        Raises:
            CancelledError: it is left as it is in the database, for another worker.
        """
        ...

    def beat(self, host: "Host") -> None:
        """Called now and then from another thread."""
        ...


class Documents(Serializer):
    """Keeps documents as they are. DBOS would pickle them."""

    def serialize(self, data: Any) -> str:
        """JSON text; an exception as its words."""
        if isinstance(data, BaseException):
            data = {"raised": f"{type(data).__name__}: {data}"}
        return msgspec.json.encode(data).decode()

    def deserialize(self, serialized_data: str) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What was kept."""
        data = msgspec.json.decode(serialized_data)
        if isinstance(data, dict) and "raised" in data:
            return TurnFailed(data["raised"])  # pyright: ignore[reportUnknownArgumentType]
        return data  # pyright: ignore[reportUnknownVariableType]

    def name(self) -> str:
        """How it is called in the tables."""
        return "retinue_json"


class Host:
    """A worker: DBOS, the lease, and the turns that run here.

    Args:
        url: the database.
        name: of the service; its workers share turns.
        version: of the agent; workers of another one leave its turns alone.
        worker: this worker's own name.
        lease: seconds after which a worker without a sign is dead.
        work: what runs turns.
    """

    def __init__(
        self, url: str, name: str, version: str, worker: str, lease: float, work: Work
    ) -> None:
        self.work = work
        self._url = url
        self._name = name
        self._version = version
        self._worker = worker
        self._queue = f"{name}-takeover"
        self._lease = lease
        self._engine = _engine_of(url)
        self._order = Order(self._engine)
        self._leases = Leases(
            self._engine,
            worker,
            f"{name}:{version}",
            lease,
            take_over=self._take_over,
            beat=lambda: work.beat(self),
        )

    async def open(self) -> None:
        """Starts it in the running event loop, which turns that are taken over run in, too.

        Raises:
            ConfigError: another one is open in this process, or the application uses DBOS itself.
        """
        global _open
        if _open is not None:
            raise ConfigError(
                "Another Durable is open in this process, and DBOS can be there once; close that"
                " one first, or run this one in a process of its own."
            )
        logging.getLogger("dbos").addHandler(logging.NullHandler())  # else it writes to stderr
        await asyncio.to_thread(self._order.create)
        await asyncio.to_thread(self._leases.join)
        DBOS(config=self._config)
        if DBOS.executor_id != self._worker:
            self._leases.leave()
            self._engine.dispose()
            raise ConfigError(
                "DBOS is in use in this process already, and can be there once; run durable turns"
                " in a process of their own."
            )
        _open = self
        try:
            DBOS.launch()
            await DBOS.register_queue_async(
                self._queue,
                polling_interval_sec=min(1.0, self._lease / 4),
                on_conflict="always_update",
            )
            self._leases.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stops it. Turns that run here must have ended, or been abandoned."""
        global _open
        await asyncio.to_thread(self._leases.leave)
        await asyncio.to_thread(DBOS.destroy)
        self._engine.dispose()
        # DBOS has given the loop its own threads for blocking calls, and they are gone.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        _open = None

    async def start(self, turn: str, asked: str) -> WorkflowHandleAsync[str]:
        """Begins a turn here, or finds the one that has this id.

        Raises:
            ConfigError: it was called inside a durable turn.
        """
        if DBOS.workflow_id is not None:
            raise ConfigError(
                "A durable turn cannot be begun inside another one, where it would be a step of it;"
                " begin it outside, or give the tool to an agent of its own."
            )
        with SetWorkflowID(turn):
            return await DBOS.start_workflow_async(_turn, asked)

    async def find(self, turn: str) -> WorkflowHandleAsync[str] | None:
        """A turn that was begun here or elsewhere, or None."""
        try:
            return await DBOS.retrieve_workflow_async(turn)
        except error.DBOSNonExistentWorkflowError:
            return None

    async def status(self, turn: str) -> WorkflowStatus | None:
        """What the tables say of a turn, or None if there is none."""
        return await DBOS.get_workflow_status_async(turn)

    async def result(self, handle: WorkflowHandleAsync[str]) -> str | None:
        """The document that a turn ends with, when it has; None if it was cancelled."""
        try:
            return await handle.get_result(polling_interval_sec=_PATIENCE[1])
        except error.DBOSAwaitedWorkflowCancelledError:
            return None

    async def is_given_up(self, turn: str) -> bool:
        """Whether a cancelled turn was cancelled since its workers died."""
        row = await self.status(turn)
        return row is not None and (row.attributes or {}).get(TAKEOVERS, 0) > GIVEN_UP

    async def cancel(self, turn: str) -> None:
        """Marks a turn as cancelled, wherever it runs."""
        await DBOS.cancel_workflow_async(turn)

    def cancelled(self, turns: list[str]) -> list[str]:
        """Those of the turns that are marked as cancelled. To be called in another thread."""
        found = DBOS.list_workflows(
            workflow_ids=turns, status="CANCELLED", load_input=False, load_output=False
        )
        return [one.workflow_id for one in found]

    async def wait_for_earlier(self, turn: str, conversation: str) -> None:
        """Waits until all turns of the conversation that were begun before have ended.

        A killed turn has not: it keeps its place until another worker has ended it.
        """
        wait, longest = _PATIENCE
        earlier = await asyncio.to_thread(self._order.enter, turn, conversation)
        while earlier:
            rows = await DBOS.list_workflows_async(
                workflow_ids=earlier, status=_UNFINISHED, load_input=False, load_output=False
            )
            left = [row.workflow_id for row in rows]
            ended = [one for one in earlier if one not in left]
            if ended:
                await asyncio.to_thread(self._order.forget, ended)
            earlier = left
            if earlier:
                await asyncio.sleep(wait)
                wait = min(2 * wait, longest)

    @property
    def _config(self) -> DBOSConfig:
        return {
            "name": self._name,
            "system_database_url": self._url,
            "executor_id": self._worker,
            "application_version": self._version,
            "serializer": Documents(),
            # Turns send each other nothing, so all that it delays is `close`.
            "notification_listener_polling_interval_sec": 0.1,
        }

    def _take_over(self, worker: str) -> Iterator[None]:
        """Begins the turns of a dead worker anew, here or on another live one."""
        for row in DBOS.list_workflows(
            executor_id=worker,
            status="PENDING",
            name=_WORKFLOW,
            application_name=self._name,
            app_version=self._version,
            load_input=False,
            load_output=False,
        ):
            kept: dict[str, Any] = dict(row.attributes or {})
            kept[TAKEOVERS] = kept.get(TAKEOVERS, 0) + 1
            DBOS.update_workflow_attributes(row.workflow_id, kept)
            if kept[TAKEOVERS] > GIVEN_UP:
                _log.error("The turn %s is given up: its workers die.", row.workflow_id)
                DBOS.cancel_workflow(row.workflow_id)
            else:
                _log.info("The turn %s of a worker that is gone is taken over.", row.workflow_id)
                DBOS.resume_workflow(row.workflow_id, queue_name=self._queue)
            yield


def _engine_of(url: str) -> sa.Engine:
    """The database once more, for what DBOS keeps no account of."""
    if url.startswith("sqlite"):
        return sa.create_engine(url, poolclass=sa.NullPool, connect_args={"timeout": 30})
    url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    return sa.create_engine(url, pool_size=2, pool_pre_ping=True)


class Step:
    """A place among the steps of a workflow."""

    def __init__(self) -> None:
        self._reserved: StepReservation = DBOS.reserve_step()

    @property
    def number(self) -> int:
        """Its number."""
        return self._reserved.step_id

    async def run(self, name: str, do: Do) -> str:
        """Does the step, or gives what it gave before."""

        async def step() -> str:
            return await do()

        try:
            return await self._reserved.run_async({"name": name}, step)
        except error.DBOSWorkflowConflictIDError as lost:
            raise Lost from lost
        except error.DBOSWorkflowCancelledError as stopped:
            raise Stopped from stopped
        except error.DBOSUnexpectedStepError as other:
            was = other.inputs[-1]
            raise TurnFailed(
                f"The turn cannot be gone on with: its step {self.number} was {was!r} and is"
                f" {name!r} now. A layer, a gate or the tools decide"
                " otherwise than before; change Durable(version=...) with them."
            ) from other


@DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)
async def _turn(asked: str) -> str:
    host, turn = _open, DBOS.workflow_id
    if host is None or turn is None:
        raise ConfigError("No Durable is open in this process.")
    try:
        return await host.work.work(host, Execution(turn, Step), asked)
    except (Lost, Stopped) as signal:
        # DBOS knows its own signal, and waits for what the turn's owner records.
        raise signal.__cause__ or signal from None


_open: Host | None = None
