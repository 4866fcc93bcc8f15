"""The default engine: async tools as tasks, sync tools in threads, all calls of a batch at once."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from retinue.errors import ConfigError
from retinue.tools.base import ToolContext
from retinue.tools.engines.base import C, R, at_once, check_count, check_timeout, seconds_for
from retinue.tools.engines.bodies import Bodies
from retinue.tools.engines.threads import Threads
from retinue.tools.shapes import is_mapping
from retinue.tools.tool import Tool


class Concurrent:
    """Runs the calls of a batch at once.

    Under a limit, a sync tool that was given up keeps its place until its thread ends.

    Args:
        limit: bodies that may run at once, over all turns of the agent; None for any number.
        tag_limits: the same for the tools of a tag, such as `{"database": 4}`.
        timeout: seconds a body may take where its tool says nothing; None for no limit.

    Raises:
        ConfigError: a limit or the timeout is no such number.
    """

    __slots__ = ("_bodies", "_gates", "_limits", "timeout")

    def __init__(
        self,
        limit: int | None = None,
        tag_limits: Mapping[str, int] | None = None,
        timeout: float | None = None,
    ) -> None:
        check_timeout("Concurrent", timeout)
        if limit is not None:
            check_count("Concurrent", "limit", limit)
        if not is_mapping(tag_limits or {}):
            raise ConfigError(
                f"Concurrent(tag_limits={tag_limits!r}): give numbers by tags, such as"
                " {'database': 4}."
            )
        for tag, count in (tag_limits or {}).items():
            check_count("Concurrent", f"tag_limits[{tag!r}]", count)
        self.timeout = timeout
        self._limits: dict[str | None, int] = {}
        self._limits.update(tag_limits or {})
        if limit is not None:
            self._limits[None] = limit
        # One set of gates for each event loop: a script may run several, one after another.
        self._gates: dict[asyncio.AbstractEventLoop, dict[str | None, asyncio.Semaphore]] = {}
        self._bodies = Bodies(Threads())

    async def run(self, calls: Sequence[C], one: Callable[[C], Awaitable[R]]) -> list[R]:
        """The outcomes, in call order."""
        return await at_once(calls, one)

    async def body(self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> Any:
        """Runs the function: on the loop, or in a thread. Its time counts from when it has its
        place under the limits."""
        seconds = seconds_for(tool, self.timeout)
        if not self._limits:
            return await self._bodies.run(tool, arguments, ctx, seconds)
        with contextlib.ExitStack() as held:
            for gate in self._passed(tool):
                await gate.acquire()
                held.callback(gate.release)
            return await self._bodies.run(tool, arguments, ctx, seconds, held)

    def _passed(self, tool: Tool) -> list[asyncio.Semaphore]:
        """The gates of a tool. The order is the same for all, so that no two wait for each other;
        the common one comes last, so that who waits for a tag keeps nobody else waiting."""
        loop = asyncio.get_running_loop()
        gates = self._gates.get(loop)
        if gates is None:
            for dead in [one for one in list(self._gates) if one.is_closed()]:
                self._gates.pop(dead, None)
            gates = {name: asyncio.Semaphore(count) for name, count in self._limits.items()}
            self._gates[loop] = gates
        names: list[str | None] = [*sorted(set(tool.tags)), None]
        return [gates[name] for name in names if name in gates]

    async def close(self) -> None:
        """Lets idle threads and all processes go. The engine may be used again."""
        await self._bodies.close()
