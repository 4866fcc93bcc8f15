"""What an engine is, and what all engines share.

An engine runs the approved calls of a batch and returns their outcomes in call order
(R-ENGINE-1). It knows nothing of rounds, gates, writes or return-direct.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any, Protocol, TypeVar, cast

from msgspec import structs

from retinue.errors import ConfigError
from retinue.tools.base import CancelToken, ToolContext, ToolReturn
from retinue.tools.options import is_positive
from retinue.tools.results import ITEM_LIMIT, drained
from retinue.tools.shapes import is_iterator
from retinue.tools.tool import Tool


class Call(Protocol):
    """What an engine needs to know of a call; a tool request is one."""

    @property
    def tool(self) -> Tool | None:
        """The tool that it names, or None if there is none of that name."""
        ...


C = TypeVar("C", bound=Call)
R = TypeVar("R")


class Engine(Protocol):
    """Runs batches of calls, and the bodies of tools.

    Attributes:
        timeout: seconds that a body may take where its tool says nothing; None for no limit.
    """

    @property
    def timeout(self) -> float | None: ...

    async def run(self, calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
        """The outcomes of `one` for each call, in call order.

        `one` turns failures of tools into outcomes. What it raises all the same (a fatal error, a
        fault of a layer) ends the batch: the other calls are cancelled and awaited, and it is
        raised. So it is when `run` is cancelled. A batch with a `serial` tool runs in call order.
        """
        ...

    async def body(self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        """What the function of a tool returns, or raises, where this engine runs functions.

        Args:
            tool: whose function runs.
            arguments: its keyword arguments, as `Tool.bind` gave them.
            ctx: filled in for the parameters that take it.

        Raises:
            TimedOut: the time of the tool, or of the engine, is up. It counts from the moment the
                body begins; waiting for a free place does not count.
        """
        ...

    async def close(self) -> None:
        """Lets go of threads and processes."""
        ...


class TimedOut(TimeoutError):
    """A body did not end in its time. A failure of class `transient`."""

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(f"The tool {tool!r} gave no result within {seconds:g} seconds.")


async def in_order(calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
    """One call after another, with no task."""
    return [await one(call) for call in calls]


def is_serial(calls: Sequence[Call]) -> bool:
    """Whether a batch must run in call order (R-TOOL-8)."""
    return any(call.tool is not None and call.tool.serial for call in calls)


async def at_once(calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
    """All calls at the same time, as tasks. A call alone, or a serial batch, needs none."""
    if len(calls) < 2 or is_serial(calls):
        return await in_order(calls, one)
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(calls)

    def ended(task: asyncio.Future[R]) -> None:
        nonlocal left
        left -= 1
        failed = task.cancelled() or task.exception() is not None
        if (failed or not left) and not over.done():
            over.set_result(None)

    tasks = [asyncio.ensure_future(one(call)) for call in calls]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        await over
        for task in tasks:
            if task.done():
                task.result()  # raises what ended the batch
    except BaseException:
        await _end(tasks)
        raise
    return [task.result() for task in tasks]


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancels tasks and waits until they are gone, even if the waiter is cancelled again."""
    cancelled = False
    for task in tasks:
        task.cancel()
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that nobody is told it was not
    if cancelled:
        raise asyncio.CancelledError


def on_loop(tool: Tool, value: Any, seconds: float | None) -> Awaitable[Any]:
    """What an awaitable or async iterator of a tool gives, on the event loop.

    Raises:
        TimedOut: it took longer than `seconds`, and was cancelled.
    """
    return settled(value) if seconds is None else _in_time(tool, value, seconds)


async def _in_time(tool: Tool, value: Any, seconds: float) -> Any:
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            return await settled(value)
    except TimeoutError as error:
        if timer.expired():
            raise TimedOut(tool.name, seconds) from error
        raise


def is_pending(value: Any) -> bool:
    """Whether it takes an event loop to get at the value."""
    if type(value) is ToolReturn:
        value = value.value
    return isinstance(value, (Awaitable, AsyncIterator))


async def settled(value: Any) -> Any:
    """The value behind an awaitable or an iterator, so that no work of the tool is left undone."""
    if isinstance(value, (CoroutineType, Awaitable)):  # the common type first: it is found at once
        value = await cast("Awaitable[Any]", value)
    if type(value) is str:  # most tools give one; the questions below cost as much as a short call
        return value
    if type(value) is ToolReturn:
        return structs.replace(value, value=await settled(value.value))
    if isinstance(value, AsyncIterator):
        return await _drained_async(cast("AsyncIterator[Any]", value))
    return spent(value)


def spent(value: Any) -> Any:
    """The same for a plain iterator. What is pending stays as it is."""
    if type(value) is ToolReturn:
        return structs.replace(value, value=spent(value.value))
    return drained(value) if is_iterator(value) and not is_pending(value) else value


async def _drained_async(iterator: AsyncIterator[Any]) -> list[Any]:
    items: list[Any] = []
    try:
        async for item in iterator:
            if len(items) == ITEM_LIMIT:
                return drained(iter((*items, item)))
            items.append(item)
    finally:
        if isinstance(iterator, AsyncGenerator):
            await iterator.aclose()
    return items


def with_context(
    tool: Tool, arguments: dict[str, Any], ctx: ToolContext
) -> tuple[dict[str, Any], CancelToken | None]:
    """Fills in the context, and gives the token that tells this one call to stop."""
    names = tool.signature.context
    if not names:
        return arguments, None
    cancel = CancelToken(ctx.cancel)
    own = structs.replace(ctx, cancel=cancel)
    return {**arguments, **dict.fromkeys(names, own)}, cancel


def seconds_for(tool: Tool, timeout: float | None) -> float | None:
    """The time of the tool, else of the engine (R-TOOL-9)."""
    return timeout if tool.timeout is None else tool.timeout


def check_timeout(engine: str, timeout: Any) -> None:
    """Raises ConfigError if an engine's timeout is no number of seconds above 0."""
    if timeout is not None and not is_positive(timeout):
        raise ConfigError(f"{engine}(timeout={timeout!r}): give seconds above 0, or None.")


def check_count(engine: str, option: str, count: Any) -> None:
    """Raises ConfigError if a size or a limit is no whole number from 1 up."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ConfigError(f"{engine}({option}={count!r}): give a whole number from 1 up.")
