"""What errors of the connection mean, in one sentence each (R-FAIL-2, R-FAIL-3).

aiohttp's errors in, errors of our tree out. What a provider says of itself is the business of
`failures`.
"""

from functools import lru_cache

from retinue.errors import ConfigError, ModelBroken, ModelError, ModelTimeout, ModelUnreachable
from retinue.models.failures import Peer


def is_stale(error: Exception) -> bool:
    """Whether it is what a kept connection ends in that its vendor has closed meanwhile."""
    import aiohttp

    return isinstance(
        error,
        (
            aiohttp.ServerDisconnectedError,
            aiohttp.ClientOSError,
            aiohttp.ClientConnectionResetError,
        ),
    ) and not isinstance(error, aiohttp.ClientConnectorError)


def translated(
    peer: Peer, error: Exception, *, connect: float, silence: float, answered: bool = False
) -> Exception:
    """Our error for a foreign one, or the foreign one if it is no fault of the way.

    Raise it outside the `except`. It has no cause where the foreign error holds the headers that
    were sent: the key is among them.

    Args:
        peer: whom it names.
        error: what aiohttp raised.
        connect: seconds that a connection was waited for.
        silence: seconds that a byte was waited for.
        answered: whether something of the answer had come.
    """
    import aiohttp

    meaning = _meaning(error, answered)
    if meaning is None:
        return error
    ours, words, again = meaning
    text = words.format(peer=peer, connect=connect, timeout=silence, error=_words(error))
    known = ours(peer.mask(text))
    if isinstance(known, ModelError) and known.retryable and not again:
        known.failure = "environment"
    known.__cause__ = None if isinstance(error, aiohttp.ClientResponseError) else error
    return known


@lru_cache(maxsize=1)
def _table() -> tuple[tuple[type[Exception], type[Exception], str, bool], ...]:
    """Foreign errors, the first that fits counts: the class, ours, the words, may it help again?"""
    import aiohttp

    network = "Check the network and base_url."
    return (
        (aiohttp.ConnectionTimeoutError, ModelUnreachable,
         f"gave no connection within {{connect:g}} s. {network}", True),
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
