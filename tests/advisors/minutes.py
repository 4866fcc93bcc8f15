"""Agents that remember with summaries, and a model that writes them."""

from typing import Any, Final

from retinue import Agent
from retinue.advisors import Memory, Summarizer
from retinue.models.scripted import Scripted
from retinue.stores import Store
from tests.advisors.talking import WAYS, Way

ASKED: Final = "user: Sum up our conversation so far."
"""What stands before a summary."""


class Notes(Scripted):
    """Writes "minutes 1", "minutes 2" … and keeps what it was asked."""

    def __init__(self, *steps: Any) -> None:
        numbered = [f"minutes {n}" for n in range(1, 100)]
        super().__init__(*(steps or numbered), name="notes")

    @property
    def asked(self) -> list[str]:
        """The texts it was given."""
        return [request.messages[0].text for request in self.requests]


def remembering(store: Store | None, notes: Any, **options: Any) -> Memory:
    """A memory whose window holds six messages, if nothing else is said."""
    window: dict[str, Any] = {"max_messages": 6} | options
    return Memory(store, summary=Summarizer(model=notes), **window)


def answering() -> Scripted:
    """A model that answers "re" and the question."""
    return Scripted(lambda request: f"re {request.messages[-1].text}", repeat=True)


async def talk(agent: Agent, *questions: str, way: Way = WAYS[0]) -> None:
    """Asks one question after another in the conversation "c"."""
    for question in questions:
        await way(agent, question, conversation="c")
