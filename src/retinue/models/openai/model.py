"""A model behind the Chat Completions format: OpenAI's, and all that are compatible with it."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError, MissingKeyError, UnknownModelError
from retinue.models import failures, sse, transport
from retinue.models.base import Send
from retinue.models.failures import Peer
from retinue.models.gateways import ALIASES, COMPATIBLE, GATEWAYS, Gateway
from retinue.models.openai.decode import Decoder, request_id
from retinue.models.openai.encode import RequestEncoder

_SECRET_HEADERS: Final = ("auth", "key", "token", "secret", "cookie")


class OpenAI:
    """A model at OpenAI, or at any gateway that speaks its Chat Completions format.

    Args:
        name: the model's name, such as "gpt-5-mini".
        base_url: what `/chat/completions` is appended to; by default the gateway's own. With a
            base URL and no gateway, the server is taken for one of which nothing is known.
        api_key: the key; by default what the gateway's environment variable holds.
        gateway: a name in `GATEWAYS`, or a row of your own; OpenAI by default.
        headers: further HTTP headers of every request.
        timeout: seconds without a byte before a call fails; 120 by default.
        organization: the OpenAI organisation to bill.
        project: the OpenAI project to bill.

    Raises:
        MissingKeyError: the gateway needs a key and none is given or set.
        UnknownModelError: there is no gateway of that name.
        ConfigError: the name, the URL or the key cannot be one.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        gateway: str | Gateway | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        organization: str | None = None,
        project: str | None = None,
    ) -> None:
        if not name or name != name.strip():
            raise ConfigError(f"{name!r} is no model name; give one such as 'gpt-5-mini'.")
        if timeout is not None and not timeout > 0:
            raise ConfigError(f"timeout must be a number of seconds above 0, not {timeout!r}.")
        row = _row(gateway, base_url)
        self._name = name
        self._gateway = row
        self._timeout = transport.SILENCE if timeout is None else timeout
        base = _base_url(row, base_url)
        self._url = base if base.endswith("/chat/completions") else base + "/chat/completions"
        key = _key(row, api_key)
        said = {"OpenAI-Organization": organization, "OpenAI-Project": project, **(headers or {})}
        self._headers = {
            "Content-Type": "application/json",
            "User-Agent": "retinue",
            **_key_header(row, key),
            **{header: value for header, value in said.items() if value is not None},
        }
        host = urlsplit(base).netloc.rpartition("@")[2]
        where = " or ".join(row.key_vars) if row.key_vars and api_key is None else "api_key"
        secrets = [*_secrets(self._headers), *([key] if key else [])]
        self._peer = Peer(row.name, host, name, where, secrets)
        self._encoder = RequestEncoder(name, row)

    @property
    def name(self) -> str:
        """The model's name at its provider."""
        return self._name

    @property
    def provider(self) -> str:
        """The gateway's name."""
        return self._gateway.name

    def __repr__(self) -> str:
        return f"OpenAI({self._name!r}, gateway={self._gateway.name!r}, host={self._peer.host!r})"

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request with deltas. See `Model`."""
        settings = request.settings
        body = self._encoder.encode(request)
        headers, peer = self._headers, self._peer
        if settings.headers:
            headers = {**headers, **settings.headers}
            peer = peer.knowing(_secrets(settings.headers))
        timeout = self._timeout if settings.timeout is None else settings.timeout
        reply = await transport.post(peer, self._url, headers, body, silence=timeout, user=self)
        try:
            if reply.status >= 300:
                raise failures.of_status(
                    peer, reply.status, reply.headers, await reply.read_error()
                )
            if reply.media_type == "text/html":
                raise failures.web_page(peer, await reply.read_error())
            if _is_stream(reply.media_type, request.stream):
                meta = await _read_stream(peer, reply, send)
            else:
                meta = await _read_whole(peer, reply, send)
            return meta | request_id(reply.headers)
        finally:
            reply.close()

    async def close(self) -> None:
        """Lets go of the running loop's connections, if no other model uses them."""
        await transport.close(self)


async def _read_stream(peer: Peer, reply: transport.Reply, send: Send) -> dict[str, Any]:
    events, decoder = sse.Decoder(), Decoder(peer)
    while not decoder.over:
        chunk = await reply.chunk()
        for event in events.feed(chunk) if chunk else events.flush():
            for delta in decoder.feed(event):
                reply.answered = True
                await send(delta)
        if not chunk:
            break
    for delta in decoder.end():
        await send(delta)
    await reply.settle()
    return decoder.meta


async def _read_whole(peer: Peer, reply: transport.Reply, send: Send) -> dict[str, Any]:
    decoder = Decoder(peer, whole=True)
    deltas = [*decoder.feed(sse.Event(await reply.read())), *decoder.end()]
    for delta in deltas:
        await send(delta)
    return decoder.meta


def _is_stream(media_type: str, asked: bool) -> bool:
    """Whether the body is a stream: what the server says counts, where it says something."""
    if media_type == "text/event-stream":
        return True
    return asked and media_type != "application/json"


def _row(gateway: str | Gateway | None, base_url: str | None) -> Gateway:
    if isinstance(gateway, Gateway):
        return gateway
    if gateway is None:
        return GATEWAYS["openai"] if base_url is None else COMPATIBLE
    row = GATEWAYS.get(ALIASES.get(gateway, gateway))
    if row is None:
        raise UnknownModelError(
            f"There is no gateway {gateway!r}; there are {', '.join(GATEWAYS)}. For any other"
            " compatible server give base_url=... and no gateway."
        )
    return row


def _base_url(row: Gateway, given: str | None) -> str:
    base = given
    if base is None and row.url_var is not None and (set_ := os.environ.get(row.url_var)):
        base = set_.rstrip("/")
        if not base.endswith(row.url_path):
            base += row.url_path
    base = base or row.base_url
    if base is None:
        place = f" or set {row.url_var}" if row.url_var else ""
        raise ConfigError(f"{row.name} has no address of its own; give base_url=...{place}.")
    try:
        parts = urlsplit(base)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        raise ConfigError("base_url is no URL; it must look like 'https://host/v1'.") from None
    if not usable or parts.query:
        raise ConfigError(
            f"base_url must look like 'https://host/v1', not scheme {parts.scheme!r}, host"
            f" {parts.hostname!r}{', with a query' if parts.query else ''}."
        )
    if "@" in parts.netloc:
        raise ConfigError("base_url must not hold a user or a password; give headers=... instead.")
    return base.rstrip("/")


def _key(row: Gateway, given: str | None) -> str | None:
    found = (os.environ.get(variable) for variable in row.key_vars)
    key = next(filter(None, found), None) if given is None else given
    key = (key or "").strip()  # keys read from files end in a newline
    if not key:
        if row.needs_key:
            raise MissingKeyError(
                f"{row.name} needs a key: set {' or '.join(row.key_vars) or 'one'}, or give"
                " api_key=..."
            )
        return None
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"The key for {row.name} holds characters that no key has; check it.")
    return key


def _key_header(row: Gateway, key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if row.key_header == "authorization":
        return {"Authorization": f"Bearer {key}"}
    return {row.key_header: key}


def _secrets(headers: Mapping[str, str]) -> Iterable[str]:
    for name, value in headers.items():
        if any(word in name.lower() for word in _SECRET_HEADERS):
            yield value
            yield value.rpartition(" ")[2]
