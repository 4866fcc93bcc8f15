"""Where a model is asked over HTTP: an address, headers, and one exchange.

It knows no format: the body comes in as bytes, and a decoder makes deltas of the answer. Above it
are the models of each vendor, below it `transport`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import Delta, UsageDelta
from retinue.models import failures, sse, transport
from retinue.models.base import Send
from retinue.models.failures import Peer
from retinue.models.sse import Event
from retinue.tools.options import is_positive
from retinue.tools.shapes import is_mapping

_SECRET_HEADERS: Final = ("auth", "key", "token", "secret", "cookie")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")


class Decoder(Protocol):
    """Makes deltas of one answer, without I/O."""

    over: bool
    """Whether the answer has come to its end."""
    meta: dict[str, Any]
    """What the provider said besides, for `ChatResponse.meta`."""

    def feed(self, event: Event) -> Sequence[Delta]:
        """The deltas that this event holds."""
        ...

    def end(self) -> Sequence[Delta]:
        """The deltas that come last, or the error that the answer was."""
        ...


class Endpoint:
    """One model at one address.

    Args:
        peer: whom errors name.
        url: where requests go.
        headers: what every request carries, beside the content type.
        timeout: seconds without a byte before a call fails; 120 by default.

    Raises:
        ConfigError: a header cannot be one.
    """

    __slots__ = ("_headers", "_timeout", "peer", "url")

    def __init__(
        self, peer: Peer, url: str, headers: Mapping[str, str], timeout: float | None = None
    ) -> None:
        check_headers(headers)
        self.peer = peer.knowing(secrets_in(headers))
        self.url = url
        self._headers = {
            "Content-Type": "application/json", "User-Agent": "retinue", **headers,
        }  # fmt: skip
        self._timeout = transport.SILENCE if timeout is None else timeout

    async def ask(
        self,
        body: bytes,
        settings: Settings,
        send: Send,
        *,
        stream: bool,
        decoder: Callable[[Peer, bool], Decoder],
        user: object,
    ) -> dict[str, Any]:
        """One request, its answer sent on as it comes.

        Args:
            body: JSON.
            settings: whose headers and timeout count for this request.
            send: takes the deltas.
            stream: whether a stream was asked for.
            decoder: makes the decoder, of whom errors name and whether the answer is a whole one.
            user: the model, for which connections are kept.

        Returns:
            what the provider said besides.

        Raises:
            ConfigError: a header of the request cannot be one.
            ModelError: the provider, or the way to it, is at fault.
        """
        headers, peer = self._headers, self.peer
        if settings.headers:
            check_headers(settings.headers)
            headers = {**headers, **settings.headers}
            peer = peer.knowing(secrets_in(settings.headers))
        timeout = self._timeout if settings.timeout is None else settings.timeout
        reply = await transport.post(peer, self.url, headers, body, silence=timeout, user=user)
        try:
            if reply.status >= 300:
                raise failures.of_status(
                    peer, reply.status, reply.headers, await reply.read_error()
                )
            media_type = reply.media_type
            if media_type == "text/html":
                raise failures.web_page(peer, await reply.read_error())
            if _is_stream(media_type, stream):
                meta = await _read_stream(reply, decoder(peer, False), send)
            else:
                meta = await _read_whole(reply, decoder(peer, True), send)
            return meta | _request_id(reply.headers)
        finally:
            reply.close()


async def _read_stream(reply: transport.Reply, decoder: Decoder, send: Send) -> dict[str, Any]:
    events = sse.Decoder()
    while not decoder.over:
        chunk = await reply.chunk()
        for event in events.feed(chunk) if chunk else events.flush():
            for delta in decoder.feed(event):
                if type(delta) is not UsageDelta:  # a count may be made again
                    reply.answered = True
                await send(delta)
        if not chunk:
            break
    for delta in decoder.end():
        await send(delta)
    await reply.settle()
    return decoder.meta


async def _read_whole(reply: transport.Reply, decoder: Decoder, send: Send) -> dict[str, Any]:
    deltas = [*decoder.feed(Event(await reply.read())), *decoder.end()]
    for delta in deltas:
        await send(delta)
    return decoder.meta


def _is_stream(media_type: str, asked: bool) -> bool:
    """Whether the body is a stream: what the server says counts, where it says something."""
    if media_type == "text/event-stream":
        return True
    return asked and media_type != "application/json"


def _request_id(headers: Mapping[str, str]) -> dict[str, str]:
    found = headers.get("x-request-id") or headers.get("request-id")
    return {"request_id": found} if found else {}


# -- what a user gives --------------------------------------------------------------------------


def check_model(name: str, timeout: float | None, *, example: str) -> None:
    """Refuses a name that is none, and a time that is none.

    Raises:
        ConfigError: names the culprit.
    """
    if not name or name != name.strip():
        raise ConfigError(f"{name!r} is no model name; give one such as {example!r}.")
    if timeout is not None and not is_positive(timeout):
        raise ConfigError(f"timeout must be a finite number of seconds above 0, not {timeout!r}.")


def check_address(base: str, whence: str = "base_url") -> str:
    """The base URL without a slash at its end.

    Args:
        base: what was given.
        whence: the argument, or the environment variable, that held it.

    Raises:
        ConfigError: it is none, or holds a password.
    """
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        raise ConfigError(f"{whence} is no URL; it must look like 'https://host/v1'.") from None
    if not usable or parts.query:
        raise ConfigError(
            f"{whence} must look like 'https://host/v1', not scheme {parts.scheme!r}, host"
            f" {parts.hostname!r}{', with a query' if parts.query else ''}."
        )
    if "@" in parts.netloc:
        raise ConfigError(f"{whence} must not hold a user or a password; give headers=... instead.")
    return base.rstrip("/")


def origin_of(address: str) -> tuple[str, str | None, int | None]:
    """The scheme, the host and the port of an address: who answers there."""
    parts = urlsplit(address)
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname, parts.port or default


def host_of(address: str) -> str:
    """The host, and the port if there is one, as errors name it."""
    return urlsplit(address).netloc.rpartition("@")[2]


def check_key(provider: str, key: str | None) -> str | None:
    """The key without space round it, or None if it is empty.

    Raises:
        ConfigError: it is no text, or holds what no header can hold.
    """
    if not isinstance(key, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"The key for {provider} is a text, not {type(key).__name__}.")
    key = (key or "").strip()  # keys read from files end in a newline
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError(f"The key for {provider} holds characters that no key has; check it.")
    return key or None


def given_headers(headers: Mapping[str, str] | None) -> Mapping[str, str]:
    """The headers that a user gives, none by default.

    Raises:
        ConfigError: they are no mapping.
    """
    if headers is not None and not is_mapping(headers):
        raise ConfigError("headers=... cannot be used; give a mapping of texts to texts.")
    return headers or {}


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuses headers that HTTP cannot carry. Their values are not shown: they may be secret.

    Raises:
        ConfigError: names the header.
    """
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigError(
                f"The header {name!r} cannot be sent; give a name of letters, digits and hyphens,"
                " and a value of one line."
            )


def secrets_in(headers: Mapping[str, str]) -> Iterable[str]:
    """The values that no message may show, whole and without the word before them."""
    for name, value in headers.items():
        if any(word in name.lower() for word in _SECRET_HEADERS):
            yield value
            yield value.rpartition(" ")[2]
