"""A turn on its way: `conduct` runs one, `Turn` is the handle on one that streams."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

from msgspec import structs

from retinue.agent.ending import agree, close_log, cut_off
from retinue.agent.limits import Limits, time_is_up
from retinue.agent.loop import Loop
from retinue.chains import Scope, Status, TurnRequest, TurnResponse, events
from retinue.chains.channel import Channel
from retinue.chains.events import Event
from retinue.chains.measuring import Times
from retinue.errors import ConfigError, InternalError
from retinue.models.prices import cost, has_prices


async def conduct(loop: Loop, request: TurnRequest, limits: Limits) -> TurnResponse:
    """Runs one turn in the task that calls it; on every way out the log and the reader are told.

    Args:
        loop: the agent's.
        request: the turn.
        limits: the time it may take is one of them.

    Returns:
        how it ended; a turn that was halted ends as `cancelled` or `limit`.

    Raises:
        CancelledError: the task was cancelled from outside.
        Exception: what a layer, the store or the model raised, as it is.
    """
    scope = request.scope
    scope.stopping.runs_here()
    scope.state = request.state
    scope.log.transcript = request.messages
    if not scope.path:
        scope.place = request.conversation
        scope.emit(events.TurnStarted, turn=scope.id, conversation=request.conversation)
    timer = None
    if limits.seconds is not None:
        clock = asyncio.get_running_loop()
        scope.seconds = limits.seconds
        scope.deadline = clock.time() + limits.seconds
        why = time_is_up(limits.seconds)
        timer = clock.call_at(scope.deadline, scope.stopping.halt, "limit", why)
    try:
        await scope.stopping.check()
        outcome = scope.end(await agree(scope, await loop.turn(request)))
        await _settle_halts(scope)
        return outcome
    except asyncio.CancelledError as error:
        halted = scope.stopping.absorb()
        if halted is None:
            await _stop(request, "cancelled", "The turn was cancelled.", error)
            raise
        outcome = await _stop(request, halted.status, halted.reason, halted.error)
        if halted.error is not None:
            raise halted.error from None
        return outcome
    except Exception as error:
        await _stop(request, "failed", _told(error), error)
        raise
    finally:
        if timer is not None:
            timer.cancel()
        try:
            for journal in reversed(scope.log.journals):
                await journal.close()
        finally:
            if not scope.path:
                _tell_end(request)
            if scope.pumps is not None:
                await scope.pumps.end()
            scope.standing = None  # it knows the scope: a turn must not wait for the collector


async def _stop(
    request: TurnRequest, status: Status, reason: str, error: BaseException | None
) -> TurnResponse:
    """Ends a turn out of its course. An error of the store does not hide the one behind it."""
    scope = request.scope
    ended = cut_off(request, status, reason, error)
    outcome = scope.end(ended)  # before anything is awaited
    try:
        if not scope.log.untouched:
            await close_log(scope, ended.messages)
    except Exception as second:
        if error is None:
            scope.end(ended.with_(status="failed", reason=str(second), error=second))
            raise
        error.add_note(f"What the turn had done could not be stored: {second}")
    return outcome


def _told(error: Exception) -> str:
    """What happened, and what was tried: the error's words and its notes."""
    return " ".join([str(error) or type(error).__name__, *getattr(error, "__notes__", ())])


async def _settle_halts(scope: Scope) -> None:
    """A halt that came too late to stop anything must not hit what the task does next."""
    if scope.stopping.halted is not None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        scope.stopping.absorb()


def _tell_end(request: TurnRequest) -> None:
    scope = request.scope
    outcome = scope.outcome
    if outcome is None:  # the process itself is being stopped: nothing more is stored
        outcome = scope.end(cut_off(request, "failed", "The turn was broken off."))
    if scope.times is not None:
        scope.emit(events.LayersTimed, layers=scope.times.taken())
    if outcome.status == "paused":
        scope.emit(events.Paused, reason=outcome.reason or "", pending=outcome.pending)
    scope.emit(
        events.TurnEnded,
        turn=scope.id,
        status=outcome.status,
        text=outcome.text,
        message=outcome.message,
        usage=scope.usage,
        reason=outcome.reason,
        blocked_by=outcome.blocked_by,
        error=None if outcome.error is None else type(outcome.error).__name__,
    )


class Turn:
    """A turn that streams: iterate it for its events, await `result()` for how it ended.

    It starts when it is first iterated or awaited. A reader that leaves early, by `break`, an
    exception or the end of `async with`, cancels the turn; `async with` also waits until it has
    stopped. A detached turn starts at once and goes on without its reader.
    """

    def __init__(
        self, loop: Loop, request: TurnRequest, limits: Limits, *, detached: bool = False
    ) -> None:
        channel = request.scope.channel
        if channel is None:
            raise InternalError("A turn that streams needs a channel.")
        self._loop = loop
        self._request = request
        self._limits = limits
        self._detached = detached
        self._channel: Channel = channel
        self._task: asyncio.Task[TurnResponse] | None = None
        self._read = self._dropped = False
        if detached:
            self._start()

    @property
    def id(self) -> str:
        """The id of the turn."""
        return self._request.scope.id

    @property
    def outcome(self) -> TurnResponse | None:
        """How the turn ended, also where it raised; None while it runs."""
        return self._request.scope.outcome

    def prepare(
        self, *, id: str | None = None, seconds: float | None = None, measure: bool = False
    ) -> Self:
        """For those who serve turns: sets what the turn is called and when its time is up.

        Args:
            id: the id of the turn. One that goes on keeps its own; leave it out there.
            seconds: how long it may take from its start on, where its agent allows more.
            measure: whether its events tell what layers took and, if prices are installed, what
                model calls cost.

        Raises:
            ConfigError: it has started, or the time is none.
        """
        if self._task is not None:
            raise ConfigError("prepare() comes before the turn starts; this one is on its way.")
        if id is not None:
            self._request.scope.id = id
        if seconds is not None:
            least = min(seconds, self._limits.seconds or seconds)
            self._limits = structs.replace(self._limits, seconds=least)
        if measure:
            scope = self._request.scope
            scope.times, scope.price = Times(), cost if has_prices() else None
        return self

    def cancel(self, reason: str = "The turn was cancelled.") -> None:
        """Stops the turn: it ends as `cancelled`, with what had come kept and marked partial."""
        self._request.scope.stopping.halt("cancelled", reason)

    async def result(self) -> TurnResponse:
        """How the turn ended. Events that nobody is reading are dropped.

        Await it behind the loop over the events, not inside: there the turn would wait for its
        reader, and the reader for the turn.

        Raises:
            Exception: what a layer, the store or the model raised.
        """
        task = self._start()
        if not self._read:
            self._dropped = True
            self._channel.abandon()
        return await (asyncio.shield(task) if self._detached else task)

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """The events, once. After the last one, what made the turn fail is raised."""
        if self._read or self._dropped:
            what = "have been read" if self._read else "were dropped when result() was awaited"
            raise ConfigError(f"The events of this turn {what}; iterate it first, and once.")
        self._read = True
        task = self._start()
        try:
            while (event := await self._channel.get()) is not None:
                yield event
            await task
        finally:
            await self._leave()

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()

    def _start(self) -> asyncio.Task[TurnResponse]:
        if self._task is None:
            self._task = asyncio.create_task(self._conduct())
            _running.add(self._task)
            self._task.add_done_callback(_done)
        return self._task

    async def _conduct(self) -> TurnResponse:
        try:
            return await conduct(self._loop, self._request, self._limits)
        finally:
            self._channel.close()

    async def _leave(self) -> None:
        task = self._task
        self._channel.abandon()
        if task is None or task.done() or self._detached:
            return
        self._request.scope.stopping.halt("cancelled", "The reader left.")
        with contextlib.suppress(Exception):
            await task


_running: set[asyncio.Task[TurnResponse]] = set()
"""The loop alone keeps no task alive, and nobody need hold on to a detached turn."""


def _done(task: asyncio.Task[TurnResponse]) -> None:
    """Marks the error as seen: it is in the last event and in `outcome`."""
    _running.discard(task)
    if not task.cancelled():
        task.exception()
