"""Processes for tools: work that needs a processor of its own, and time limits that truly end it.

A job crosses as bytes: the name of the function, its arguments, what of the context can be sent,
and the context variables that live in modules. `worker` is the other side.
"""

import asyncio
import contextvars
import pickle
import sys
from collections.abc import Mapping
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

    __slots__ = ("_pool", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool: Any = None

    async def run(
        self, tool: Tool, arguments: dict[str, Any], ctx: ToolContext, seconds: float | None
    ) -> Any:
        """What the function returns, or raises, in a process.

        Raises:
            TimedOut: it took longer than `seconds`; its process is ended.
            ToolError: it cannot be sent there, or the process died.
        """
        job = _packed(tool, arguments, ctx)
        if self._pool is None:
            self._pool = _started(self.size)
        pool = self._pool
        try:
            answer = await asyncio.wrap_future(pool.schedule(work, args=(job,), timeout=seconds))
        except TimeoutError as error:
            raise TimedOut(tool.name, seconds or 0) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise ToolError(
                f"The pool was closed while the tool {tool.name!r} ran in it.",
                failure="environment",
            ) from error
        except (OSError, RuntimeError) as error:  # a process died, or none could be started
            if not pool.active and self._pool is pool:
                self._pool = None
            raise ToolError(
                f"The process of the tool {tool.name!r} died ({error}). A script that starts"
                ' processes needs the guard `if __name__ == "__main__":`.',
                failure="transient",
            ) from error
        return received(answer)

    async def close(self) -> None:
        """Ends the processes, with what still runs in them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            await asyncio.to_thread(pool.join)


def _started(size: int) -> Any:
    import multiprocessing

    import pebble

    # A fork of a process with threads and an event loop may hang; a fresh one does not.
    return pebble.ProcessPool(max_workers=size, context=multiprocessing.get_context("spawn"))


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


_places: dict[contextvars.ContextVar[Any], tuple[str, str] | None] = {}


def _variables() -> tuple[Variable, ...]:
    found: list[Variable] = []
    for variable, value in contextvars.copy_context().items():
        if variable not in _places:
            _places[variable] = _place(variable)
        place = _places[variable]
        data = None if place is None else _try_dump(value)
        if place is not None and data is not None:
            found.append(Variable(*place, data))
    return tuple(found)


def _place(variable: contextvars.ContextVar[Any]) -> tuple[str, str] | None:
    """The module and the name that hold a variable, so that another process finds it."""
    for name, module in tuple(sys.modules.items()):
        names: Mapping[str, Any] = getattr(module, "__dict__", _NONE)
        for attribute, value in tuple(names.items()):
            if value is variable:
                return name, attribute
    return None


_NONE: Final[Mapping[str, Any]] = {}
