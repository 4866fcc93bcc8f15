"""The gate: asked once for each call of a batch, before any of them runs (R-HITL-1)."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from retinue.chains import ToolRequest
from retinue.errors import ConfigError
from retinue.tools import ToolResponse


class Proceed(Struct, frozen=True):
    """The call may run."""


class Reject(Struct, frozen=True):
    """The call does not run; the model is told why."""

    reason: str


class Reply(Struct, frozen=True):
    """The call does not run; this is its result."""

    value: Any


Verdict = Proceed | Reject | Reply
Gate = Callable[[ToolRequest], Verdict | Awaitable[Verdict]]
"""Decides over one call. It may be `async`. One that raises rejects: it fails closed."""


async def ask(gate: Gate, request: ToolRequest) -> ToolResponse | None:
    """What the gate decides: None to go on, or the response that stands in for the run."""
    try:
        verdict = gate(request)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    except Exception as error:
        reason = f"The gate failed ({type(error).__name__}), so this call was not allowed."
        return request.refuse(reason).with_(error=error)
    if isinstance(verdict, Proceed):
        return None
    if isinstance(verdict, Reject):
        return request.refuse(verdict.reason)
    if isinstance(verdict, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]
        return request.respond(verdict.value)
    raise ConfigError(
        f"The gate returned {verdict!r} for {request.call.name!r}; it must return Proceed(),"
        " Reject(reason) or Reply(value)."
    )
