"""`Interceptors`: plain objects that look at what goes in and what comes out, as one layer.

They are for those who think in before and after. Each is a layer of its own inside this one, so
what a layer can rely on holds here too: whoever was let in hears how it ended, exactly once.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Literal

from retinue.chains import (
    Advisor,
    ChatRequest,
    ChatResponse,
    TurnRequest,
    TurnResponse,
    assemble,
    name_of,
)
from retinue.chains.callables import takes
from retinue.errors import ConfigError
from retinue.tools.shapes import listed

_SHAPES: Final = {
    "before_request": ("request",),
    "after_response": ("request", "response"),
    "on_error": ("request", "error"),
    "on_cancel": ("request",),
}
_KINDS: Final[dict[str, tuple[type, type]]] = {
    "turn": (TurnRequest, TurnResponse),
    "call": (ChatRequest, ChatResponse),
}
_logger: Final = logging.getLogger("retinue")

CallNext = Callable[[Any], Awaitable[Any]]


class Interceptors(Advisor):
    """Runs interceptors round each turn, or round each model call.

    An interceptor is any object with one or more of these methods, each plain or async:

        before_request(request)             None, a changed request, or a response instead
        after_response(request, response)   None, or a changed response
        on_error(request, error)            None, or a response instead of the error
        on_cancel(request)

    `before_request` runs in ascending order of the attribute `order`, the rest in descending order.
    Where a `before_request` has run, or there is none, exactly one of the other three follows, with
    the request as that interceptor passed it on. One that raises in `before_request` was not let
    in: those before it get `on_error`. A response in place of the request skips all that is
    further in.

    What an interceptor raises reaches the caller as it is, with a note that names it. An error in
    `on_cancel` is logged: the turn is cancelled in any case.

    Args:
        interceptors: the objects. Those without an order stay behind the one that they follow.
        per: "turn" runs them once per user request (and per re-entry), "call" once per model call.

    Raises:
        ConfigError: one of them cannot be an interceptor; names it.
    """

    order = 300  # the slot of interceptors (R-ONION-8)

    def __init__(
        self, interceptors: Iterable[object], *, per: Literal["turn", "call"] = "turn"
    ) -> None:
        if per not in _KINDS:
            raise ConfigError(f"Interceptors(per={per!r}): give 'turn' or 'call'.")
        given = listed("interceptors", interceptors)
        if not given:
            raise ConfigError("Interceptors([]) would do nothing; give objects, or leave it out.")
        for number, each in enumerate(given, 1):
            _check(each, number)
            if any(each is other for other in given[: number - 1]):
                raise ConfigError(f"The interceptor {name_of(each)} stands in the list twice.")
        self._steps = [_Step(each, *_KINDS[per]) for each in assemble(given)]
        self.traits = frozenset(word for each in given for word in getattr(each, "traits", ()))
        setattr(self, "turn" if per == "turn" else "chat", self._run)

    async def _run(self, request: Any, call_next: CallNext) -> Any:
        """The hook: `turn` or `chat`, as it was chosen."""
        return await self._from(0, request, call_next)

    async def _from(self, at: int, request: Any, call_next: CallNext) -> Any:
        """The interceptors from this place on, and what is inside of them."""
        if at == len(self._steps):
            return await call_next(request)
        step = self._steps[at]
        request, answer = await step.before(request)
        try:
            if answer is None:
                answer = await self._from(at + 1, request, call_next)
        except asyncio.CancelledError:
            await step.cancelled(request)
            raise
        except Exception as error:
            instead = await step.failed(request, error)
            if instead is None:
                raise
            return instead
        return await step.after(request, answer)


class _Step:
    """One interceptor; what it gives is checked."""

    def __init__(self, interceptor: object, request: type, response: type) -> None:
        self._interceptor = interceptor
        self._name = name_of(interceptor)
        self._request = request
        self._response = response

    async def before(self, request: Any) -> tuple[Any, Any]:
        """The request to go on with, and the response instead, if there is one."""
        given = await self._ask("before_request", request, kinds=(self._request, self._response))
        if isinstance(given, self._request):
            return given, None
        if given is not None and given.blocked_by is None:
            given = given.with_(blocked_by=self._name)
        return request, given

    async def after(self, request: Any, response: Any) -> Any:
        """The response to give back."""
        kinds = (self._response,)
        return await self._ask("after_response", request, response, kinds=kinds) or response

    async def failed(self, request: Any, error: Exception) -> Any:
        """The response instead of the error, or None."""
        return await self._ask("on_error", request, error, kinds=(self._response,))

    async def cancelled(self, request: Any) -> None:
        """Tells it; whatever it does, the cancel goes on."""
        try:
            await self._ask("on_cancel", request, kinds=())
        except Exception:
            _logger.exception("The interceptor %s failed in on_cancel.", self._name)

    async def _ask(self, method: str, *given: Any, kinds: tuple[type, ...]) -> Any:
        function = getattr(self._interceptor, method, None)
        if function is None:
            return None
        try:
            outcome = function(*given)
            if inspect.isawaitable(outcome):
                outcome = await outcome
        except Exception as error:
            error.add_note(f"Raised by {method} of the interceptor {self._name}.")
            raise
        if outcome is None or isinstance(outcome, kinds):
            return outcome
        known = " or ".join(["None", *(kind.__name__ for kind in kinds)])
        raise ConfigError(
            f"{method} of the interceptor {self._name} gave {type(outcome).__name__}; it must"
            f" give {known}."
        )


def _check(interceptor: object, number: int) -> None:
    what = f"Interceptor {number} ({name_of(interceptor)})"
    if interceptor is None or isinstance(interceptor, type):
        raise ConfigError(f"Interceptor {number} is {interceptor!r}; give an object.")
    methods = {name: getattr(interceptor, name, None) for name in _SHAPES}
    if not any(methods.values()):
        raise ConfigError(f"{what} has none of the methods {', '.join(_SHAPES)}.")
    for name, method in methods.items():
        if method is not None and not takes(method, len(_SHAPES[name])):
            shape = f"{name}({', '.join(_SHAPES[name])})"
            raise ConfigError(f"{what}: it must have the shape {shape}.")
