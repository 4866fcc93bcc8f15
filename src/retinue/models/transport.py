"""HTTP to providers: connections that are shared and kept, a request, an answer read as it comes.

It knows nothing of what is sent. There is one session per event loop, for all models; it is
opened at the first call, which is also when aiohttp is imported, and closed with the loop.
Every error of the connection becomes a `ModelError` by the table at the end.
"""

import asyncio
import atexit
import io
import socket
from collections.abc import AsyncGenerator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from retinue.errors import ConfigError, ModelBroken, ModelError, ModelTimeout, ModelUnreachable
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
_STREAMED_BODY: Final = 2**20  # bytes; aiohttp wants larger bodies as a file, to write in pieces


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
            failure = _failure(self._peer, error, self._silence, self.answered)
        raise failure

    async def read(self) -> bytes:
        """The rest of the body."""
        chunks: list[bytes] = []
        while chunk := await self.chunk():
            chunks.append(chunk)
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
    while True:
        attempt = _Attempt()
        _running.set(attempt)
        try:
            return await pool.session.post(
                url,
                data=body if len(body) <= _STREAMED_BODY else io.BytesIO(body),
                headers=headers,
                timeout=_timeouts(silence),
                proxy=None if proxy is None else proxy.url,
                proxy_headers=permit,
                allow_redirects=False,  # a POST would become a GET, and take the key elsewhere
            )
        except Exception as error:
            if attempt.reused and _is_stale(error):
                continue
            failure = _failure(peer, error, silence, answered=False)
        raise failure


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
        if loop.is_closed():
            del _pools[loop]
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


def _is_stale(error: Exception) -> bool:
    import aiohttp

    return isinstance(
        error,
        (
            aiohttp.ServerDisconnectedError,
            aiohttp.ClientOSError,
            aiohttp.ClientConnectionResetError,
        ),
    ) and not isinstance(error, aiohttp.ClientConnectorError)


# -- errors -----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[type[Exception], type[Exception], str, bool], ...]:
    """Foreign errors, the first that fits counts: the class, ours, the words, may it help again?"""
    import aiohttp

    network = "Check the network and base_url."
    return (
        (aiohttp.ConnectionTimeoutError, ModelUnreachable,
         f"gave no connection within {CONNECT:g} s. {network}", True),
        (aiohttp.SocketTimeoutError, ModelTimeout,
         "sent nothing for {timeout:g} s. Wait longer with Settings(timeout=...).", True),
        (aiohttp.ClientConnectorDNSError, ModelUnreachable,
         f"has a name that cannot be looked up: {{error}}. {network}", True),
        (aiohttp.ClientConnectorCertificateError, ModelUnreachable,
         "showed a certificate that is not trusted: {error}. Check base_url and the certificates"
         " of this machine.", False),
        (aiohttp.ClientProxyConnectionError, ModelUnreachable,
         "cannot be reached through the proxy that the environment names: {error}. Check"
         " HTTPS_PROXY and NO_PROXY.", True),
        (aiohttp.ClientHttpProxyError, ModelUnreachable,
         "cannot be reached: the proxy refuses: {error}. Check HTTPS_PROXY and NO_PROXY.", False),
        (aiohttp.ClientConnectorError, ModelUnreachable,
         f"cannot be reached: {{error}}. {network}", True),
        (aiohttp.InvalidURL, ConfigError, "has no valid URL. Check base_url.", False),
        (aiohttp.ClientResponseError, ModelBroken, "sent no HTTP answer: {error}.", False),
    )  # fmt: skip


def _failure(peer: Peer, error: Exception, silence: float, answered: bool) -> Exception:
    """Our error for a foreign one, or the foreign one if it is no fault of the way.

    It is raised outside the `except`, and has no cause where the foreign error holds the headers
    that were sent: the key is among them.
    """
    import aiohttp

    meaning = _meaning(error, answered)
    if meaning is None:
        return error
    ours, words, again = meaning
    text = words.format(peer=peer, timeout=silence, error=_words(error))
    known = ours(peer.mask(text))
    if isinstance(known, ModelError) and known.retryable and not again:
        known.failure = "environment"
    known.__cause__ = None if isinstance(error, aiohttp.ClientResponseError) else error
    return known


def _meaning(error: Exception, answered: bool) -> tuple[type[Exception], str, bool] | None:
    """Our class for a foreign error, the words, and whether the same call may help later."""
    import aiohttp

    for foreign, ours, words, again in _table():
        if isinstance(error, foreign):
            return ours, f"{{peer}} {words}", again
    if isinstance(error, aiohttp.ClientPayloadError) and "decode" in str(error).lower():
        return ModelBroken, "{peer} sent a body that cannot be unpacked: {error}.", False
    if not isinstance(error, (aiohttp.ClientError, OSError)):
        return None
    if answered:
        words = "The connection to {peer} broke in the middle of the answer: {error}. Ask again."
        return ModelBroken, words, False
    words = "The connection to {peer} broke before an answer began: {error}. Check the network."
    return ModelUnreachable, words, True


def _words(error: Exception) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientHttpProxyError):
        text = f"HTTP {error.status} {error.message}"
    elif isinstance(error, aiohttp.ClientResponseError):
        text = error.message  # its status is made up
    else:
        inner = getattr(error, "os_error", None) or error
        text = getattr(inner, "strerror", None) or str(inner)
    return " ".join(text.split()).rstrip(".") or type(error).__name__
