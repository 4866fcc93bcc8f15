"""Agents declared for serving, and the app made of them."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from retinue.advisors import Memory, standard
from retinue.agent import Agent
from retinue.chains import assemble
from retinue.errors import ConfigError, MissingExtraError
from retinue.serve.access import Access
from retinue.serve.bounds import Bounds
from retinue.serve.cards import has_memory
from retinue.serve.dispatch import CAPACITY, InProcess
from retinue.serve.gateway import Gateway
from retinue.serve.keeping import Keeping
from retinue.stores import Store
from retinue.tools.shapes import listed

if TYPE_CHECKING:
    from starlette.applications import Starlette


class Served:
    """A declared agent: call it for the agent, which is built once, when it is first needed.

    Attributes:
        name: what it is served as.
    """

    def __init__(self, build: Callable[[], Agent], name: str, stages: Iterable[object]) -> None:
        self.name = name
        self.__doc__ = build.__doc__
        self.__name__ = name
        self._build = build
        self._stages = tuple(stages)
        self._agent: Agent | None = None

    def __call__(self) -> Agent:
        if self._agent is None:
            made = self._build()
            if not isinstance(made, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(
                    f"The function under @serve.agent gave {type(made).__name__}; it must return"
                    " an Agent."
                )
            stages = self._stages
            if has_memory(made):
                stages = tuple(one for one in stages if not isinstance(one, Memory))
            advisors = assemble(stages, made.advisors)
            self._agent = made.with_(name=self.name, advisors=advisors)
        return self._agent

    def __repr__(self) -> str:
        return f"Served({self.name!r})"


@overload
def agent(build: Callable[[], Agent], /) -> Served: ...


@overload
def agent(
    *,
    name: str | None = None,
    store: Store | None = None,
    interceptors: Iterable[object] | None = None,
    prices: bool = False,
    think: Literal["shown", "hidden", "summary"] = "shown",
    forward: Any = None,
    extra: Iterable[object] = (),
) -> Callable[[Callable[[], Agent]], Served]: ...


def agent(
    build: Callable[[], Agent] | None = None,
    /,
    *,
    name: str | None = None,
    store: Store | None = None,
    interceptors: Iterable[object] | None = None,
    prices: bool = False,
    think: Literal["shown", "hidden", "summary"] = "shown",
    forward: Any = None,
    extra: Iterable[object] = (),
) -> Served | Callable[[Callable[[], Agent]], Served]:
    """Declares a served agent: decorates a function that builds one, and gives it the standard
    pipeline, memory (200) → interceptors (300) → usage (350) → thinking (400) → forwarding (500).

        @retinue.serve.agent(store=SQLite("chat.db"))
        def support() -> Agent:
            return Agent("openai:gpt-5-mini", tools=[search])

    Its own advisors are put among these by their order, as `assemble` does. Without options the
    parentheses may be left out.

    Args:
        build: the function.
        name: what it is served as; the function's name by default.
        store: where its conversations are kept; in the process by default. An agent with a memory
            of its own keeps that.
        interceptors, prices, think, forward, extra: the other stages, and further advisors, as for
            `retinue.advisors.standard`.

    Raises:
        ConfigError: what is decorated is no plain function, or a stage cannot be as it is given.
        MissingExtraError: prices are asked for, and genai-prices is not installed.
    """
    pipeline = standard(
        store=True if store is None else store,
        interceptors=interceptors,
        prices=prices,
        think=think,
        forward=forward,
        extra=extra,
    )

    def declare(build: Callable[[], Agent]) -> Served:
        if not callable(build) or inspect.iscoroutinefunction(build):
            raise ConfigError(
                f"@serve.agent(...) decorates a plain function that builds an agent, not {build!r}."
            )
        return Served(build, name or getattr(build, "__name__", "agent"), pipeline)

    return declare if build is None else declare(build)


Servable = Agent | Served
"""An agent, or one that was declared."""


def app(
    agents: Servable | Mapping[str, Servable],
    *,
    store: Store | None = None,
    access: Access | None = None,
    bounds: Bounds | None = None,
    keeping: Keeping | None = None,
    capacity: int = CAPACITY,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    console: bool = True,
) -> "Starlette":
    """Agents as an ASGI app, which any ASGI server runs and any ASGI framework mounts.

    Where it is mounted, its host closes it: `await app.state.gateway.close()`.

    Args:
        agents: one agent, or several by name.
        store: where agents that have no memory keep their conversations; by default they keep none.
        access: who may come in; by default anybody, as one and the same owner.
        bounds: what requests and turns may take up.
        keeping: how much is kept of turns for readers who come back.
        capacity: turns that run at once.
        origins: origins whose pages may use it from a browser; by default none but its own.
        hosts: host names that requests may be for; by default any.
        console: whether there is a page at its root for those who develop or watch an agent.

    Raises:
        ConfigError: what cannot be served is refused here.
        MissingExtraError: the packages of a server are not installed.
    """
    gateway = gateway_of(
        agents, store=store, access=access, bounds=bounds, keeping=keeping, capacity=capacity
    )
    return app_of(gateway, origins=origins, hosts=hosts, console=console)


def app_of(
    gateway: Gateway,
    *,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    console: bool = True,
) -> "Starlette":
    """The ASGI app of a gateway; args and errors are those of `app`."""
    try:
        from retinue.serve.http.app import http_app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("retinue"):
            raise
        raise MissingExtraError(
            f"Serving over HTTP needs {error.name}; install it with: pip install 'retinue[serve]'"
        ) from error
    return http_app(
        gateway, origins=listed("origins", origins), hosts=listed("hosts", hosts), console=console
    )


def gateway_of(
    agents: Servable | Mapping[str, Servable],
    *,
    store: Store | None = None,
    capacity: int = CAPACITY,
    **options: Any,
) -> Gateway:
    """A gateway that runs agents in this process.

    Args:
        agents, store, capacity: as for `app`.
        options: `access`, `bounds` and `keeping`, as for `app`.
    """
    dispatcher = InProcess(named(agents), store=store, capacity=capacity)
    return Gateway(dispatcher, stores=dispatcher.stores(), **options)


def named(agents: Servable | Mapping[str, Servable]) -> dict[str, Agent]:
    """Agents by name; those that were declared are built.

    Raises:
        ConfigError: something is no agent.
    """
    if isinstance(agents, list | tuple | set):
        raise ConfigError("Several agents are given by their names: {name: agent, ...}.")
    if isinstance(agents, Mapping):
        return {name: _built(one) for name, one in agents.items()}
    built = _built(agents)
    return {built.name: built} if isinstance(built, Agent) else {"agent": built}  # pyright: ignore[reportUnnecessaryIsInstance]


def _built(one: Servable) -> Agent:
    return one() if isinstance(one, Served) else one
