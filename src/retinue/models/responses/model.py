"""A model behind the Responses format: OpenAI's, and those of gateways that speak it too."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError
from retinue.models.access import endpoint_of, row_of
from retinue.models.base import Send
from retinue.models.capabilities import UNKNOWN, Capabilities, find_row
from retinue.models.endpoint import check_model, given_headers
from retinue.models.gateways import GATEWAYS, Gateway
from retinue.models.hosted import Hosted
from retinue.models.known import OPENAI
from retinue.models.responses.decode import Decoder
from retinue.models.responses.encode import RequestEncoder


class Responses(Hosted[Capabilities]):
    """A model at OpenAI, or at a gateway that speaks its Responses format.

    The provider keeps nothing, by default: each request holds the whole conversation, and the
    model's reasoning comes encrypted and goes back with it. Tools that the provider runs, such as
    web search, are asked for with `Settings(extra={"tools": [{"type": "web_search"}]})`; what they
    did is in `meta["executed_tools"]` of the response, and goes back to the provider as it came.

    Args:
        name: the model's name, such as "gpt-5-mini".
        base_url: what `/responses` is appended to; by default the gateway's own. With a base URL
            and no gateway, the server is taken for one of which nothing is known.
        api_key: the key; by default what the gateway's environment variable holds, which is not
            sent to other hosts than the gateway's own.
        gateway: a name in `GATEWAYS`, or a row of your own; OpenAI by default.
        store: whether the provider is to store its answers.
        previous_response_id: whether a request names the last stored answer and holds only the
            messages after it. The provider then goes by what it stored: what layers changed in
            that or before it, and what a window left out, makes no difference. It needs `store`.
        reasons: whether the model reasons, so that its encrypted reasoning can be asked for; by
            default by its gateway and its name. Models that do not reason refuse the question.
        summary: what is shown of the reasoning: "auto", "concise" or "detailed"; by default
            nothing, unless the gateway shows the reasoning itself.
        headers: further HTTP headers of every request.
        timeout: seconds without a byte before a call fails; 120 by default.
        capabilities: what the model takes, over what is declared of it.
        organization: the OpenAI organisation to bill.
        project: the OpenAI project to bill.

    Raises:
        MissingKeyError: the gateway needs a key and none is given or set.
        UnknownModelError: there is no gateway of that name.
        ConfigError: the gateway does not speak the format, or an argument cannot be one.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        gateway: str | Gateway | None = None,
        store: bool = False,
        previous_response_id: bool = False,
        reasons: bool | None = None,
        summary: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        capabilities: Capabilities = UNKNOWN,
        organization: str | None = None,
        project: str | None = None,
    ) -> None:
        check_model(name, timeout, example="gpt-5-mini")
        row = row_of(gateway, base_url)
        _check(row, store, previous_response_id)
        endpoint = endpoint_of(
            row,
            name,
            "/responses",
            base_url=base_url,
            api_key=api_key,
            headers={
                "OpenAI-Organization": organization, "OpenAI-Project": project,
                **given_headers(headers),
            },
            timeout=timeout,
        )  # fmt: skip
        able = capabilities.over(row.capabilities_in_responses(name))
        super().__init__(name, row.name, able, endpoint)
        self._encoder = RequestEncoder(
            name,
            row,
            able,
            stored=store,
            chained=previous_response_id,
            reasons=row.encrypts and self._reasons() if reasons is None else reasons,
            summary=summary,
        )
        self._decoder = partial(Decoder, keeps_id=previous_response_id)

    def _reasons(self) -> bool:
        """Whether the model reasons; one that nobody knows does."""
        said = self._capabilities.thinking
        if said is not None:
            return said
        # OpenAI's models keep their names, or the end of them, where others serve them.
        row = find_row(self._name.rpartition("/")[2].removeprefix("ft:"), OPENAI)
        return row is None or row.thinking is not False

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request with deltas. See `Model`."""
        return await self._endpoint.ask(
            self._encoder.encode(request),
            request.settings,
            send,
            stream=request.stream,
            decoder=self._decoder,
            user=self,
        )


def _check(row: Gateway, store: bool, chained: bool) -> None:
    if row.responses is None:
        able = ", ".join(each.name for each in GATEWAYS.values() if each.responses)
        raise ConfigError(
            f"{row.name} does not speak the Responses format; use OpenAI(..., gateway={row.name!r})"
            f" for Chat Completions. Those that speak it are {able}; a row of your own says so with"
            " Gateway(responses=...)."
        )
    if chained and not store:
        raise ConfigError(
            "previous_response_id=True needs store=True: the provider can only go on from an"
            " answer that it stored."
        )
