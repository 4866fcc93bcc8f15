"""Agents as they are served: what is put on them, and what they declare of themselves."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from retinue.advisors import Memory
from retinue.agent import Agent
from retinue.chains import LayerView, OnionWarning
from retinue.errors import ConfigError
from retinue.models.capabilities import Capabilities, declared_by
from retinue.serve.clienttools import ClientTools
from retinue.serve.faults import Refused
from retinue.stores import Store


class ToolCard(Struct, frozen=True, omit_defaults=True):
    """A tool as an agent declares it.

    Attributes:
        parameters: JSON Schema of its arguments.
        sensitive: whether a person may be asked before it runs.
        asks: who answers instead of the tool, or None.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    sensitive: bool = False
    asks: Literal["external", "question"] | None = None


class AgentCard(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An agent as it declares itself; nothing here is guessed.

    Attributes:
        model: provider and name of its model.
        takes: what the model is declared to take; what is left out is not known.
        layers: its onion, the outermost first.
        keeps: whether it keeps conversations.
    """

    name: str
    model: str
    tools: tuple[ToolCard, ...] = ()
    takes: Capabilities = Capabilities()
    layers: tuple[LayerView, ...] = ()
    keeps: bool = False


def check_agents(agents: Mapping[str, Agent]) -> None:
    """Refuses what cannot be served.

    Raises:
        ConfigError: there is no agent, or something is none, or a name could not stand in a URL.
    """
    if not agents:
        raise ConfigError("There is no agent to serve; give an Agent, or a dict of them by name.")
    for name, agent in agents.items():
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"What is to be served as {name!r} is no Agent but {agent!r}.")
        fits = 0 < len(name) <= 200 and name.isprintable() and name == name.strip()
        if not fits or "/" in name:
            raise ConfigError(f"No agent can be served under the name {name!r}; give another.")


def unknown_agent(name: str, known: Mapping[str, Any]) -> Refused:
    """The refusal of a job for an agent that is not there."""
    return Refused("not_found", f"There is no agent {name[:80]!r}; there are {', '.join(known)}.")


def keeping(agent: Agent, store: Store | None) -> Agent:
    """The agent with a memory, if it has none and there is a store."""
    if store is None or has_memory(agent):
        return agent
    return _inside(Memory(store), agent)


def served(agent: Agent) -> Agent:
    """The agent with room for tools of the client's."""
    return _inside(ClientTools(), agent)


def stores_of(agents: Iterable[Agent]) -> tuple[Store, ...]:
    """The stores behind the memories of agents, each once."""
    found: dict[int, Store] = {}
    for agent in agents:
        for advisor in agent.advisors:
            if isinstance(advisor, Memory):
                found[id(advisor.store)] = advisor.store
    return tuple(found.values())


def card_of(name: str, agent: Agent) -> AgentCard:
    """An agent as it declares itself, under the name that it is served as."""
    about = agent.explain()
    return AgentCard(
        name=name,
        model=about.model,
        tools=tuple(
            ToolCard(
                tool.name, tool.description, dict(tool.spec.parameters), tool.sensitive, tool.asks
            )
            for tool in agent.tools
        ),
        takes=_plain_capabilities(agent.model),
        layers=about.layers,
        keeps=has_memory(agent),
    )


def _plain_capabilities(model: object) -> Capabilities:
    takes = declared_by(model)
    return Capabilities(**{name: getattr(takes, name) for name in Capabilities.__struct_fields__})


def _inside(layer: object, agent: Agent) -> Agent:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnionWarning)  # they were shown when it was built
        return agent.with_(advisors=[layer, *agent.advisors])


def has_memory(agent: Agent) -> bool:
    """Whether one of its layers remembers."""
    return any("memory" in getattr(one, "traits", ()) for one in agent.advisors)
