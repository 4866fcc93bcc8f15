"""A model behind the Gemini `generateContent` format."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from msgspec import structs

from retinue.chains.requests import ChatRequest
from retinue.models.access import endpoint_of
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN, Capabilities
from retinue.models.endpoint import check_model, given_headers
from retinue.models.gateways import Gateway
from retinue.models.gemini.abilities import Abilities, abilities_of
from retinue.models.gemini.decode import Decoder
from retinue.models.gemini.encode import RequestEncoder
from retinue.models.gemini.messages import PROVIDER
from retinue.models.hosted import Hosted

PLACE: Final = Gateway(
    name=PROVIDER,
    base_url="https://generativelanguage.googleapis.com/v1beta",
    url_var="GOOGLE_GEMINI_BASE_URL",
    url_path="/v1beta",
    key_vars=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    key_header="x-goog-api-key",
)
"""How Google's own service is reached. Of a gateway's row the address and the key count here."""


class Gemini(Hosted[Abilities]):
    """A Gemini model at Google, or at a server that speaks its `generateContent` format.

    With `Settings(effort=...)` it thinks as hard as that: by level, or, if it is a model of the
    second generation, with a budget of tokens. Tools that Google runs, such as its search, are
    asked for with `Settings(extra={"tools": [{"googleSearch": {}}]})`; beside tools of your own,
    models of the third generation want `{"toolConfig": {"includeServerSideToolInvocations": True}}`
    too. What they did is in `meta["executed_tools"]` of the response, and goes back as it came.
    Safety settings are given in `extra` as well.

    Args:
        name: the model's name, such as "gemini-3.8-flash".
        base_url: what `/models/...` is appended to; by default Google's own, or `/v1beta` at what
            `GOOGLE_GEMINI_BASE_URL` holds. For Vertex AI it ends in `/publishers/google`.
        api_key: the key; by default what `GEMINI_API_KEY` or `GOOGLE_API_KEY` holds. With a base
            URL there need be none, and the environment's is not sent to other hosts than Google's.
        headers: further HTTP headers of every request, such as "authorization" for Vertex AI.
        timeout: seconds without a byte before a call fails; 120 by default.
        thoughts: whether the model is to show a summary of its thoughts.
        capabilities: what the model takes, over what is declared of it.

    Raises:
        MissingKeyError: a key is needed and none is given or set.
        ConfigError: the name, the URL or the key cannot be one.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        thoughts: bool = False,
        capabilities: Capabilities = UNKNOWN,
    ) -> None:
        check_model(name, timeout, example="gemini-3.8-flash")
        place = PLACE if base_url is None else structs.replace(PLACE, needs_key=False)
        path = "/" + quote(name if "/" in name else f"models/{name}", safe="/")
        whole, self._stream = (
            endpoint_of(
                place, name, path + method,
                base_url=base_url, api_key=api_key, headers=given_headers(headers), timeout=timeout,
            )
            for method in (":generateContent", ":streamGenerateContent?alt=sse")
        )  # fmt: skip
        able = capabilities.over(abilities_of(name))
        super().__init__(name, PROVIDER, able, whole)
        self._encoder = RequestEncoder(name, able, thoughts=thoughts)

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request with deltas. See `Model`."""
        endpoint = self._stream if request.stream else self._endpoint
        return await endpoint.ask(
            self._encoder.encode(request),
            request.settings,
            send,
            stream=request.stream,
            decoder=Decoder,
            user=self,
        )
