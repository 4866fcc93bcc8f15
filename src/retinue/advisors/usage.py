"""`UsageCollector`: tokens and cost by turn, conversation, owner and model."""

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from retinue.chains import Advisor, CallNext, Spent, TurnRequest, TurnResponse
from retinue.errors import ConfigError
from retinue.messages import Usage
from retinue.models import check_prices, cost

KEPT: Final = 10_000
"""Conversations (and owners) whose totals are kept; the one longest unused goes first."""


class Total(Struct):
    """What was used up.

    Attributes:
        turns: turns that were counted, failed and cancelled ones included.
        calls: model calls that reported tokens.
        usage: their sum.
        cost: US dollars, or None where a price is not known or prices were not asked for.
    """

    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0


class UsageCollector(Advisor):
    """Adds up what turns use. It sees side calls and sub-agents too (R-USAGE-4).

    Its totals live as long as the object. Put it outermost to count what other layers ask for.
    Sub-agents are counted with the turn that called them; they need no collector of their own.

    Args:
        prices: whether to look up costs; needs the extra `prices`.
        keep: of how many conversations, owners and models to keep totals.

    Raises:
        MissingExtraError: prices are asked for and genai-prices is not installed.
        ConfigError: `keep` is below 1.
    """

    order = 350  # the slot of token usage (R-ONION-8)

    def __init__(self, *, prices: bool = False, keep: int = KEPT) -> None:
        if keep < 1:
            raise ConfigError(f"UsageCollector(keep={keep}): keep the totals of at least 1.")
        if prices:
            check_prices()
        self.total = Total()
        self._prices = prices
        self._keep = keep
        self._conversations: OrderedDict[str, Total] = OrderedDict()
        self._owners: OrderedDict[str, Total] = OrderedDict()
        self._models: OrderedDict[str, Total] = OrderedDict()

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Counts the turn when it is over, however it ends."""
        # An outer layer may come here again, or several times at once: it is one turn all the same.
        mine = request.local(self)
        mine.setdefault("counted", len(request.spent))
        try:
            return await call_next(request)
        finally:
            spent = list(request.spent)[mine["counted"] :]
            mine["counted"] = len(request.spent)
            self._count(request, spent, mine.setdefault("seen", set()))

    def conversation(self, id: str) -> Total:
        """The total of one conversation."""
        return self._conversations.get(id) or Total()

    def owner(self, owner: str) -> Total:
        """The total of one owner."""
        return self._owners.get(owner) or Total()

    def models(self) -> dict[str, Total]:
        """The totals by "provider:model"."""
        return dict(self._models)

    def report(self) -> str:
        """The totals as lines of text, a model a line and the sum last."""
        rows = [*self._models.items(), ("total", self.total)]
        return "\n".join(f"{name}: {_line(total)}" for name, total in rows)

    def _count(self, request: TurnRequest, spent: list[Spent], seen: set[str]) -> None:
        by_model: dict[str, list[Spent]] = {}
        for one in spent:
            by_model.setdefault(f"{one.provider}:{one.model}", []).append(one)
        kept = ((request.conversation, self._conversations), (request.owner, self._owners))
        totals = [("", self.total, spent)]
        totals += [("", self._touch(found, key), spent) for key, found in kept if key is not None]
        totals += [(name, self._touch(self._models, name), own) for name, own in by_model.items()]
        for name, total, own in totals:
            total.turns += name not in seen
            _add(total, own, self._price(own))
        seen.update(name for name, _, _ in totals)

    def _price(self, spent: list[Spent]) -> float | None:
        return cost(spent) if self._prices else None

    def _touch(self, totals: OrderedDict[str, Total], key: str) -> Total:
        total = totals.setdefault(key, Total())
        totals.move_to_end(key)
        if len(totals) > self._keep:
            totals.popitem(last=False)
        return total


def _add(total: Total, spent: list[Spent], price: float | None) -> None:
    total.calls += len(spent)
    for one in spent:
        total.usage = total.usage + one.usage
    if spent:
        known = total.cost is not None and price is not None
        total.cost = total.cost + price if known else None  # pyright: ignore[reportOperatorIssue]


def _line(total: Total) -> str:
    usage = total.usage
    price = "cost unknown" if total.cost is None else f"${total.cost:.4f}"
    return (
        f"{total.turns} turns, {total.calls} calls, {usage.input or 0} tokens in"
        f" ({usage.cache_read or 0} cached), {usage.output or 0} out, {price}"
    )
