"""Totals of what was used, by whom, and how they read."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct, structs

from retinue.chains import Spent
from retinue.messages import Usage


class Total(Struct):
    """What was used up.

    Attributes:
        turns: turns that were counted, failed and cancelled ones included.
        calls: model calls that reported tokens.
        usage: their sum.
        cost: US dollars of all calls, the estimated ones included; None where a price is not known
            or prices were not asked for.
        unreported: model calls whose provider reported no tokens.
        estimated: what these used, about; it is not part of `usage`.
    """

    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    cost: float | None = 0.0
    unreported: int = 0
    estimated: Usage = Usage()

    def add(self, one: Spent, price: float | None) -> None:
        """Adds a model call and its price."""
        if one.estimated:
            self.unreported += 1
            self.estimated = self.estimated + one.usage
        else:
            self.calls += 1
            self.usage = self.usage + one.usage
        self.cost = None if self.cost is None or price is None else self.cost + price

    def __str__(self) -> str:
        usage = self.usage
        price = "cost unknown" if self.cost is None else f"${self.cost:.4f}"
        line = (
            f"{self.turns} turns, {self.calls} calls, {usage.input or 0} tokens in"
            f" ({usage.cache_read or 0} cached), {usage.output or 0} out, {price}"
        )
        if self.unreported:
            guess = self.estimated
            line += (
                f"; {self.unreported} calls unreported, about {guess.input or 0} in and"
                f" {guess.output or 0} out"
            )
        return line

    def as_data(self) -> dict[str, Any]:
        """The same as JSON values; tokens that no provider said are None."""
        data = structs.asdict(self)
        return data | {name: structs.asdict(data[name]) for name in ("usage", "estimated")}


T = TypeVar("T")


class Recent(Generic[T]):
    """Things by key. Of more than `keep` keys, the one longest unused goes first.

    Args:
        keep: how many.
        new: makes an empty one.
    """

    def __init__(self, keep: int, new: Callable[[], T]) -> None:
        self._keep = keep
        self._new = new
        self._things: OrderedDict[str, T] = OrderedDict()

    def touch(self, key: str) -> T:
        """What is kept under the key, to add to."""
        if key not in self._things:
            self._things[key] = self._new()
        self._things.move_to_end(key)
        if len(self._things) > self._keep:
            self._things.popitem(last=False)
        return self._things[key]

    def get(self, key: str) -> T:
        """What is kept under the key; an empty one where nothing is."""
        return self._things[key] if key in self._things else self._new()

    def all(self) -> dict[str, T]:
        """Everything, the one used last behind the others."""
        return dict(self._things)
