"""HTTP to providers: connections that are shared and kept, a request, an answer read as it comes.

It knows nothing of what is sent. There is one session per event loop, for all models; it is
opened at the first call, which is also when aiohttp is imported, and closed with the loop.
What its errors mean stands in `connection_errors`.
"""

import asyncio
import atexit
import socket
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

from retinue.errors import ModelError
from retinue.models.connection_errors import is_stale, translated
from retinue.models.failures import Peer
from retinue.models.proxies import Proxy, proxy_of

if TYPE_CHECKING:
    import aiohttp

CONNECT: Final = 10.0
"""Seconds to wait for a connection: name, TCP and TLS."""
SILENCE: Final = 120.0
"""Seconds without a byte before a call fails, unless the model or the request says otherwise."""

_KEPT: Final = 60.0  # seconds an idle connection is kept; tools run that long between two calls
_FAREWELL: Final = 0.05  # seconds to wait for the end of a body whose last event has come
_ERROR_BODY: Final = 65_536  # bytes of an error's body that are read
_PIECE: Final = 65_536  # bytes of a body that asyncio takes whether or not they can go


class Reply:
    """An answer that has begun: its status and headers are there, its body is not.

    Whoever gets one calls `close`, whatever happens.

    Attributes:
        status: the HTTP status.
        headers: they ignore case.
        answered: set by the reader when something of the answer has been handed on. A connection
            that breaks after that leaves half an answer; before, the call may be made again.
    """

    __slots__ = (
        "_content", "_peer", "_pool", "_response", "_silence", "answered", "headers", "status",
    )  # fmt: skip

    def __init__(
        self, pool: "_Pool", response: "aiohttp.ClientResponse", peer: Peer, silence: float
    ) -> None:
        self._pool: _Pool | None = pool
        self._response = response
        self._content = response.content
        self._peer = peer
        self._silence = silence
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.answered = False

    @property
    def media_type(self) -> str:
        """The content type without its parameters, in lower case; empty if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def chunk(self) -> bytes:
        """The bytes that have come since the last call, at least one; empty at the end.

        Raises:
            ModelError: the connection broke, or was silent for too long.
        """
        try:
            return await self._content.readany()
        except Exception as error:
            failure = translated(
                self._peer, error,
                connect=CONNECT, silence=self._silence, answered=self.answered,
            )  # fmt: skip
        raise failure

    async def read(self) -> bytes:
        """The rest of the body."""
        chunks: list[bytes] = []
        while not self._content.at_eof():
            chunks.append(await self.chunk())
        return b"".join(chunks)

    async def read_error(self) -> bytes:
        """The start of the body, or what came of it: an error is told even if its words are cut."""
        chunks: list[bytes] = []
        size = 0
        try:
            while size < _ERROR_BODY and (chunk := await self.chunk()):
                chunks.append(chunk)
                size += len(chunk)
        except ModelError:
            pass
        return b"".join(chunks)[:_ERROR_BODY]

    async def settle(self) -> None:
        """Waits a moment for the end of the body, without which the connection cannot be kept."""
        if not self._content.at_eof():
            try:
                async with asyncio.timeout(_FAREWELL):
                    await self._content.readany()
            except Exception:
                pass  # the answer is complete; only the connection is lost

    def close(self) -> None:
        """Lets go of the connection: kept if the body was read to its end, else shut."""
        if self._pool is not None:
            self._pool.calls -= 1
            self._pool = None
        self._response.release() if self._content.at_eof() else self._response.close()


async def post(
    peer: Peer, url: str, headers: Mapping[str, str], body: bytes, *, silence: float, user: object
) -> Reply:
    """Sends a request and waits for the head of the answer.

    A kept connection that turns out dead before a byte of the answer has come is replaced at
    once, unnoticed.

    Args:
        peer: whom errors name.
        url: where to.
        headers: all of them, the key included.
        body: JSON.
        silence: seconds without a byte before it fails.
        user: who will call `close`; the session stays open for its other users.

    Raises:
        ModelError: no connection, no answer in time, or no HTTP.
    """
    pool = await _pool()
    pool.users.add(user)
    pool.calls += 1
    try:
        response = await _response(pool, peer, url, headers, body, silence)
    except BaseException:
        pool.calls -= 1
        raise
    return Reply(pool, response, peer, silence)


async def _response(
    pool: "_Pool", peer: Peer, url: str, headers: Mapping[str, str], body: bytes, silence: float
) -> "aiohttp.ClientResponse":
    proxy = pool.proxy(url)
    permit = proxy.headers if proxy is not None else None
    if permit and url.startswith("http:"):  # there is no tunnel that could carry it
        headers = {**headers, **permit}
    send = _whole if len(body) <= _PIECE else _in_pieces
    while True:
        attempt = _Attempt()
        _running.set(attempt)
        try:
            return await send(
                pool.session,
                url,
                headers,
                body,
                silence,
                proxy=None if proxy is None else proxy.url,
                proxy_headers=permit,
            )
        except Exception as error:
            if attempt.reused and is_stale(error):
                continue
            failure = translated(peer, error, connect=CONNECT, silence=silence)
        raise failure


def _whole(
    session: "aiohttp.ClientSession",
    url: str,
    headers: Mapping[str, str],
    body: "bytes | _Pieces",
    silence: float,
    **proxy: Any,
) -> "Awaitable[aiohttp.ClientResponse]":
    return session.post(
        url,
        data=body,
        headers=headers,
        timeout=_timeouts(silence),
        allow_redirects=False,  # a POST would become a GET, and take the key elsewhere
        **proxy,
    )


async def _in_pieces(
    session: "aiohttp.ClientSession",
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    silence: float,
    **proxy: Any,
) -> "aiohttp.ClientResponse":
    """The same for a body that a vendor may take slowly, or not at all.

    aiohttp counts the silence from the end of the body on, and would wait for that for ever.
    """
    import aiohttp

    limit = asyncio.timeout(None)
    pieces = _Pieces(body, silence, limit)
    headers = {**headers, "Content-Length": str(len(body))}
    try:
        async with limit:
            try:
                return await _whole(session, url, headers, pieces, silence, **proxy)
            finally:
                pieces.answered = True
    except TimeoutError as error:
        if limit.expired():
            raise aiohttp.SocketTimeoutError from error
        raise


class _Pieces:
    """A body in pieces. With each that is taken, the next may take as long again.

    Attributes:
        answered: whether nobody waits any more; an answer may come before all was taken.
    """

    __slots__ = ("_body", "_limit", "_next", "_silence", "answered")

    def __init__(self, body: bytes, silence: float, limit: asyncio.Timeout) -> None:
        self._body = body
        self._silence = silence
        self._limit = limit
        self._next = 0
        self.answered = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        start = self._next
        if start >= len(self._body):
            raise StopAsyncIteration
        if not self.answered:
            self._limit.reschedule(asyncio.get_running_loop().time() + self._silence)
        self._next = start + _PIECE
        return self._body[start : self._next]


async def close(user: object) -> None:
    """Closes the running loop's session, unless models other than `user` use it too.

    While a call is running it stays open, until it is closed again or the loop ends: aiohttp does
    not wake those who read from a session that closes.
    """
    pool = _pools.get(asyncio.get_running_loop())
    if pool is not None:
        pool.users.discard(user)
        if not pool.users and not pool.calls:
            await pool.keeper.aclose()


class _Attempt:
    """What one try learns of its connection."""

    __slots__ = ("reused",)

    def __init__(self) -> None:
        self.reused = True  # until a socket is opened for it


# aiohttp opens a socket in the context of the request that needs one, or in a copy of it. That
# tells the same as its tracing does, which costs a tenth of a short call.
_running: ContextVar[_Attempt] = ContextVar("retinue.transport.attempt")


def _open_socket(address: tuple[int, int, int, str, object]) -> socket.socket:
    _running.get().reused = False
    family, kind, protocol, *_ = address
    return socket.socket(family, kind, protocol)


class _Pool:
    """One loop's session, those who use it, and the calls that are running."""

    __slots__ = ("_proxies", "calls", "keeper", "session", "users")

    def __init__(
        self, session: "aiohttp.ClientSession", keeper: AsyncGenerator[None, None]
    ) -> None:
        self.session = session
        self.keeper = keeper
        self.users: WeakSet[object] = WeakSet()
        self.calls = 0
        self._proxies: dict[str, Proxy | None] = {}

    def proxy(self, url: str) -> Proxy | None:
        """The proxy that the environment names for this URL.

        aiohttp's own look-up also reads the user's netrc, in a thread, for every request.
        """
        origin = url[: url.find("/", 8)]
        if origin not in self._proxies:
            self._proxies[origin] = proxy_of(url)
        return self._proxies[origin]


_pools: dict[asyncio.AbstractEventLoop, _Pool] = {}


async def _pool() -> _Pool:
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        _forget_dead_loops()
        session = _open_session()
        keeper = _keep(loop, session)
        pool = _pools[loop] = _Pool(session, keeper)
        await keeper.asend(None)
    return pool


async def _keep(
    loop: asyncio.AbstractEventLoop, session: "aiohttp.ClientSession"
) -> AsyncGenerator[None, None]:
    """Closes the session with its loop: a loop ends the generators that it has seen begin."""
    try:
        yield
    finally:
        _pools.pop(loop, None)
        await session.close()


def _open_session() -> "aiohttp.ClientSession":
    import aiohttp

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, keepalive_timeout=_KEPT, ttl_dns_cache=60, socket_factory=_open_socket
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def _forget_dead_loops() -> None:
    """Closes the sessions of loops that were closed without ending their generators."""
    for loop, pool in list(_pools.items()):
        if loop.is_closed() and _pools.pop(loop, None) is not None:  # or another thread does it
            # The loop runs no more, so closing goes as far as it can without waiting.
            closing = pool.session.close()
            try:
                closing.send(None)
            except (StopIteration, RuntimeError):
                pass
            finally:
                closing.close()


@atexit.register
def _leave() -> None:
    """Closes what is open when the program ends, also for loops that nobody closed."""
    _forget_dead_loops()
    for loop, pool in list(_pools.items()):
        if not loop.is_running():
            loop.run_until_complete(pool.keeper.aclose())


@lru_cache(maxsize=16)
def _timeouts(silence: float) -> "aiohttp.ClientTimeout":
    import aiohttp

    return aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_read=silence)
