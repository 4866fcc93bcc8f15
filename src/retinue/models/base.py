"""What a model is to the loop, and how a failed call is tried again (R-FAIL-2).

A model turns a `ChatRequest` into deltas. It holds no conversation; one object serves any number
of calls at once. An adapter is encode (our messages to the provider's JSON), decode (the
provider's stream to our deltas, without I/O) and a table of errors.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from retinue.chains.requests import ChatRequest
from retinue.errors import ModelError
from retinue.messages import Delta
from retinue.tools.options import Retry

Send = Callable[[Delta], Awaitable[None]]
"""Takes one delta of the answer; awaiting it waits for a slow reader."""


@runtime_checkable
class Model(Protocol):
    """Something that answers.

    Attributes:
        name: the provider's name of the model, such as "gpt-5-mini".
        provider: whose it is, such as "openai"; reasoning goes back to the same provider only.
    """

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str: ...

    async def generate(self, request: ChatRequest, send: Send) -> Mapping[str, Any] | None:
        """Answers one request by sending deltas, in the order they come.

        It makes one try; whoever calls it retries. When it is cancelled it closes its connection
        before the cancellation goes on.

        Returns:
            what the provider said besides, for `ChatResponse.meta`; or None.

        Raises:
            ModelError: the provider, or the way to it, is at fault.
        """
        ...

    async def close(self) -> None:
        """Lets go of connections. The model may be used again; it opens new ones."""
        ...


class ModelRetry(Retry, frozen=True):
    """How a retryable failure of a model call is tried again.

    Its waits are those of `Retry`: they grow with jitter, or are what the provider asked for.

    Attributes:
        base: seconds.
    """

    base: float = 0.5


class Sink(Protocol):
    """A `Send` that knows whether it could still be taken back."""

    @property
    def started(self) -> bool:
        """Whether anything has come that a retry could not take back."""
        ...

    async def __call__(self, delta: Delta, /) -> None: ...


async def generate(
    model: Model,
    request: ChatRequest,
    send: Sink,
    retry: ModelRetry,
    on_retry: Callable[[ModelError, float], None] | None = None,
) -> Mapping[str, Any] | None:
    """One model call with its retries, below all layers. After a delivered token there is none.

    Args:
        model: who is asked.
        request: what is asked.
        send: where the answer goes.
        retry: how often, and after what waits.
        on_retry: told of each failure that is tried again, and of the seconds until then.

    Raises:
        ModelError: the last failure, with a note if there were several tries.
    """
    attempt = 1
    while True:
        try:
            return await model.generate(request, send)
        except ModelError as error:
            wait = None
            if error.retryable and not send.started:
                wait = retry.wait(attempt, error.retry_after)
            if wait is None:
                if attempt > 1:
                    error.add_note(f"Tried {attempt} times.")
                raise
            if on_retry is not None:
                on_retry(error, wait)
        attempt += 1
        await asyncio.sleep(wait)
