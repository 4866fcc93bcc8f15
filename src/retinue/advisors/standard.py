"""`standard`: the usual five stages of an onion, set up by one call.

    memory 200 → interceptors 300 → usage 350 → thinking 400 → forwarding 500

It is no advisor but a list of them, in order. It is the one module here that imports others.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, cast

from retinue.advisors.forward import Forward
from retinue.advisors.interceptors import Interceptors
from retinue.advisors.memory import Memory
from retinue.advisors.thinking import Thinking
from retinue.advisors.usage import UsageCollector
from retinue.chains import assemble
from retinue.errors import ConfigError
from retinue.stores import Store

Build = TypeVar("Build", bound=Callable[..., Any])


class Pipeline(list[object]):
    """A list of advisors, the outermost first: `Agent(model, advisors=standard())`.

    It also decorates a function that builds an agent, whose own advisors are then put among these:

        @standard(store=SQLite("chat.db"), think="hidden")
        def support(model: str) -> Agent:
            return Agent(model, tools=[search], advisors=[Audit()])
    """

    def __call__(self, build: Build) -> Build:
        """A function that builds the same agent with these advisors too, as `assemble` orders them.

        Args:
            build: the function, plain or async.

        Raises:
            ConfigError: it is no function; or, when it is called, what it gave is no agent.
        """
        if not inspect.isroutine(build):
            raise ConfigError(
                f"@standard(...) decorates a function that builds an agent, not {build!r}; for an"
                " agent write Agent(..., advisors=standard(...))."
            )

        def built(*args: Any, **options: Any) -> Any:
            return self._join(build(*args, **options), build)

        async def built_later(*args: Any, **options: Any) -> Any:
            return self._join(await build(*args, **options), build)

        wrapper = built_later if inspect.iscoroutinefunction(build) else built
        return cast("Build", functools.wraps(build)(wrapper))

    def _join(self, agent: Any, build: Callable[..., Any]) -> Any:
        if not hasattr(agent, "with_") or not hasattr(agent, "advisors"):
            raise ConfigError(
                f"{build.__qualname__} gave {type(agent).__name__}; a function under"
                " @standard(...) must give an Agent."
            )
        return agent.with_(advisors=assemble(self, agent.advisors))


def standard(
    *,
    store: Store | Memory | Literal[True] | None = True,
    interceptors: Iterable[object] | Interceptors | None = None,
    prices: bool | Callable[..., float | None] | UsageCollector | None = False,
    think: Literal["shown", "hidden", "summary"] | Thinking | None = "shown",
    forward: Any = None,
    extra: Iterable[object] = (),
) -> Pipeline:
    """The standard stages as a list of advisors, and further ones in their places.

    Each stage takes the one thing that is most often said of it, or the advisor itself where more
    is to be said. None leaves the stage out.

    Args:
        store: where conversations are kept; True, the default, in the process.
        interceptors: objects that run round each turn; see `Interceptors`.
        prices: whether usage is priced, which needs the extra `prices`, or a function that gives
            prices. False, the default, counts tokens alone.
        think: how reasoning is shown; all of it by default.
        forward: who else hears the events of each turn; see `Forward`.
        extra: further advisors. Those with an `order` go to their place among the stages, those
            behind one stay behind it, and a list without any order comes last.

    Raises:
        ConfigError: a value cannot be used.
        MissingExtraError: prices are asked for, and genai-prices is not installed.
    """
    stages: list[object] = []
    if store is not None:
        stages.append(store if isinstance(store, Memory) else Memory(_checked(store)))
    if interceptors is not None:
        given = interceptors
        stages.append(given if isinstance(given, Interceptors) else Interceptors(given))
    if prices is not None:
        given = prices
        stages.append(given if isinstance(given, UsageCollector) else UsageCollector(prices=given))
    if think is not None:
        stages.append(think if isinstance(think, Thinking) else Thinking(think))
    if forward is not None:
        stages.append(forward if isinstance(forward, Forward) else Forward(forward))
    return Pipeline(assemble(stages, extra))


def _checked(store: Any) -> Store | None:
    if store is True:
        return None
    if not isinstance(store, Store):
        hint = f"; write SQLite({store!r})" if isinstance(store, str) else ""
        raise ConfigError(f"standard(store={store!r}): give a store, such as SQLite(...){hint}.")
    return store
