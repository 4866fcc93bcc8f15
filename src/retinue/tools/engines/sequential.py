"""The plainest engine: one call after another."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from retinue.tools.base import ToolContext
from retinue.tools.engines.base import C, R, check_timeout, in_order, seconds_for
from retinue.tools.engines.bodies import Bodies
from retinue.tools.engines.threads import Threads
from retinue.tools.tool import Tool


class Sequential:
    """Runs the calls of a batch in call order, and never builds a task.

    Args:
        timeout: seconds a body may take where its tool says nothing; None for no limit.

    Raises:
        ConfigError: the timeout is no such number.
    """

    __slots__ = ("_bodies", "timeout")

    def __init__(self, timeout: float | None = None) -> None:
        check_timeout("Sequential", timeout)
        self.timeout = timeout
        self._bodies = Bodies(Threads())

    async def run(self, calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
        """The outcomes, in call order."""
        return await in_order(calls, one)

    async def body(self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        """Runs the function: on the loop, or in a thread, so that it cannot block the loop."""
        return await self._bodies.run(tool, arguments, ctx, seconds_for(tool, self.timeout))

    async def close(self) -> None:
        """Lets idle threads and all processes go. The engine may be used again."""
        await self._bodies.close()
