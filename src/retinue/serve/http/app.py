"""The ASGI app: a gateway behind HTTP, to be run by itself or mounted in another app."""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
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

from retinue.errors import ConfigError
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

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+|\*")
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

    Raises:
        ConfigError: an origin is none, so that no page could ever be let in by it.
    """
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ConfigError(
                f"{origin!r} is no origin; give it as browsers do, such as https://app.example,"
                " without a path or a slash at the end."
            )
    operations = _operations(Metrics(gateway))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        yield
        if close:
            await gateway.close()

    app = Starlette(
        routes=[
            *_routes(operations, gateway),
            _document_route(operations),
            *(console_routes() if console else ()),
        ],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # it would lead to whatever host the request names
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],  # clients of OpenAI's API have a dozen of their own
            expose_headers=["retry-after", "x-should-retry", "x-turn-id"],
        )
    app.add_middleware(_Guard, hosts=tuple(name.lower() for name in hosts))
    app.state.gateway = gateway
    return app


def _document_route(operations: Sequence[Operation]) -> Route:
    described = document(operations)

    async def show(request: Request) -> Response:
        below: str = request.scope.get("root_path") or "/"  # where this app is mounted
        told = {**described, "servers": [{"url": below}]}
        return Response(msgspec.json.encode(told), media_type="application/json")

    return Route("/openapi.json", show, methods=["GET"])


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


def _routes(operations: Sequence[Operation], gateway: Gateway) -> Iterator[Route]:
    """One route for each path, so that a refusal of a method names all that the path takes."""
    paths: dict[str, dict[str, Operation]] = {}
    for one in operations:
        methods = paths.setdefault(one.path, {})
        methods[one.method] = one
        if one.method == "GET" and not one.streams:
            # A HEAD of a stream would read all of it, and show nothing.
            methods["HEAD"] = one
    for path, methods in paths.items():
        route = Route(path, _Endpoint(methods, gateway))
        route.methods = {*methods}
        yield route


class _Endpoint:
    """The operations of one path as an ASGI app, which is what a route takes an object for."""

    def __init__(self, operations: Mapping[str, Operation], gateway: Gateway) -> None:
        self._operations = operations
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations[scope["method"]]
        answer = await perform(operation, self._gateway, Request(scope, receive))
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

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                headers += [pair for pair in _HEADERS if pair[0] not in names]
                message = {**message, "headers": headers}
            await send(message)

        app = self._app
        if self._hosts and _host(scope) not in self._hosts:
            app = error_response(Fault("forbidden", "This server is not for that host name."))
        await app(scope, receive, guarded)


_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


def _host(scope: Scope) -> str:
    """The name that a request is for, without its port."""
    named = next((value for name, value in scope["headers"] if name == b"host"), b"")
    host = named.decode("latin-1").lower()
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]
