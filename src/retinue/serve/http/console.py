"""The console: a page for a person who develops or watches an agent, at the root of the app.

Its files lie in `serve/console` and are sent as they are. They hold nothing that is not public, so
nobody is asked for a key before the page asks for what the server keeps.
"""

import hashlib
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""What the page may do. It makes nodes and sets texts; nothing ever becomes markup or code."""

_HEADERS: Final = {
    "cache-control": "no-cache",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
}


def console_routes() -> list[Route]:
    """The page at `/`, and what it is made of below `/console/`."""
    assets = {
        asset.name: _Asset(asset.read_bytes(), kind)
        for asset in files("retinue.serve").joinpath("console").iterdir()
        if (kind := _KINDS.get(asset.name[asset.name.rfind(".") :])) is not None
    }
    page = assets.pop("index.html")
    return [
        Route("/", page.show, methods=["GET"]),
        *(Route(f"/console/{name}", asset.show, methods=["GET"]) for name, asset in assets.items()),
    ]


class _Asset:
    """One file of the page."""

    def __init__(self, data: bytes, kind: str) -> None:
        self._data = data
        self._kind = kind
        self._mark = f'"{hashlib.sha256(data).hexdigest()[:32]}"'

    async def show(self, request: Request) -> Response:
        """The file; nothing, where the browser has the same already."""
        headers = {**_HEADERS, "etag": self._mark}
        # A proxy that compresses makes the mark a weak one: W/"...".
        if self._mark in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self._data, media_type=self._kind, headers=headers)
