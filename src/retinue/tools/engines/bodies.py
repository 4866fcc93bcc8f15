"""Where the body of a tool runs: async ones on the event loop, sync ones in threads, and those
with `isolation="process"` in a process of their own, whatever the engine."""

from contextlib import ExitStack
from functools import partial
from typing import Any, Final

from retinue.tools.base import ToolContext
from retinue.tools.engines.base import TimedOut, is_pending, on_loop, spent, with_context
from retinue.tools.engines.processes import Processes
from retinue.tools.engines.threads import Expired, Threads, in_thread
from retinue.tools.tool import Tool

PROCESSES: Final = 2
"""Processes for the isolated tools of an engine. Each costs an interpreter, also while it idles."""


class Bodies:
    """Runs bodies for one engine.

    Args:
        threads: where sync functions run.
    """

    __slots__ = ("_processes", "_threads")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._processes: Processes | None = None

    async def run(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        ctx: ToolContext,
        seconds: float | None,
        held: ExitStack | None = None,
    ) -> Any:
        """What the function returns, or raises.

        Args:
            tool: whose function runs.
            arguments: its keyword arguments.
            ctx: filled in for the parameters that take it.
            seconds: its time; None for no limit.
            held: what the call holds. A thread that runs on takes it over until it ends.

        Raises:
            TimedOut: it took longer than `seconds`.
        """
        if tool.isolation is not None:
            if self._processes is None:
                self._processes = Processes(PROCESSES)
            return await self._processes.run(tool, arguments, ctx, seconds)
        arguments, cancel = with_context(tool, arguments, ctx)
        try:
            if tool.signature.is_async:
                return await on_loop(tool, tool.function(**arguments), seconds)
            return await self._in_thread(tool, arguments, seconds, held)
        except BaseException:
            if cancel is not None:
                cancel.cancel()  # a function that was given up can see that it was
            raise

    async def _in_thread(
        self, tool: Tool, arguments: dict[str, Any], seconds: float | None, held: ExitStack | None
    ) -> Any:
        try:
            value = await in_thread(self._threads, partial(_call, tool, arguments), seconds, held)
        except Expired as error:
            raise TimedOut(tool.name, seconds or 0) from error
        # A plain function may still give a coroutine, as decorators of async functions do.
        return await on_loop(tool, value, seconds) if is_pending(value) else value

    async def close(self) -> None:
        """Lets threads and processes go."""
        self._threads.close()
        if self._processes is not None:
            await self._processes.close()
            self._processes = None


def _call(tool: Tool, arguments: dict[str, Any]) -> Any:
    # An iterator does its work when it is read, so it is read here, in the thread.
    return spent(tool.function(**arguments))
