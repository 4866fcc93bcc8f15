"""The gate: asked once for each call of a batch, before any of them runs (R-HITL-1)."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

from retinue.chains import ToolRequest
from retinue.errors import ConfigError
from retinue.tools import Pause, PendingCall, Proceed, Reject, Reply, ToolResponse
from retinue.tools.asking import Kind
from retinue.tools.schema import ArgumentsError

Verdict = Proceed | Pause | Reject | Reply
Gate = Literal["sensitive"] | Callable[[ToolRequest], Verdict | Awaitable[Verdict]]
"""Decides over one call: "sensitive" pauses for sensitive tools, a function for what it likes. It
may be `async`. One that raises pauses: it fails closed."""

_QUESTIONS: Final[Mapping[Kind, str]] = {
    "question": "The model asks a question.",
    "external": "This tool runs outside; give its result.",
}


async def ask(gate: Gate | None, request: ToolRequest) -> ToolResponse | PendingCall | None:
    """What is decided over a call before it runs.

    Returns:
        None to run it, the response that stands in for the run, or what must be answered first.
    """
    verdict = Proceed() if gate is None else await _verdict(gate, request)
    if isinstance(verdict, Reject):
        return request.refuse(verdict.reason)
    if isinstance(verdict, Reply):
        return request.respond(verdict.value)
    asks: Kind | None = None if request.tool is None else request.tool.asks
    if not (asks or isinstance(verdict, Pause)) or not _can_run(request):
        return None  # also where it can only fail: nobody is asked about that
    if isinstance(verdict, Pause):
        return pending(request, "approval", verdict.why)
    return pending(request, asks, _QUESTIONS[asks]) if asks else None


def pending(
    request: ToolRequest,
    kind: Kind,
    why: str,
) -> PendingCall:
    """The call as one that waits."""
    tool = request.tool
    return PendingCall(
        id=request.call.id,
        tool=request.call.name,
        kind=kind,
        why=why,
        arguments=request.arguments,
        parameters=None if tool is None else tool.spec.parameters,
    )


def _can_run(request: ToolRequest) -> bool:
    if request.tool is None or request.arguments is None:
        return False
    try:
        request.tool.bind(request.arguments)
    except ArgumentsError:
        return False
    return True


async def _verdict(gate: Gate, request: ToolRequest) -> Verdict:
    if isinstance(gate, str):
        sensitive = request.tool is not None and request.tool.sensitive
        return Pause() if sensitive else Proceed()
    try:
        verdict = gate(request)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    except Exception as error:
        return Pause(f"The gate failed ({type(error).__name__}), so this call needs approval.")
    if isinstance(verdict, Verdict):  # pyright: ignore[reportUnnecessaryIsInstance]
        return verdict
    raise ConfigError(
        f"The gate returned {verdict!r} for {request.call.name!r}; it must return Proceed(),"
        " Pause(why), Reject(reason) or Reply(value)."
    )
