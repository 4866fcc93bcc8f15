"""Agents that pause and remember it; each `again` is as another process would build it."""

from typing import Any

from retinue import Agent
from retinue.advisors import Memory
from retinue.models.scripted import Scripted, call
from retinue.stores import Store
from tests.agent.till import Till

ASK = [call("pay", amount=1), call("count"), call("pay", amount=2), call("pay", amount=3)]
"""A batch that waits for three approvals and has one free call."""


class Desk:
    """A till with a memory, and a new agent for whoever comes.

    Attributes:
        till: the tools, and what they did.
        store: where the conversation is kept.
    """

    def __init__(self, store: Store) -> None:
        self.till = Till()
        self.store = store

    def agent(self, *script: Any, advisors: Any = (), **options: Any) -> Agent:
        """Another agent on the same store, with a model that says these things.

        Options `outside` and `advisors` are layers outside and inside of the memory.
        """
        model = script[0] if script and isinstance(script[0], Scripted) else Scripted(*script)
        memory = Memory(self.store, **options.pop("memory", {}))
        tools = [*self.till.tools, *options.pop("tools", ())]
        options.setdefault("gate", "sensitive")
        layers = [*options.pop("outside", ()), memory, *advisors]
        return Agent(model, tools=tools, advisors=layers, **options)

    async def paused(self, *calls: Any, **options: Any) -> list[str]:
        """Pauses the conversation "c", and gives the ids of what waits."""
        agent = self.agent(calls[0] if calls else ASK, **options)
        result = await agent.run("Pay.", conversation="c")
        assert result.status == "paused"
        assert self.till.did == []
        return [one.id for one in result.pending]
