"""A model behind the Chat Completions format: OpenAI's, and all that are compatible with it."""

from collections.abc import Mapping
from typing import Any

from retinue.chains.requests import ChatRequest
from retinue.models.access import endpoint_of, row_of
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN, Capabilities
from retinue.models.endpoint import check_model, given_headers
from retinue.models.gateways import Gateway
from retinue.models.hosted import Hosted
from retinue.models.openai.decode import Decoder
from retinue.models.openai.encode import RequestEncoder


class OpenAI(Hosted[Capabilities]):
    """A model at OpenAI, or at any gateway that speaks its Chat Completions format.

    Args:
        name: the model's name, such as "gpt-5-mini".
        base_url: what `/chat/completions` is appended to; by default the gateway's own. With a
            base URL and no gateway, the server is taken for one of which nothing is known.
        api_key: the key; by default what the gateway's environment variable holds, which is not
            sent to other hosts than the gateway's own.
        gateway: a name in `GATEWAYS`, or a row of your own; OpenAI by default.
        headers: further HTTP headers of every request.
        timeout: seconds without a byte before a call fails; 120 by default.
        capabilities: what the model takes, over what is declared of it.
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
        capabilities: Capabilities = UNKNOWN,
        organization: str | None = None,
        project: str | None = None,
    ) -> None:
        check_model(name, timeout, example="gpt-5-mini")
        row = row_of(gateway, base_url)
        endpoint = endpoint_of(
            row,
            name,
            "/chat/completions",
            base_url=base_url,
            api_key=api_key,
            headers={
                "OpenAI-Organization": organization, "OpenAI-Project": project,
                **given_headers(headers),
            },
            timeout=timeout,
        )  # fmt: skip
        able = capabilities.over(row.capabilities(name))
        super().__init__(name, row.name, able, endpoint)
        self._encoder = RequestEncoder(name, row, able)

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request with deltas. See `Model`."""
        return await self._endpoint.ask(
            self._encoder.encode(request),
            request.settings,
            send,
            stream=request.stream,
            decoder=Decoder,
            user=self,
        )
