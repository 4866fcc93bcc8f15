"""One call of one tool, from the model's arguments to what the model is told.

This is the core of the tool chain, below all layers. A failure of the tool is a response, not an
exception (R-TOOL-2, R-FAIL-1); only a cancelled turn and fatal failures are raised.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from retinue.errors import Failure, ToolError, classify
from retinue.messages import ToolCall
from retinue.tools.asking import CallWaits, Waiting
from retinue.tools.base import NOTHING, ToolContext, ToolResponse, ToolReturn
from retinue.tools.engines.base import Engine, TimedOut
from retinue.tools.results import as_result, said
from retinue.tools.schema import ArgumentsError
from retinue.tools.shapes import is_mapping
from retinue.tools.tool import Tool

NAMES_SHOWN: Final = 100
"""Names of tools that the answer to an unknown name lists."""


async def invoke(
    engine: Engine,
    call: ToolCall,
    tool: Tool | None,
    arguments: Mapping[str, Any] | None,
    ctx: ToolContext,
    *,
    names: Sequence[str],
) -> ToolResponse:
    """Runs one call.

    Args:
        engine: where the body runs.
        call: the call as the model wrote it.
        tool: the tool it names, or None if there is none of that name.
        arguments: JSON values to check and hand over; None where the model wrote no JSON object.
        ctx: for tools that take it.
        names: the names of the tools that there are, for the answer to a name that is none.

    Returns:
        the result, its writes on success, the class of the failure otherwise.

    Raises:
        CancelledError: the turn is being cancelled.
        BaseException: a fatal failure, as it is.
    """
    if tool is None:
        return _refused(call, _unknown(call.name, names))
    if arguments is None:
        return _refused(call, _no_object(call))
    try:
        value = await engine.body(tool, tool.bind(arguments), ctx)
        writes = NOTHING
        if type(value) is ToolReturn:
            value, writes = value.value, _checked(value.writes)
    except CallWaits as signal:
        return waits(call, signal.waiting)
    except BaseException as error:
        if _ends_turn(error, ctx):
            raise
        return failed(call, error)
    return ToolResponse(result=as_result(call, value), writes=writes)


def waits(call: ToolCall, waiting: Waiting) -> ToolResponse:
    """The response to a call that cannot end before somebody has answered."""
    return ToolResponse(result=as_result(call, "Waits for an answer.", ok=False), waiting=waiting)


def failed(call: ToolCall, error: BaseException) -> ToolResponse:
    """The response to a failure: its class, and its text for the model."""
    return ToolResponse(
        result=as_result(call, _told(error), ok=False),
        failure=failure_of(error),
        error=error,
        retry_after=_retry_after(error),
    )


def failure_of(error: BaseException) -> Failure:
    """The class of a failure; for a group that of its gravest member."""
    return max((classify(one) for one in _leaves(error)), key=_GRAVITY.__getitem__)


_GRAVITY: Final[dict[Failure, int]] = {
    "semantic": 0,
    "transient": 1,
    "environment": 2,
    "fatal": 3,
}


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if getattr(error, "failure", None) or not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _leaves(member)


def _retry_after(error: BaseException) -> float | None:
    asked = [getattr(one, "retry_after", None) for one in _leaves(error)]
    seconds = [one for one in asked if isinstance(one, (int, float)) and one >= 0]
    return max(seconds, default=None)


def _ends_turn(error: BaseException, ctx: ToolContext) -> bool:
    if isinstance(error, asyncio.CancelledError):
        # A tool may raise it without anybody having cancelled; then it is that tool's failure.
        task = asyncio.current_task()
        return ctx.cancel.cancelled or (task is not None and task.cancelling() > 0)
    return isinstance(error, GeneratorExit) or failure_of(error) == "fatal"


def _checked(writes: Any) -> Mapping[str, Any]:
    if is_mapping(writes):
        return writes
    raise ToolError(f"ToolReturn has writes={writes!r}; they must be a mapping of slots to values.")


def _told(error: BaseException) -> str:
    if isinstance(error, (ArgumentsError, TimedOut)):
        return str(error)
    text = _named(error)
    members = [_named(one) for one in _leaves(error) if one is not error]
    return f"{text}: {'; '.join(members)}" if members else text


def _named(error: BaseException) -> str:
    name, text = type(error).__name__, said(error)
    return f"{name}: {text}" if text else name


def _refused(call: ToolCall, text: str) -> ToolResponse:
    return ToolResponse(result=as_result(call, text, ok=False), failure="semantic")


def _unknown(name: str, names: Sequence[str]) -> str:
    if not names:
        return f"There is no tool {name!r}, and no other; answer without tools."
    more = len(names) - NAMES_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f"There is no tool {name!r}. The tools are: {', '.join(names[:NAMES_SHOWN])}{rest}."


def _no_object(call: ToolCall) -> str:
    try:
        value = msgspec.json.decode(call.arguments)
    except msgspec.DecodeError as error:
        what = f"they are no valid JSON ({error})"
    else:
        what = "they are no JSON object" + (" but null" if value is None else "")
    return f"The arguments of {call.name!r} cannot be read: {what}. Write one JSON object."
