"""Agents that search for tools, and what their models were shown."""

from typing import Any, Final

from bench.headline.caching import many_tools
from retinue import Agent
from retinue.advisors import ToolSearch
from retinue.models.scripted import Scripted, call

FIND: Final = "search_tools"
WEATHER: Final = call(FIND, query="weather")
EMAIL: Final = call(FIND, query="send email")


def search(**options: Any) -> ToolSearch:
    """A search in every turn, for three tools at most."""
    return ToolSearch(**{"mode": "always", "limit": 3, **options})


def shown(model: Scripted, number: int = -1) -> list[str]:
    """The names of the tools of a request."""
    return [one.name for one in model.requests[number].tools]


def agent(*steps: Any, number: int = 20, **options: Any) -> tuple[Agent, Scripted]:
    """An agent with so many tools and one search, and its model."""
    model = Scripted(*steps)
    return Agent(model, tools=many_tools(number), advisors=[search(**options)]), model
