"""What was seen of the cache and of the turns with one set of tools, and the choice made of it.

A ledger holds sums and rates of many turns and nothing of any one of them. It lives in the
advisor, one for each set of tools and model, of which the ones longest unused go.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct, structs

from retinue.advisors.toolsearch.costs import Prices, Shape, Way

SEEN: Final = 16
"""Observations of the cache that count, and turns that averages look back on, about."""
FORGOTTEN: Final = 3_600.0
"""Seconds after which an observation counts no longer."""
HORIZON: Final = 20
"""Turns that a change of the way is expected to serve; it moves the whole prefix into the cache
once."""


Moment = Literal["first", "later", "found"]
"""The first call of a turn, a later one, or one that has new definitions among its tools."""


class Facts(Struct, kw_only=True):
    """One turn, as it went.

    Attributes:
        calls: model calls, those that only search left out.
        searches: those that only search.
        asked: searches.
        revealed: tokens of the definitions that were found.
        growth: tokens that the prompt grew by from call to call, in all.
        grown: how many calls that is.
    """

    calls: int = 0
    searches: int = 0
    asked: int = 0
    revealed: int = 0
    growth: int = 0
    grown: int = 0

    def __add__(self, other: "Facts") -> "Facts":
        mine, theirs = structs.asdict(self), structs.asdict(other)
        return Facts(**{name: mine[name] + theirs[name] for name in mine})


class Ledger:
    """What was seen with one set of tools.

    Args:
        prices: what tokens cost.
        revealed: tokens that a search is expected to show before any was seen.

    Attributes:
        way: how tools were shown in the last turn, or None before the first.
        reports: whether the provider tells what its cache served.
    """

    __slots__ = (
        "_averages", "_last", "_lost", "_prices", "_seen", "reports", "way",
    )  # fmt: skip

    def __init__(self, prices: Prices, revealed: float) -> None:
        self.way: Way | None = None
        self.reports = False
        self._prices = prices
        self._last: float | None = None
        self._lost = 0.0  # what the present way has cost more than another, so far
        # Turns that follow one another while a cache lives are not like those that come later.
        self._seen: dict[tuple[Moment, bool], deque[tuple[float, float]]] = defaultdict(
            lambda: deque(maxlen=SEEN)
        )
        self._averages = {
            "calls": 2.0, "growth": 100.0, "searches": 1.0, "asked": 1.0, "revealed": revealed,
        }  # fmt: skip

    def begin(self, now: float) -> bool:
        """A turn begins. Gives whether the last one is so near that the cache may have it."""
        soon = self._last is not None and now - self._last <= self._prices.lifetime
        self._last = now
        return soon

    def hit_rate(self, now: float) -> float | None:
        """The share that the cache served when turns began, or None if nobody has seen."""
        return _mean([*self._seen["first", False], *self._seen["first", True]], now)

    def shape(self, standing: float, question: float, *, soon: bool, now: float) -> Shape:
        """The turn that is to be expected.

        Where a prompt is too short to be cached, its way shows nothing of the cache. Then a cache
        that is known to be there is taken to serve a turn that comes soon. What it does not, the
        first turn that way shows.
        """
        presumed = 1.0 if self.reports else 0.0
        across = self._rate("first", soon, presumed if soon else 0.0, now)
        return Shape(
            standing=standing,
            question=question,
            across=across,
            within=self._rate("later", soon, presumed, now),
            again=self._rate("found", soon, presumed if soon else 0.0, now),
            **self._averages,
        )

    def choose(self, costs: Mapping[Way, float], move: Mapping[Way, float]) -> Way:
        """How to show the tools of the next turn.

        Args:
            costs: what a turn costs each way, as it is to be expected.
            move: what it costs once to bring the prefix of each way into the cache.
        """
        best = min(costs, key=costs.__getitem__)
        if self.way is None or self.way not in costs:
            self.way = best
        elif best == self.way:
            self._lost = 0.0
        else:
            worse = costs[self.way] - costs[best]
            self._lost += worse
            if self._lost + HORIZON * worse > move[best]:
                self.way, self._lost = best, 0.0
        return self.way

    def see(self, moment: Moment, rate: float, now: float, *, soon: bool) -> None:
        """A call was served this share of what could be cached of it."""
        self._seen[moment, soon].append((now, min(1.0, rate)))

    def learn(self, facts: Facts, way: Way) -> None:
        """A turn has ended."""
        if not facts.calls:
            return
        self._average("calls", facts.calls)
        if facts.grown:
            self._average("growth", facts.growth / facts.grown)
        if way != "all":
            self._average("searches", facts.searches)
            self._average("asked", facts.asked)
            self._average("revealed", facts.revealed)

    def _rate(self, moment: Moment, soon: bool, presumed: float, now: float) -> float:
        seen = _mean(self._seen[moment, soon], now)
        return presumed if seen is None else seen

    def _average(self, name: str, value: float) -> None:
        self._averages[name] += (value - self._averages[name]) / 4


def _mean(seen: Iterable[tuple[float, float]], now: float) -> float | None:
    rates = [rate for when, rate in seen if now - when <= FORGOTTEN]
    return sum(rates) / len(rates) if rates else None
