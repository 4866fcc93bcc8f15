"""What a turn costs with all tools in every request, and with those that were found.

Providers cache prompts from their start, and tools stand at the start: before the messages. So a
found tool that is appended to the definitions costs the cache of all that comes after them, while
one that is shown in a search result costs nothing but itself. And where all tools are cached
already, reading them again may be cheaper than searching at all. Costs are counted in input
tokens at their full price.
"""

import math
from typing import Final, Literal

from msgspec import Struct, structs

from retinue.errors import ConfigError
from retinue.messages import Usage

Way = Literal["all", "append", "result"]
"""All tools in every request; found ones appended to the definitions; found ones shown in the
search's result."""

ASKED: Final = 30
"""Tokens that a model writes for one search."""
WRAPPED: Final = 12
"""Tokens that it writes more for a call through `call_tool`."""
LISTED: Final = 60
"""Tokens of a search's result that lists names and a line on each."""


class Prices(Struct, frozen=True, kw_only=True):
    """What tokens cost, an input token at full price being 1, and what a provider's cache does.

    Attributes:
        read: an input token that the cache served.
        write: an input token that is written to it: 1.25 at Anthropic, 1 where it is free.
        output: a token of the answer.
        minimum: tokens of the shortest prompt that is cached.
        lifetime: seconds that the cache keeps a prompt nobody asks for.

    Raises:
        ConfigError: one of them is below 0, or no number.
    """

    read: float = 0.1
    write: float = 1.0
    output: float = 5.0
    minimum: int = 1_024
    lifetime: float = 300.0

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (number and math.isfinite(value) and value >= 0):
                raise ConfigError(f"Prices({name}={value!r}) cannot be used; give 0 or more.")

    def cost(self, usage: Usage) -> float:
        """What was used up, in input tokens at full price; what is unknown costs nothing."""
        read, write = usage.cache_read or 0, usage.cache_write or 0
        fresh = max(0, (usage.input or 0) - read - write)
        return fresh + read * self.read + write * self.write + (usage.output or 0) * self.output

    def prompt(self, tokens: float, kept: float, rate: float) -> float:
        """What a prompt costs, of which the first `kept` tokens are cached at this rate."""
        if tokens < self.minimum:
            return tokens
        read = rate * kept if kept >= self.minimum else 0.0
        return read * self.read + (tokens - read) * self.write


class Shape(Struct, frozen=True, kw_only=True):
    """What a turn looks like, whichever way its tools are shown.

    Attributes:
        standing: tokens of instructions and history, which stand before the question.
        question: tokens of the question.
        calls: model calls, those that only search left out.
        growth: tokens that such a call and its results add to the next prompt.
        searches: model calls that only search.
        asked: searches; a model may ask for several in one call.
        revealed: tokens of the definitions that are found.
        across: the share of what could be cached that is, when a turn begins.
        within: the same for the later calls of a turn.
        again: the same for a call with new definitions among its tools: earlier turns may have
            found the same ones.
    """

    standing: float
    question: float
    calls: float
    growth: float
    searches: float
    asked: float
    revealed: float
    across: float
    within: float
    again: float


def estimate(way: Way, shape: Shape, fixed: float, prices: Prices) -> float:
    """What a turn costs one way, in input tokens at full price, without the answer itself.

    Args:
        way: how tools are shown.
        shape: the turn.
        fixed: tokens of the definitions that every request has: all of them, or the search tool
            and those that are always included.
        prices: what tokens cost.
    """
    searching = way != "all"
    searches = shape.searches if searching else 0.0
    calls = shape.calls + searches
    prompt = fixed + shape.standing + shape.question
    total = prices.prompt(prompt, fixed + shape.standing, shape.across)
    at = 1
    while at < calls:
        kept, rate = prompt, shape.within
        share = min(1.0, searches - (at - 1)) if at - 1 < searches else 0.0
        if share:
            shown = share / searches * shape.revealed
            prompt += shown + share / searches * LISTED * shape.asked
            if way == "append":
                kept, rate = fixed + shown + shape.standing, shape.again
        prompt += (1.0 - share) * shape.growth
        total += min(1.0, calls - at) * prices.prompt(prompt, kept, rate)
        at += 1
    if searching:
        total += prices.output * ASKED * shape.asked
    if way == "result":
        total += prices.output * WRAPPED * max(0.0, shape.calls - 1)
    return total


class SearchReport(Struct, frozen=True, kw_only=True):
    """How the tools of a turn were shown, and what that cost; in `result.context["tool_search"]`.

    Costs are in input tokens at full price, cached ones counted at what they cost, the output of
    searches at what it costs. They are estimates for the calls that the turn made, but `paid`.

    Attributes:
        way: "all", "append" or "result".
        tools: how many tools there were, those of the search itself left out.
        tokens: tokens of their definitions.
        found: the tools that were found, in order.
        searches: how many searches there were.
        hit_rate: the share of what could be cached that was, when turns began; None while nobody
            has seen any.
        costs: what the turn costs each way that was to choose from, and with all tools.
        paid: what it cost, by the usage that the provider reported, its whole output included;
            None where none was reported.
    """

    way: Way
    tools: int
    tokens: int
    found: tuple[str, ...]
    searches: int
    hit_rate: float | None
    costs: dict[Way, float]
    paid: float | None
