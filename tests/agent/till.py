"""A till: a tool that asks before it pays, one that does not, and pauses as others find them."""

from typing import Any

from retinue import Agent, TurnResponse, tool
from retinue.chains.snapshot import Snapshot
from retinue.models.scripted import Scripted
from retinue.tools import Tool


class Till:
    """A sensitive tool and a free one, and what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []

    @property
    def tools(self) -> list[Tool]:
        @tool(sensitive=True)
        def pay(amount: int) -> str:
            """Pays."""
            self.did.append(f"pay {amount}")
            return f"paid {amount}"

        @tool
        def count() -> str:
            """Counts."""
            self.did.append("count")
            return "counted"

        return [pay, count]


def later(result: TurnResponse) -> Snapshot:
    """The snapshot as another process would find it."""
    assert result.snapshot is not None
    return Snapshot.load(result.snapshot.dump())


def asking(model: Scripted, till: Till, **options: Any) -> Agent:
    return Agent(model, tools=till.tools, gate="sensitive", **options)
