"""What goes wrong, in the status codes of gRPC."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from grpc import StatusCode, aio

from retinue.serve.faults import Code, Fault, fault_of, record

CODE_OF: Final[dict[Code, StatusCode]] = {
    "invalid": StatusCode.INVALID_ARGUMENT,
    "unauthenticated": StatusCode.UNAUTHENTICATED,
    "forbidden": StatusCode.PERMISSION_DENIED,
    "not_found": StatusCode.NOT_FOUND,
    "conflict": StatusCode.FAILED_PRECONDITION,
    "too_large": StatusCode.RESOURCE_EXHAUSTED,
    "too_many": StatusCode.RESOURCE_EXHAUSTED,
    "too_slow": StatusCode.DEADLINE_EXCEEDED,
    "unavailable": StatusCode.UNAVAILABLE,
    "model_failed": StatusCode.INTERNAL,
    "internal": StatusCode.INTERNAL,
}


def number_of(fault: Fault) -> int:
    """The code as a number, as it stands in a message."""
    return CODE_OF[fault.code].value[0]


@asynccontextmanager
async def refusing(context: "aio.ServicerContext[Any, Any]", doing: str) -> AsyncGenerator[None]:
    """Ends a call with the status of an error that is raised inside.

    A time after which it may work is told as gRPC's clients read it.

    Args:
        context: the call.
        doing: what it is, for the log of the server.
    """
    try:
        yield
    except Exception as error:
        record(error, doing)
        fault = fault_of(error)
        pushback = ()
        if fault.retry_after is not None:
            pushback = (("grpc-retry-pushback-ms", str(round(fault.retry_after * 1_000))),)
        await context.abort(CODE_OF[fault.code], fault.message, pushback)
