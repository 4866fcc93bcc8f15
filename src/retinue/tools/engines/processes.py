"""Processes for tools: work that needs a processor of its own, and time limits that truly end it.

A job crosses as bytes: the name of the function, its arguments, what of the context can be sent,
and the context variables that live in modules. `worker` is the other side.
"""

import asyncio
import contextvars
import pickle
import signal
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, Final

from msgspec import structs

from retinue.errors import ToolError
from retinue.tools.base import CancelToken, ToolContext
from retinue.tools.engines.base import TimedOut
from retinue.tools.engines.worker import Job, Variable, received, work
from retinue.tools.importable import why_not_importable
from retinue.tools.tool import Tool


class Processes:
    """A pool of processes, started at the first call.

    Args:
        size: how many run at once.
    """

    __slots__ = ("_calls", "_pool", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool: Any = None
        self._calls: set[Future[bytes]] = set()

    async def run(
        self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext, seconds: float | None
    ) -> Any:
        """What the function returns, or raises, in a process.

        Raises:
            TimedOut: it took longer than `seconds`; its process is ended.
            ToolError: it cannot be sent there, the process died, or the pool was closed.
        """
        call = await self._scheduled(tool, _packed(tool, arguments, ctx), seconds)
        self._calls.add(call)
        try:
            answer = await asyncio.wrap_future(call)
        except TimeoutError as error:
            raise TimedOut(tool.name, seconds or 0) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if call in self._calls or (task is not None and task.cancelling()):
                raise
            raise _closed(tool) from error
        except (OSError, RuntimeError) as error:
            raise (_lost(tool, error) if call in self._calls else _closed(tool)) from error
        finally:
            self._calls.discard(call)
        return received(answer)

    async def _scheduled(self, tool: Tool, job: bytes, seconds: float | None) -> Future[bytes]:
        try:
            if self._pool is not None and not self._pool.active:  # it broke
                await self._end()
            if self._pool is None:
                self._pool = _pool(self.size)
            return self._pool.schedule(work, args=(job,), timeout=seconds)
        except (OSError, RuntimeError) as error:
            await self._end()
            raise _lost(tool, error) from error

    async def _end(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            await asyncio.to_thread(pool.join)

    async def close(self) -> None:
        """Ends the processes, with what still runs in them."""
        calls, self._calls = self._calls, set()
        await self._end()
        for call in calls:  # or who waits for them would wait for ever
            call.cancel()


def _pool(size: int) -> Any:
    import pebble

    from retinue.tools.engines.spawning import Spawning

    return pebble.ProcessPool(max_workers=size, context=Spawning())


def _lost(tool: Tool, error: BaseException) -> ToolError:
    """The failure of a call whose process did not answer."""
    code = getattr(error, "exitcode", None)  # pebble says so of a process that had begun
    if code is None:
        cause = error.__cause__ or error
        why = f" ({cause})" if isinstance(cause, OSError) else ""
        text = (
            f"No process could be started for the tool {tool.name!r}{why}. A script that starts"
            ' processes needs the guard `if __name__ == "__main__":`.'
        )
    elif code == -signal.SIGKILL:
        text = (
            f"The process of the tool {tool.name!r} was killed, as the system does when memory"
            " runs out."
        )
    else:
        how = signal.strsignal(-code) if code < 0 else f"exit code {code}"
        text = f"The process of the tool {tool.name!r} died ({how})."
    return ToolError(text, failure="transient")


def _closed(tool: Tool) -> ToolError:
    return ToolError(
        f"The pool was closed while the tool {tool.name!r} ran in it.", failure="environment"
    )


def _packed(tool: Tool, arguments: dict[str, Any], ctx: ToolContext) -> bytes:
    reason = why_not_importable(tool.function)
    if reason is not None:
        raise ToolError(
            f"The tool {tool.name!r} cannot run in another process: {reason}. Define it at the top"
            " of a module, or use another engine.",
            failure="environment",
        )
    names = tool.signature.context
    job = Job(
        module=tool.function.__module__,
        path=tool.function.__qualname__,
        arguments=_dumped(tool, "its arguments", arguments),
        names=names,
        context=_dumped(tool, "ctx.data or ctx.state", _portable(ctx)) if names else b"",
        variables=_variables(),
    )
    return pickle.dumps(job)


def _dumped(tool: Tool, what: str, value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:  # pickling runs foreign code
        raise ToolError(
            f"The tool {tool.name!r} cannot run in another process: {what} cannot be pickled"
            f" ({error}).",
            failure="environment",
        ) from error


def _portable(ctx: ToolContext) -> ToolContext:
    return structs.replace(
        ctx,
        cancel=CancelToken(),
        scope=None,
        state=dict(ctx.state),
        context={name: value for name, value in ctx.context.items() if _try_dump(value)},
    )


def _try_dump(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value)
    except Exception:
        return None


def _variables() -> tuple[Variable, ...]:
    found: list[Variable] = []
    for variable, value in contextvars.copy_context().items():
        place = _place(variable)
        data = None if place is None else _try_dump(value)
        if place is not None and data is not None:
            found.append(Variable(*place, data))
    return tuple(found)


@lru_cache(maxsize=1024)
def _place(variable: contextvars.ContextVar[Any]) -> tuple[str, str] | None:
    """The module and the name that hold a variable, so that another process finds it."""
    for name, module in tuple(sys.modules.items()):
        names: Mapping[str, Any] = getattr(module, "__dict__", _NONE)
        for attribute, value in tuple(names.items()):
            if value is variable:
                return name, attribute
    return None


_NONE: Final[Mapping[str, Any]] = {}
