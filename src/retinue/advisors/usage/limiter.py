"""Holds calls to their quotas: reserves before, settles after."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from retinue.advisors.usage.ledger import Claim, Ledger
from retinue.advisors.usage.quotas import Per, Quota, Unit
from retinue.chains import ChatRequest, Spent
from retinue.chains.weight import request_tokens
from retinue.errors import ConfigError
from retinue.messages import Usage

Price = Callable[[Sequence[Spent]], float | None]
"""US dollars of model calls, or None where they are not known."""


class Hold(Struct, frozen=True):
    """What is reserved for one call.

    Attributes:
        guess: what it may use, or None where nothing limits it.
        claims: what was reserved, by unit.
    """

    guess: Spent | None = None
    claims: Sequence[tuple[Unit, Claim]] = ()


_FREE: Final = Hold()


class Limiter:
    """The quotas of one collector.

    Args:
        quotas: what may be used.
        ledger: where it is kept how much is.
        price: what calls cost; needed where a quota is of costs.
        expect: tokens of output that a call may have, where its settings do not say.
        clock: gives the seconds since 1970.
    """

    def __init__(
        self,
        quotas: Sequence[Quota],
        ledger: Ledger,
        price: Price | None,
        expect: int,
        clock: Callable[[], float],
    ) -> None:
        self._quotas = quotas
        self._ledger = ledger
        self._price = price
        self._expect = expect
        self._clock = clock
        self._costly = any(quota.cost is not None for quota in quotas)

    async def reserve(
        self,
        request: ChatRequest,
        model: str,
        provider: str,
        callers: Mapping[Per, str],
        passing: Per | None,
    ) -> Hold | str:
        """Reserves what a call may use in all quotas, or in none.

        Args:
            request, model, provider: the call.
            callers: whose call it is, for each kind of quota.
            passing: the kind for which that is the turn alone.

        Returns:
            what is held; or why the call may not be made.

        Raises:
            ConfigError: a quota is of costs, and no price of the model is known.
        """
        if not self._quotas:
            return _FREE
        output = request.settings.max_tokens or self._expect
        tokens = Usage(input=request_tokens(request), output=output)
        guess = Spent(model, provider, tokens, request.round, True)
        now = self._clock()
        needs: dict[Unit, float] = {"tokens": guess.usage.total, "cost": self._cost(guess)}
        demands: list[tuple[Quota, Unit, Claim]] = [
            (quota, unit, claim)
            for quota in self._quotas
            for unit, claim in quota.claims(
                callers[quota.per], needs, now, passing=quota.per == passing
            )
        ]
        refused = await self._ledger.reserve([claim for _, _, claim in demands], now)
        if refused is None:
            return Hold(guess, [(unit, claim) for _, unit, claim in demands])
        quota, unit, claim = demands[refused]
        used = await self._ledger.used(claim.account)
        return quota.refusal(unit, claim, callers[quota.per], used)

    async def settle(
        self, hold: Hold, spent: Sequence[Spent], prices: Sequence[float | None]
    ) -> None:
        """Puts what was used in the place of what was reserved.

        Args:
            hold: what is held for the call.
            spent: what it used.
            prices: what each of these cost; where one is not known, the guess stands.
        """
        if hold.guess is None:
            return
        # A provider that says half is taken at the guess for the other half.
        full = [hold.guess.usage.overlaid(one.usage) for one in spent]
        costs = [price for price in prices if price is not None]
        for unit, claim in hold.claims:
            used: float = sum(usage.total for usage in full)
            if unit == "cost":
                used = sum(costs) if len(costs) == len(prices) else claim.amount
            await self._ledger.add(claim.account, used - claim.amount, claim.expires)

    def _cost(self, one: Spent) -> float:
        if not self._costly or self._price is None:
            return 0.0
        price = self._price([one])
        if price is None:
            raise ConfigError(
                f"Quota(cost=...) cannot hold: no price of {one.provider}:{one.model} is known."
                " Limit its tokens, or give UsageCollector a function that tells the price."
            )
        return price
