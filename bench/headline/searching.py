"""What tool search saves, in tokens and in money, with the provider's cache cold and hot."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from bench.headline.caching import CachingModel, many_tools
from retinue import Agent
from retinue.advisors import ToolSearch
from retinue.advisors.toolsearch import Prices
from retinue.models import count_tokens
from tests.virtual_time import VirtualTimeLoop

NEEDS: Mapping[str, str] = {"get_weather": "weather", "sendEmail": "send email"}
COUNT = partial(count_tokens, model="openai:gpt-5")
TURNS = 40
HOT = 10.0
"""Seconds between turns; a provider keeps a prompt for 300."""
COLD = 3_600.0


class Run:
    """Turns one after another, each with a question that needs two tools of many.

    Args:
        tools: how many there are.
        words: how long their descriptions are.
        search: options of `ToolSearch`; None for none.
        instructions: words of the system prompt.
        gap: seconds between turns.
        turns: how many.

    Attributes:
        prompt: prompt tokens of the last turn.
        cost: what all turns cost, in input tokens at full price.
        later: what those from the tenth on cost, when `ToolSearch` has seen what the cache does.
        called: whether both tools were called in every turn.
    """

    def __init__(
        self,
        tools: int,
        words: int,
        search: Mapping[str, Any] | None,
        *,
        instructions: int = 0,
        gap: float = COLD,
        turns: int = 1,
    ) -> None:
        self.prompt = 0
        self.cost = self.later = 0.0
        self.called = True
        model = CachingModel(NEEDS, count=COUNT)
        agent = Agent(
            model,
            tools=many_tools(tools, words),
            advisors=[] if search is None else [ToolSearch(limit=3, **search)],
            instructions=" ".join(["word"] * instructions) or None,
        )
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(self._take(agent, model, gap, turns))

    async def _take(self, agent: Agent, model: CachingModel, gap: float, turns: int) -> None:
        for number in range(turns):
            before = len(model.usages)
            result = await agent.run(f"Do number {number}.")
            ran = {one.name for message in result.messages for one in message.tool_results}
            self.called = self.called and ran >= NEEDS.keys()
            self.prompt = sum(usage.input or 0 for usage in model.usages[before:])
            cost = Prices().cost(result.usage)
            self.cost += cost
            self.later += cost if number >= 9 else 0.0
            await asyncio.sleep(gap)


def change(ours: float, plain: float) -> str:
    """The difference in per cent, with its sign."""
    return f"{100 * (ours / plain - 1):+.0f} %"


def rows() -> list[tuple[str, str, str]]:
    """What is shown, the reference's figure, and ours."""
    plain = Run(50, 48, None)
    found = Run(50, 48, {"mode": "always"})
    said = "both tools called" if plain.called and found.called else "A TOOL WAS NOT CALLED"
    lines = [
        (
            "50 tools, a question that needs two: prompt tokens of the turn",
            "12,100 → 2,637 (-78 %)",
            f"{plain.prompt:,} → {found.prompt:,} ({change(found.prompt, plain.prompt)}), {said}",
        )
    ]
    for name, words, reference in (("short", 4, "+13 %"), ("long", 48, "-20 %")):
        plain = Run(12, words, None)
        forced = Run(12, words, {"mode": "always"})
        left = Run(12, words, {})
        lines.append(
            (
                f"12 tools with {name} descriptions: prompt tokens",
                reference,
                f"{change(forced.prompt, plain.prompt)} if forced,"
                f" {change(left.prompt, plain.prompt)} by default",
            )
        )
    for instructions in (50, 1_500):
        for name, gap, reference in (("cold", COLD, "-65 %"), ("hot", HOT, "+66 %")):
            lines.append(_cost(instructions, name, gap, reference))
    return lines


def _cost(instructions: int, name: str, gap: float, reference: str) -> tuple[str, str, str]:
    def run(search: Mapping[str, Any] | None) -> Run:
        return Run(50, 48, search, instructions=instructions, gap=gap, turns=TURNS)

    plain, always, auto = run(None), run({"mode": "always"}), run({"reveal": "auto"})
    return (
        f"cost of 50 tools, cache {name}, {instructions:,} words of instructions",
        reference,
        f"{change(always.cost, plain.cost)} if forced, {change(auto.cost, plain.cost)} by mode auto"
        f" ({change(auto.later, plain.later)} from the tenth turn on)",
    )
