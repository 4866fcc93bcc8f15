"""The onion: layers composed round a core. Read this first.

A hook is `async def hook(request, call_next) -> response`. `call_next` is the next layer inward,
or the core; a hook may call it once, never, several times, one after another or at the same time.
What is outside is never run again by it.

Layers are composed once, when the agent is built. At run time a layer costs one call. On the way
in each layer leaves its depth in `request.trace`, so that after the fact it is known which layer
answered without its inner ones (R-ONION-7).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from retinue.chains.requests import Request

Q = TypeVar("Q", bound=Request, contravariant=True)
R = TypeVar("R")

CallNext = Callable[[Q], Awaitable[R]]
Hook = Callable[[Q, CallNext[Q, R]], Awaitable[R]]


class _Answer(Protocol):
    @property
    def blocked_by(self) -> str | None: ...
    def with_(self, **changes: Any) -> Any: ...


def compose(
    layers: Sequence[tuple[str, Hook[Any, Any]]], core: CallNext[Any, Any]
) -> CallNext[Any, Any]:
    """Layers round a core, the first the outermost. No layers: the core itself, at no cost.

    Args:
        layers: the name and the hook of each, from the outside in.
        core: what the innermost layer calls.
    """
    if not layers:
        return core
    call = _reached(len(layers), core)
    for depth in range(len(layers) - 1, -1, -1):
        call = _layer(depth, layers[depth][1], call)
    names = [name for name, _ in layers]

    async def chain(request: Any) -> Any:
        response: _Answer = await call(request)
        depth = request.trace[0]
        if depth < len(names) and response.blocked_by is None:
            return response.with_(blocked_by=names[depth])
        return response

    return chain


def _layer(depth: int, hook: Hook[Any, Any], call_next: CallNext[Any, Any]) -> CallNext[Any, Any]:
    def layer(request: Any) -> Awaitable[Any]:
        trace = request.trace
        if depth > trace[0]:
            trace[0] = depth
        return hook(request, call_next)

    return layer


def _reached(depth: int, core: CallNext[Any, Any]) -> CallNext[Any, Any]:
    def innermost(request: Any) -> Awaitable[Any]:
        request.trace[0] = depth
        return core(request)

    return innermost
