"""Engines with a pool of their own: what runs in it cannot take more than its share."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from retinue.errors import ToolError
from retinue.tools.base import ToolContext
from retinue.tools.engines.base import C, R, at_once, check_count, check_timeout, seconds_for
from retinue.tools.engines.bodies import Bodies
from retinue.tools.engines.processes import Processes
from retinue.tools.engines.threads import Threads
from retinue.tools.importable import require_pebble
from retinue.tools.tool import Tool


class ThreadPool:
    """Runs sync tools in a fixed number of threads; async tools run on the loop, as tasks.

    A sync tool that was given up keeps its thread until it ends: the pool is a bulkhead.

    Args:
        size: threads.
        timeout: seconds a body may take where its tool says nothing; None for no limit.

    Raises:
        ConfigError: the size or the timeout is no such number.
    """

    __slots__ = ("_bodies", "_closed", "timeout")

    def __init__(self, size: int, timeout: float | None = None) -> None:
        check_count("ThreadPool", "size", size)
        check_timeout("ThreadPool", timeout)
        self.timeout = timeout
        self._bodies = Bodies(Threads(size))
        self._closed = False

    async def run(self, calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
        """The outcomes, in call order."""
        return await at_once(calls, one)

    async def body(self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        """Runs the function. Its time counts from when it has a thread.

        Raises:
            ToolError: the pool is closed (class `environment`).
        """
        if self._closed:
            raise _closed("ThreadPool")
        return await self._bodies.run(tool, arguments, ctx, seconds_for(tool, self.timeout))

    async def close(self) -> None:
        """Closes the pool for good. What runs in it runs on."""
        self._closed = True
        await self._bodies.close()


class ProcessPool:
    """Runs all tools in processes: work for a processor, and time limits that truly end it.

    The functions must be importable by name, and arguments and results picklable; a result that
    is not crosses as the text that the model reads. Of the context a tool sees all but `scope`, and
    a token that is never set; entries of `ctx.context` that cannot be pickled are left out.
    Context variables cross if a module holds them and their value can be pickled. The time of the
    first call in a process includes importing the tool's module there.

    Args:
        size: processes.
        timeout: seconds a body may take where its tool says nothing; None for no limit.

    Raises:
        ConfigError: the size or the timeout is no such number.
        MissingExtraError: pebble is not installed.
    """

    __slots__ = ("_closed", "_processes", "timeout")

    def __init__(self, size: int, timeout: float | None = None) -> None:
        check_count("ProcessPool", "size", size)
        check_timeout("ProcessPool", timeout)
        require_pebble("ProcessPool")
        self.timeout = timeout
        self._processes = Processes(size)
        self._closed = False

    async def run(self, calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
        """The outcomes, in call order."""
        return await at_once(calls, one)

    async def body(self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        """Runs the function. Its time counts from when it has a process.

        Raises:
            ToolError: the pool is closed, or the function cannot be sent (class `environment`).
        """
        if self._closed:
            raise _closed("ProcessPool")
        return await self._processes.run(tool, arguments, ctx, seconds_for(tool, self.timeout))

    async def close(self) -> None:
        """Closes the pool for good. What runs in it is ended."""
        self._closed = True
        await self._processes.close()


def _closed(engine: str) -> ToolError:
    return ToolError(
        f"The {engine} of this agent is closed; build a new one.", failure="environment"
    )
