"""A model of a vendor that no adapter of ours speaks to, asked through pydantic-ai.

Its client libraries take more time and memory for a call than our adapters; where there is an
adapter, use that. pydantic-ai is imported when the first such model is made.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from retinue.chains.requests import ChatRequest
from retinue.errors import (
    ConfigError,
    MissingExtraError,
    MissingKeyError,
    RetinueError,
    UnknownModelError,
)
from retinue.messages import Delta
from retinue.models.base import Send
from retinue.models.bridge.decode import Decoder, meta_of
from retinue.models.bridge.encode import Abilities, Call, RequestEncoder
from retinue.models.bridge.errors import translated
from retinue.models.capabilities import UNKNOWN, Capabilities
from retinue.models.endpoint import check_address, check_key, check_model, secrets_in
from retinue.models.failures import Peer

if TYPE_CHECKING:
    from pydantic_ai.models import Model as Theirs
    from pydantic_ai.providers import Provider

_KEYS: Final = ("api_key", "auth_token")  # what clients call theirs
_SECRET_NAME: Final = re.compile("KEY|TOKEN|SECRET|PASSWORD")


class Bridge:
    """A model of any vendor that pydantic-ai knows.

    The vendor's own client library must be there too: `pip install 'pydantic-ai-slim[bedrock]'`.
    Nothing is known of what the model takes; what is asked of it is sent as it is. A setting that
    pydantic-ai has no field for at this vendor is refused.

    Args:
        name: "provider:model" in the words of pydantic-ai, such as "bedrock:amazon.nova-pro-v1:0",
            "cohere:command-a-03-2025" or "huggingface:Qwen/Qwen3-32B".
        base_url: the provider's address, where pydantic-ai lets one say it; by default its own.
        api_key: the key; by default what the provider's environment variable holds.
        timeout: seconds without a byte before a call fails; 120 by default, where pydantic-ai lets
            one say it.
        capabilities: what the model takes, where you know it.

    Raises:
        MissingExtraError: pydantic-ai, or the vendor's client library, is not installed.
        UnknownModelError: the name holds no provider, or one that pydantic-ai does not know.
        MissingKeyError: the provider needs a key and none is given or set.
        ConfigError: the URL, the key or the timeout cannot be one, or the provider takes none.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        capabilities: Capabilities = UNKNOWN,
    ) -> None:
        provider, _, model = name.partition(":")
        if not provider or not model:
            raise UnknownModelError(
                f"{name!r} names no provider and model; write it as 'bedrock:amazon.nova-pro-v1:0'."
            )
        check_model(model, timeout, example="amazon.nova-pro-v1:0")
        self._name = model
        self._theirs = provider
        self._provider = f"bridge:{provider}"
        self._options = {
            option: value
            for option, value in (
                ("base_url", None if base_url is None else check_address(base_url)),
                ("api_key", check_key(provider, api_key)),
            )
            if value is not None
        }
        self._capabilities = capabilities
        self._encoder = RequestEncoder(self._provider, model, capabilities, timeout)
        made = self._make()  # at once, so that what is missing is told before any work is done
        if timeout is not None and "timeout" in Abilities.of(made).leaves_out:
            raise ConfigError(f"{self._provider} takes no timeout; leave it out.")
        self._peer = Peer(
            self._provider, _host(made), model, "its key", _secrets(made, self._options)
        )
        # A client keeps connections, and those belong to the loop that opened them.
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, _Open] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The model's name at its provider."""
        return self._name

    @property
    def provider(self) -> str:
        """The provider in the words of pydantic-ai, after "bridge:"."""
        return self._provider

    @property
    def capabilities(self) -> Capabilities:
        """What it was declared to take."""
        return self._capabilities

    def __repr__(self) -> str:
        return f"Bridge({self._theirs + ':' + self._name!r})"

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request with deltas. See `Model`."""
        meta: dict[str, Any] = {}
        model = await self._model()
        call = self._encoder.encode(request, Abilities.of(model))
        peer = self._peer.knowing(secrets_in(request.settings.headers))
        answer = _streamed if request.stream else _whole
        async with aclosing(_translating(peer, call, answer, model, meta)) as deltas:
            async for delta in deltas:
                await send(delta)
        return meta

    async def close(self) -> None:
        """Lets go of the running loop's connections."""
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[1].aclose()

    async def _model(self) -> "Theirs":
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            model = self._make()
            # A generator that has begun is closed with its loop, and takes the client along.
            keeper = _keeping(model)
            self._open[loop] = model, keeper
            await anext(keeper)
        return self._open[loop][0]

    def _make(self) -> "Theirs":
        if find_spec("pydantic_ai") is None:
            raise MissingExtraError("The bridge needs pydantic-ai: pip install 'retinue[bridge]'.")
        from pydantic_ai.exceptions import UserError
        from pydantic_ai.models import infer_model

        what = f"{self._theirs}:{self._name}"
        missing = failed = None
        try:
            return infer_model(what, self._provider_of)
        except ImportError as error:
            missing = " ".join(str(error).split())
        except (UserError, ValueError) as error:
            failed = " ".join(str(error).split())
        if missing is not None:
            raise MissingExtraError(
                f"{self._provider} needs its vendor's client library:"
                f" pip install 'pydantic-ai-slim[{self._theirs}]' ({missing.rstrip('.')})."
            )
        raise _not_made(self._provider, failed or "")

    def _provider_of(self, provider: str) -> "Provider[Any]":
        from pydantic_ai.providers import infer_provider, infer_provider_class

        unknown = False
        try:
            kind: Any = infer_provider_class(provider)
        except ValueError:
            kind, unknown = None, True
        if unknown:
            raise UnknownModelError(
                f"pydantic-ai knows no provider {provider!r}; its documentation lists them."
            )
        if not self._options:
            return infer_provider(provider)
        taken = signature(kind.__init__).parameters
        for option in self._options:
            if option not in taken:
                raise ConfigError(f"{self._provider} takes no {option}; leave it out.")
        return kind(**self._options)


_Open = tuple["Theirs", AsyncGenerator[None]]


async def _keeping(model: "Theirs") -> AsyncGenerator[None]:
    try:
        yield
    finally:
        async with model:  # it closes its client when it is left
            pass


async def _translating(
    peer: Peer, call: Call, answer: "_Answer", model: "Theirs", meta: dict[str, Any]
) -> AsyncGenerator[Delta]:
    """The deltas of an answer; its errors in our tree, without those behind them.

    What is behind an error holds the request, and with it the key.
    """
    decoder = Decoder(peer, told_end=_is_chat_completions(model))
    failure: RetinueError | None = None
    try:
        async with aclosing(answer(decoder, call, model, meta)) as deltas:
            async for delta in deltas:
                yield delta
    except RetinueError:
        raise
    except Exception as error:
        failure = translated(peer, error, call, spoke=decoder.spoke)
    if failure is not None:
        raise failure


async def _streamed(
    decoder: Decoder, call: Call, model: "Theirs", meta: dict[str, Any]
) -> AsyncGenerator[Delta]:
    async with model.request_stream(call.messages, call.settings, call.parameters) as stream:
        async for event in stream:
            for delta in decoder.feed(event):
                yield delta
        response = stream.get()
        for delta in decoder.end(response):
            yield delta
    meta.update(meta_of(response))


async def _whole(
    decoder: Decoder, call: Call, model: "Theirs", meta: dict[str, Any]
) -> AsyncGenerator[Delta]:
    response = await model.request(call.messages, call.settings, call.parameters)
    meta.update(meta_of(response))
    for delta in [*decoder.whole(response)]:
        yield delta


_Answer = Callable[[Decoder, Call, "Theirs", dict[str, Any]], AsyncGenerator[Delta]]


def _is_chat_completions(model: "Theirs") -> bool:
    # By name: the class is there only where OpenAI's client is.
    return any(kind.__name__ == "OpenAIChatModel" for kind in type(model).__mro__)


def _not_made(provider: str, why: str) -> ConfigError:
    if "key" in why.lower() or "token" in why.lower():
        return MissingKeyError(f"{provider} needs a key: give api_key=..., or: {why.rstrip('.')}.")
    return ConfigError(f"{provider} cannot be asked: {why.rstrip('.')}.")


def _host(model: "Theirs") -> str:
    return urlsplit(getattr(model.provider, "base_url", "")).netloc.rpartition("@")[2] or "its host"


def _secrets(model: "Theirs", options: Mapping[str, str]) -> Iterable[str]:
    """What no error may show: the key that was given, the client's own, and all in the environment.

    Each vendor's client reads variables of its own, so every one that is named like a key counts.
    """
    client = getattr(model.provider, "client", None)
    found = [options.get("api_key"), *(getattr(client, name, None) for name in _KEYS)]
    found += [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
    return [secret for secret in found if isinstance(secret, str)]
