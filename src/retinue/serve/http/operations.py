"""One operation of the HTTP interface: a row that says all that is to be known of it.

The row is what requests are checked by and what the OpenAPI document says, so that neither can
say something else than the other.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive

from retinue.messages.masking import mask
from retinue.serve.access import Caller, Scope
from retinue.serve.bounds import Bounds
from retinue.serve.faults import Code, Fault, Refused, fault_of, record
from retinue.serve.gateway import Gateway
from retinue.serve.http.bodies import ErrorBody
from retinue.serve.jobs import Job
from retinue.serve.keeping import Reader
from retinue.serve.wire import encode

T = TypeVar("T")

STATUS: Final[dict[Code, int]] = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "too_slow": 408,
    "conflict": 409,
    "too_large": 413,
    "too_many": 429,
    "internal": 500,
    "model_failed": 502,
    "unavailable": 503,
}
"""The HTTP status of each kind of failure."""

NOBODY: Final = Caller(None, frozenset())
"""The caller of an operation that asks for no scope."""


class Call(Struct, frozen=True):
    """One request, when all that can be checked of it has been.

    Attributes:
        body, query: as the operation's row describes them; None if it has none.
    """

    gateway: Gateway
    request: Request
    caller: Caller
    body: Any = None
    query: Any = None

    @property
    def id(self) -> str:
        """The id in the path."""
        return self.request.path_params["id"]

    async def start(self, job: Job) -> Reader:
        """Runs a job for the caller. A client that leaves while the job waits for a place takes it
        along, unless it is detached.

        Raises:
            ClientDisconnect: it has left.
            Refused, RetinueError: as `Gateway.start`.
        """
        starting = self.gateway.start(self.caller, job)
        return await (starting if job.detached else unless_gone(starting, self.request.receive))


Answer = Response | Callable[..., Awaitable[None]]
"""A response of Starlette's, or any other ASGI app."""


class Operation(Struct, frozen=True, kw_only=True):
    """One operation.

    Attributes:
        name: what the OpenAPI document calls it.
        scope: what a caller must be allowed, or None for everybody.
        summary: what it does, in a sentence.
        body, query, gives: what it takes and gives; None for nothing.
        status: the HTTP status when it went well.
        streams: whether it may give a stream of events instead.
        foreign: whether those events are of another's format, which the document does not describe.
        refuses: failures beside those that any operation of its kind has.
        media_type: of what it gives.
        errors: how a failure is written, where that is not the usual form.
    """

    name: str
    method: Literal["GET", "POST", "DELETE"]
    path: str
    scope: Scope | None
    summary: str
    handler: Callable[[Call], Awaitable[Answer]]
    body: type[Struct] | None = None
    query: type[Struct] | None = None
    gives: type[Struct] | None = None
    status: int = 200
    streams: bool = False
    foreign: bool = False
    refuses: tuple[Code, ...] = ()
    media_type: str = "application/json"
    errors: Callable[[Fault], Response] | None = None


async def perform(operation: Operation, gateway: Gateway, request: Request) -> Answer:
    """Answers a request; whatever fails becomes an answer too."""
    write = operation.errors or error_response
    try:
        caller = NOBODY
        if operation.scope is not None:
            caller = gateway.admit(credential(request), operation.scope)
        query = body = None
        if operation.query is not None:
            query = _query(request, operation.query)
        if operation.body is not None:
            data = await read_body(request, gateway.bounds)
            body = _body(data, operation.body)
        return await operation.handler(Call(gateway, request, caller, body, query))
    except ClientDisconnect:
        return Response()
    except Exception as error:
        record(error, operation.name)
        return write(fault_of(error))


def credential(request: Request) -> str | None:
    """The key or token of a request, or None."""
    kind, _, rest = request.headers.get("authorization", "").partition(" ")
    return rest.strip() or None if kind.lower() == "bearer" else None


async def read_body(request: Request, bounds: Bounds) -> bytes:
    """The body, in the bounds of time and size.

    Raises:
        Refused: it is no JSON by its header (`invalid`), too large or too slow.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A page of another site can send no JSON without asking first.
        raise Refused("invalid", "Send JSON, with the header Content-Type: application/json.")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(bounds.body_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > bounds.body_bytes + _HEARD_OUT:
                    break
                if size <= bounds.body_bytes:
                    chunks.append(chunk)
    except TimeoutError:
        raise Refused(
            "too_slow", f"The body did not come within {bounds.body_seconds:g} seconds."
        ) from None
    if size > bounds.body_bytes:
        raise Refused("too_large", f"A body has at most {bounds.body_bytes} bytes.")
    return b"".join(chunks)


_HEARD_OUT: Final = 16_000_000
"""Bytes over the limit that are taken and dropped, since a client that is cut off while it sends
does not hear why."""


def _body(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused("invalid", f"The body cannot be read: {mask(str(error))}.") from error


def _query(request: Request, kind: type[T]) -> T:
    try:
        return msgspec.convert(dict(request.query_params), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused("invalid", f"The query cannot be read: {error}.") from error


def json_response(value: Struct, status: int = 200) -> Response:
    """A struct as the body of a response."""
    return Response(encode(value), status, media_type="application/json")


def error_response(fault: Fault) -> Response:
    """A failure as a response."""
    response = json_response(ErrorBody(fault), STATUS[fault.code])
    return with_advice(response, fault)


def with_advice(response: Response, fault: Fault) -> Response:
    """The response of a failure, with what headers say of it."""
    if fault.code == "unauthenticated":
        response.headers["www-authenticate"] = "Bearer"
    if fault.retry_after is not None:
        response.headers["retry-after"] = str(max(1, math.ceil(fault.retry_after)))
    return response


async def unless_gone(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """What the work gives, as long as the client is there.

    Raises:
        ClientDisconnect: it has left, and the work was cancelled.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_until_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
