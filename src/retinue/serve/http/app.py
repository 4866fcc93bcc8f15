"""The ASGI app: a gateway behind HTTP, to be run by itself or mounted in another app."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from retinue.serve import agui, openai_api
from retinue.serve.faults import Code, Fault
from retinue.serve.gateway import Gateway
from retinue.serve.http import about, conversations, turns
from retinue.serve.http.console import console_routes
from retinue.serve.http.openapi import document
from retinue.serve.http.operations import (
    Answer,
    Call,
    Operation,
    error_response,
    perform,
)
from retinue.serve.metrics import CONTENT_TYPE, Metrics

_CODES: Final[dict[int, Code]] = {404: "not_found", 405: "invalid"}


def http_app(
    gateway: Gateway,
    *,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    console: bool = True,
    close: bool = True,
) -> Starlette:
    """The app of a gateway.

    Args:
        gateway: what it is a door to.
        origins: the origins whose pages may use it from a browser; by default none but its own.
        hosts: the host names that requests may be for; by default any.
        console: whether there is the page of the console at `/`.
        close: whether the gateway is closed with the app.
    """
    operations = _operations(Metrics(gateway))
    described = msgspec.json.encode(document(operations))

    async def show_document(request: Request) -> Response:
        return Response(described, media_type="application/json")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        yield
        if close:
            await gateway.close()

    app = Starlette(
        routes=[
            *(_route(one, gateway) for one in operations),
            Route("/openapi.json", show_document, methods=["GET"]),
            *(console_routes() if console else ()),
        ],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type", "idempotency-key", "last-event-id"],
            expose_headers=["x-turn-id"],
        )
    app.add_middleware(_Guard, hosts=tuple(name.lower() for name in hosts))
    app.state.gateway = gateway
    return app


def _operations(metrics: Metrics) -> tuple[Operation, ...]:
    async def show_metrics(call: Call) -> Answer:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    shown = Operation(
        name="metrics",
        method="GET",
        path="/metrics",
        scope="metrics",
        summary="Gives the metrics as Prometheus reads them.",
        handler=show_metrics,
        media_type="text/plain",
    )
    return (
        *turns.OPERATIONS,
        *conversations.OPERATIONS,
        *openai_api.OPERATIONS,
        *agui.OPERATIONS,
        *about.OPERATIONS,
        shown,
    )


def _route(one: Operation, gateway: Gateway) -> Route:
    route = Route(one.path, _Endpoint(one, gateway), methods=[one.method], name=one.name)
    if one.streams and route.methods is not None:
        route.methods.discard("HEAD")  # it would read the whole stream, and show none of it
    return route


class _Endpoint:
    """One operation as an ASGI app, which is what a route takes an object for."""

    def __init__(self, operation: Operation, gateway: Gateway) -> None:
        self._operation = operation
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await perform(self._operation, self._gateway, Request(scope, receive))
        await answer(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    """What Starlette refuses itself, in the form of all refusals."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = "There is nothing at this path." if status == 404 else "This path takes other methods."
    response = error_response(Fault(_CODES.get(status, "invalid"), words))
    response.status_code = status
    headers: Any = getattr(error, "headers", None)
    response.headers.update(headers or {})
    return response


class _Guard:
    """What holds for every response, and for which hosts requests may be.

    A page of another site can let a name of its own lead to this machine; a request for such a
    name is refused.
    """

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._hosts and _host(scope) not in self._hosts:
            refusal = error_response(Fault("forbidden", "This server is not for that host name."))
            await refusal(scope, receive, send)
            return

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                headers += [pair for pair in _HEADERS if pair[0] not in names]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, guarded)


_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


def _host(scope: Scope) -> str:
    """The name that a request is for, without its port."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host = named.decode("latin-1").lower()
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]
