"""The onion: layers composed round a core. Read this first.

A hook is `async def hook(request, call_next) -> response`. `call_next` is the next layer inward,
or the core; a hook may call it once, never, several times, one after another or at the same time.
What is outside is never run again by it.

Layers are composed once, when the agent is built. At run time a layer costs one call more. If its
hook never called `call_next`, or refused what came of it, its response says so in `blocked_by`, and
every layer outside it sees that (R-ONION-7).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from retinue.chains.requests import Request
from retinue.errors import ConfigError

Q = TypeVar("Q", bound=Request, contravariant=True)
R = TypeVar("R")

CallNext = Callable[[Q], Awaitable[R]]
Hook = Callable[[Q, CallNext[Q, R]], Awaitable[R]]


def compose(
    layers: Sequence[tuple[str, Hook[Any, Any]]],
    core: CallNext[Any, Any],
    response: type[Any],
    *,
    measured: str | None = None,
) -> CallNext[Any, Any]:
    """Layers round a core, the first the outermost. No layers: the core itself, at no cost.

    Args:
        layers: the name and the hook of each, from the outside in.
        core: what the innermost layer calls.
        response: the type that every layer must return.
        measured: the hook's name in the times of a turn; None keeps it out of them.
    """
    call = core
    for name, hook in reversed(layers):
        call = _layer(name, hook, call, response, measured)
    return call


def _layer(
    name: str,
    hook: Hook[Any, Any],
    call_next: CallNext[Any, Any],
    kind: type[Any],
    measured: str | None,
) -> CallNext[Any, Any]:
    async def layer(request: Any) -> Any:
        went_on = False
        times = None if measured is None else request.scope.times
        watch = None if times is None else times.watch(layer, measured, name)

        def inward(request: Any) -> Awaitable[Any]:
            nonlocal went_on
            went_on = True
            inner = call_next(request)
            return inner if watch is None else watch.inside(inner)

        try:
            response = await hook(request, inward)
        finally:
            if watch is not None:
                watch.stop()
        if not isinstance(response, kind):
            raise ConfigError(
                f"The layer {name} returned {type(response).__name__}, not {kind.__name__}; return"
                " what call_next gave, a changed copy of it, or request.respond(...)."
            )
        if response.blocked_by is not None or (went_on and not response.refused):
            return response
        return response.with_(blocked_by=name)

    return layer
