"""The running and lately ended turns of a gateway, and the requests that began them.

One turn, its buffer and its readers are in `keeping`. Nothing here knows HTTP or gRPC.
"""

import asyncio
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from retinue.chains.events import Event
from retinue.messages import Message
from retinue.serve.dispatch import Dispatcher, Running
from retinue.serve.faults import Refused
from retinue.serve.jobs import Choices, Job
from retinue.serve.keeping import Keeping, Kept, Log, Reader, Watch

Check = Callable[[], Awaitable[None]]
"""Raises what speaks against a turn that is about to begin."""


class Turns:
    """The turns of a gateway.

    Args:
        dispatcher: who runs them.
        keeping: how much is kept of them.
        log: gives the stored messages of a turn.
        watch: hears every event.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        keeping: Keeping | None = None,
        log: Log | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._keeping = keeping or Keeping()
        self._log: Log = log or _no_log
        self._watch: Watch = watch or _unheard
        self._turns: dict[str, Kept] = {}  # by turn, the latest run of each
        self._runs: dict[str, Kept] = {}  # by stream: forks of a pause go on under one turn's id
        self._requests: dict[tuple[str | None, str], tuple[bytes, asyncio.Future[Kept]]] = {}
        self._ended: OrderedDict[str, Kept] = OrderedDict()  # by stream, the oldest first
        self._weight = 0
        self._running: Counter[str | None] = Counter()
        self._pumps: set[asyncio.Task[None]] = set()

    async def start(self, job: Job, check: Check | None = None) -> Reader:
        """Starts a job; or, where its request was made before, joins what that started.

        Args:
            job: what is asked.
            check: asked before a turn begins, and not of one that is joined.

        Returns:
            a reader from the first event on.

        Raises:
            Refused: the same request id came with another request (`conflict`).
            RetinueError: what the check or the dispatcher refuses.
        """
        self._sweep()
        if job.request is None:
            return (await self._begin(job, check)).reader()
        key, print = (job.owner, job.request), _fingerprint(job)
        known = self._requests.get(key)
        if known is not None:
            if known[0] != print:
                raise Refused(
                    "conflict",
                    f"The request id {job.request[:80]!r} was used for another request; give each"
                    " request an id of its own.",
                )
            return (await asyncio.shield(known[1])).reader()
        future = asyncio.get_running_loop().create_future()
        self._requests[key] = (print, future)
        try:
            kept = await self._begin(job, check)
        except BaseException as error:
            self._requests.pop(key, None)
            future.set_exception(error if isinstance(error, Exception) else _gone())
            future.exception()  # seen: perhaps nobody else waits
            raise
        future.set_result(kept)
        return kept.reader()

    def find(self, turn: str, owner: str | None, stream: str = "") -> Kept:
        """The turn of this id: of its runs, before and after a pause, the one with this stream, or
        the last one where that is not kept.

        Raises:
            Refused: there is none for this owner (`not_found`).
        """
        self._sweep()
        kept = self._runs.get(stream)
        if kept is None or kept.turn != turn:
            kept = self._turns.get(turn)
        if kept is None or kept.job.owner != owner:
            raise Refused(
                "not_found",
                f"There is no turn {turn[:80]!r} here; ended turns are kept for a while. What it"
                " said is in its conversation.",
            )
        return kept

    def running(self, owner: str | None) -> int:
        """How many turns of this owner run, or are being started."""
        return self._running[owner]

    def of(self, conversation: str, owner: str | None) -> str | None:
        """The turn that runs in a conversation of this owner's, or None."""
        for kept in self._runs.values():
            job = kept.job
            if kept.end is None and job.conversation == conversation and job.owner == owner:
                return kept.turn
        return None

    def hurry(self) -> None:
        """No turn waits for its readers any longer."""
        for kept in [*self._runs.values()]:
            kept.hurry()

    async def close(self) -> None:
        """Cancels what runs, and waits until it has ended."""
        self.hurry()
        for kept in [*self._runs.values()]:
            kept.cancel("The server is shutting down.")
        if self._pumps:
            await asyncio.wait([*self._pumps])

    async def _begin(self, job: Job, check: Check | None) -> Kept:
        if check is not None:
            await check()
        self._running[job.owner] += 1
        try:
            running = await self._dispatcher.start(job)
        except BaseException:
            self._less(job.owner)
            raise
        kept = Kept(_label(job), running, self._keeping, self._log)
        self._turns[kept.turn] = self._runs[kept.stream] = kept
        task = asyncio.create_task(self._run(kept, running), name=f"turn {kept.turn}")
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)
        return kept

    async def _run(self, kept: Kept, running: Running) -> None:
        try:
            await kept.pump(running, self._watch)
        finally:
            self._less(kept.job.owner)
            self._ended[kept.stream] = kept
            self._weight += kept.weight
            self._sweep()

    def _less(self, owner: str | None) -> None:
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]

    def _sweep(self) -> None:
        """Forgets ended turns that are over what is kept."""
        limits, now = self._keeping, time.monotonic()
        while self._ended:
            stream, kept = next(iter(self._ended.items()))
            if (
                len(self._ended) <= limits.turns
                and self._weight <= limits.total_bytes
                and now - kept.ended <= limits.seconds
            ):
                return
            del self._ended[stream], self._runs[stream]
            self._weight -= kept.weight
            if self._turns.get(kept.turn) is kept:
                del self._turns[kept.turn]
            if kept.job.request is not None:
                self._requests.pop((kept.job.owner, kept.job.request), None)


def _fingerprint(job: Job) -> bytes:
    """What is asked, without what each asking has of its own: names, and the time that is left."""
    asked = tuple(message.with_(id="") for message in job.messages)
    return hashlib.sha256(structs.replace(job, id="", messages=asked, seconds=None).dump()).digest()


def _label(job: Job) -> Job:
    """The job without what was asked, which may be long and is kept as long as the turn is."""
    return structs.replace(
        job, messages=(), answers={}, context={}, choices=Choices(), tools=(), output=None
    )


def _gone() -> Refused:
    return Refused("unavailable", "The request was given up before it began; send it again.")


async def _no_log(job: Job, turn: str) -> Sequence[Message]:
    return ()


def _unheard(kept: Kept, event: Event) -> None:
    """Nobody listens."""
