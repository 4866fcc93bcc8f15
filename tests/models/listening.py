"""A server on this machine, for what plays a vendor."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def listening(
    path: str, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> AsyncIterator[str]:
    """Answers what is posted to a path until the end of the block; gives the server's address."""
    app = web.Application(client_max_size=2**26, handler_args={"handler_cancellation": True})
    app.router.add_post(path, handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
