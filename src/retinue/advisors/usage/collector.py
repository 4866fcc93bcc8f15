"""The advisor: one account for each turn, which counts its model calls and asks for them first.

It has one hook, `turn`, and does its work as the turn's meter: so it meets every model call just
before it is made, with what is really sent, also side calls and those of sub-agents, which no chat
layer sees.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from retinue.advisors.usage.account import Account, Books
from retinue.advisors.usage.ledger import Ledger, LocalLedger
from retinue.advisors.usage.limiter import Limiter, Price
from retinue.advisors.usage.quotas import NOTHING_NEEDED, Quota, Unit, check_quotas
from retinue.advisors.usage.totals import Total
from retinue.chains import Advisor, CallNext, TurnRequest, TurnResponse
from retinue.errors import ConfigError
from retinue.models import check_prices, cost
from retinue.tools.shapes import listed

KEPT: Final = 10_000
"""Turns, conversations, owners and models whose totals are kept; the longest unused goes first."""


class UsageCollector(Advisor):
    """Adds up what turns use, and refuses model calls that a quota has no room for.

    It meets side calls and the calls of sub-agents too (R-USAGE-4). Its totals live as long as the
    object. Put it outermost, to meet what other layers ask for. Sub-agents are counted with the
    turn that called them; they need no collector of their own.

    A call that a quota has no room for is not made: the turn ends with status "limit", and its
    reason names the quota and when it renews. Before a call, what it may need is reserved; after
    it, what it used is settled, and the rest given back. Turns at the same time can use more than
    a quota only by as much as the estimates of their calls were too low.

    Args:
        prices: whether to look up costs, which needs the extra `prices`; or a function that gives
            them.
        keep: of how many turns, conversations, owners and models to keep totals.
        quotas: what may be used.
        ledger: where it is kept how much of the quotas is used; in the object by default.
        expect: tokens of output that are reserved for a call whose settings have no `max_tokens`.
        clock: gives the seconds since 1970.

    Raises:
        MissingExtraError: prices are asked for and genai-prices is not installed.
        ConfigError: a value cannot be one, or quotas of costs have no prices.
    """

    order = 350  # the slot of token usage (R-ONION-8)
    traits = frozenset({"meters"})

    def __init__(
        self,
        *,
        prices: bool | Price = False,
        keep: int = KEPT,
        quotas: Iterable[Quota] = (),
        ledger: Ledger | None = None,
        expect: int = 1_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if type(keep) is not int or keep < 1:
            raise ConfigError(f"UsageCollector(keep={keep!r}): keep the totals of at least 1.")
        if type(expect) is not int or expect < 1:
            raise ConfigError(f"UsageCollector(expect={expect!r}): expect at least 1 token.")
        self._quotas = listed("quotas", quotas)
        check_quotas(self._quotas)
        if prices is True:
            check_prices()
        elif not prices and any(quota.cost is not None for quota in self._quotas):
            raise ConfigError(
                "Quota(cost=...) needs prices; give UsageCollector(prices=True, ...), or a function"
                " that tells the price of calls."
            )
        price: Price | None = cost if prices is True else prices or None
        self._ledger: Ledger = ledger if ledger is not None else LocalLedger()
        self._limiter = Limiter(self._quotas, self._ledger, price, expect, clock)
        self._books = Books(keep, price)
        self._clock = clock

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Meters the turn from here on."""
        mine = request.local(self)
        if "account" not in mine:
            # An outer layer may come here again, or several times at once: it is one turn.
            mine["account"] = account = Account(request, self._books, self._limiter)
            if request.meter_with(self, account):
                account.open()
        return await call_next(request)

    @property
    def total(self) -> Total:
        """The total of all turns."""
        return self._books.total

    def of_turn(self, id: str) -> Total:
        """The total of one turn, by its id."""
        return self._books.turns.get(id)

    def rounds(self, id: str) -> dict[int, Total]:
        """The totals of one turn by round; under 0 stands what was asked before the first."""
        return dict(self._books.rounds.get(id))

    def conversation(self, id: str) -> Total:
        """The total of one conversation."""
        return self._books.conversations.get(id)

    def owner(self, owner: str) -> Total:
        """The total of one owner."""
        return self._books.owners.get(owner)

    def models(self) -> dict[str, Total]:
        """The totals by "provider:model"."""
        return self._books.models.all()

    def report(self) -> str:
        """The totals as lines of text, a model a line and the sum last."""
        rows = [*self._books.models.all().items(), ("total", self.total)]
        return "\n".join(f"{name}: {total}" for name, total in rows)

    def as_data(self) -> dict[str, Any]:
        """The totals as JSON values: `total`, and by their ids `models`, `owners`, `conversations`,
        `turns`."""
        return self._books.as_data()

    async def used(self, quota: Quota, whose: str = "") -> dict[Unit, float]:
        """How much of a quota is used or reserved at this time, in each unit that it limits.

        Args:
            quota: one of the collector's.
            whose: the owner, the conversation or the "provider:model"; nothing for "all".
        """
        now = self._clock()
        return {
            unit: await self._ledger.used(claim.account)
            for unit, claim in quota.claims(whose, NOTHING_NEEDED, now)
        }
