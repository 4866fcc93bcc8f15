"""A Claude model behind the Anthropic Messages format."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError
from retinue.models.access import base_url_of, key_for
from retinue.models.anthropic.abilities import NEWEST, Abilities, abilities_of
from retinue.models.anthropic.cache import Cache, check_strategy
from retinue.models.anthropic.decode import Decoder
from retinue.models.anthropic.encode import RequestEncoder
from retinue.models.anthropic.messages import PROVIDER
from retinue.models.anthropic.pauses import AnswerInParts
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN, Capabilities
from retinue.models.endpoint import Endpoint, check_model, given_headers, host_of
from retinue.models.failures import Peer
from retinue.models.gateways import Gateway
from retinue.models.hosted import Hosted

PLACE: Final = Gateway(
    name=PROVIDER,
    base_url="https://api.anthropic.com",
    url_var="ANTHROPIC_BASE_URL",
    key_vars=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
)
"""How Anthropic is reached. Of a gateway's row the address and the key count here."""

_VERSION: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


class Anthropic(Hosted[Abilities]):
    """A Claude model at Anthropic, or at a server that speaks its Messages format.

    With `Settings(effort=...)` it thinks: as it finds right, or, if it is a model of 2025 or
    earlier, with a budget of tokens. Newer models show nothing of their thoughts unless they are
    asked to, with `Settings(extra={"thinking": {"display": "summarized"}})`.

    From Claude 5.1 on a thought is bound to all that was sent before it, and some accounts have a
    request refused where that has changed: a window cut it, instructions differ, a tool joined.
    The header "anthropic-beta: thinking-binding-controls-2026-08-01" and the field `thinking`
    with `{"block_binding": {"prefix_mismatch_behavior": "drop_block"}}` let such thoughts go.

    An answer that the vendor pauses while tools of its own run is sent back to go on, and is one
    answer all the same.

    Args:
        name: the model's name, such as "claude-sonnet-5-5".
        base_url: what `/v1/messages` is appended to; by default what `ANTHROPIC_BASE_URL` holds,
            or Anthropic's own.
        api_key: the key; by default what `ANTHROPIC_API_KEY` or `ANTHROPIC_AUTH_TOKEN` holds. With
            a base URL there need be none, and the environment's is not sent to other hosts than
            Anthropic's.
        headers: further HTTP headers of every request, such as "anthropic-beta".
        timeout: seconds without a byte before a call fails; 120 by default.
        cache: what the vendor is to remember of the prompt: "auto", "none", "system", "tools" or
            "conversation".
        version: the version of the API. The newest takes no temperature, top_p and top_k;
            "2023-06-01" does, for the models that do.
        capabilities: what the model takes, over what is declared of it.

    Raises:
        MissingKeyError: a key is needed and none is given or set.
        ConfigError: the name, the URL, the key or another argument cannot be one.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        cache: Cache = "auto",
        version: str = NEWEST,
        capabilities: Capabilities = UNKNOWN,
    ) -> None:
        check_model(name, timeout, example="claude-sonnet-5-5")
        check_strategy(cache)
        if not _VERSION.fullmatch(version):
            raise ConfigError(f"version must be a date such as {NEWEST!r}, not {version!r}.")
        able = capabilities.over(abilities_of(name))
        address = base_url_of(PLACE, base_url)
        place = PLACE if base_url is None else structs.replace(PLACE, needs_key=False)
        key, whence = key_for(place, address, api_key)
        peer = Peer(PROVIDER, host_of(address), name, whence, [key] if key else [])
        said = {"anthropic-version": version, **_key_header(key, version), **given_headers(headers)}
        endpoint = Endpoint(peer, _messages_url(address), said, timeout)
        super().__init__(name, PROVIDER, able.at(version), endpoint)
        self._encoder = RequestEncoder(name, able, version, cache)

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request with deltas, in as many exchanges as it takes. See `Model`."""
        answer = AnswerInParts(request, send)
        while True:
            body = self._encoder.encode(request)
            said = await self._endpoint.ask(
                body.content,
                request.settings,
                answer,
                stream=body.stream,
                decoder=Decoder,
                user=self,
            )
            answer.note(said)
            if not answer.is_paused:
                return answer.meta
            request = answer.sent_back()


def _messages_url(address: str) -> str:
    if address.endswith("/messages"):
        return address
    return f"{address}/messages" if address.endswith("/v1") else f"{address}/v1/messages"


def _key_header(key: str | None, version: str) -> dict[str, str]:
    """The header that the version of the API is documented with."""
    if key is None:
        return {}
    return {"Authorization": f"Bearer {key}"} if version >= NEWEST else {"x-api-key": key}
