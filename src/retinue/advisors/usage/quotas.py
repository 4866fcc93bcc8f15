"""Quotas: how much may be used, by whom, in what time. No I/O and no clock."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, get_args

from msgspec import Struct

from retinue.advisors.usage.ledger import Claim
from retinue.errors import ConfigError
from retinue.tools.options import is_positive

Per = Literal["all", "owner", "conversation", "model"]
Unit = Literal["tokens", "cost"]

NOTHING_NEEDED: Final[Mapping[Unit, float]] = {"tokens": 0.0, "cost": 0.0}

_LONGEST_TURN: Final = 86_400.0
"""Seconds after its last call for which the share of a turn without a conversation is kept."""

_PERS: Final[Sequence[str]] = get_args(Per)
_UNITS: Final[Sequence[Unit]] = get_args(Unit)


class Quota(Struct, frozen=True, kw_only=True):
    """What may be used before model calls are refused.

    Attributes:
        per: whose calls are added up: those of each owner, conversation or model, or "all". Turns
            without an owner share one quota; a turn without a conversation is one of its own.
        tokens: input and output tokens, or None for any number.
        cost: US dollars, or None for any sum.
        every: seconds after which the quota is new. The spans begin at multiples of it since 1970,
            so 86,400 renews at midnight UTC. None never renews.

    Raises:
        ConfigError: nothing is limited, or a value cannot be one.
    """

    per: Per = "all"
    tokens: int | None = None
    cost: float | None = None
    every: float | None = None

    def __post_init__(self) -> None:
        if self.per not in _PERS:
            raise ConfigError(f"Quota(per={self.per!r}): it is one of {', '.join(_PERS)}.")
        for name in ("tokens", "cost", "every"):
            value = getattr(self, name)
            if value is not None and not is_positive(value):
                raise ConfigError(f"Quota({name}={value!r}): give a number above 0, or None.")
        if self.tokens is None and self.cost is None:
            raise ConfigError("Quota() limits nothing; give tokens=... or cost=....")

    def limit(self, unit: Unit) -> float | None:
        """How much of this unit may be used; None for any amount."""
        return self.tokens if unit == "tokens" else self.cost

    def ends(self, now: float) -> float | None:
        """When the present span of time ends, or None."""
        return None if self.every is None else (now // self.every + 1) * self.every

    def account(self, unit: Unit, whose: str, now: float) -> str:
        """The name of the account that the present span of time is kept under."""
        span = 0 if self.every is None else int(now // self.every)
        # What a user may choose stands last, so that it can stand for nothing else.
        return f"{unit}/{self.per}/{self.every}/{span}/{whose}"

    def claims(
        self, whose: str, needs: Mapping[Unit, float], now: float, *, passing: bool = False
    ) -> Iterator[tuple[Unit, Claim]]:
        """What a call may need of it, in each unit that it limits.

        Args:
            whose: the owner, conversation or model that it is for.
            needs: how much the call may need of each unit.
            now: seconds since 1970.
            passing: whether whoever it is for is gone when the turn is over.
        """
        expires = now + _LONGEST_TURN if passing and self.every is None else self.ends(now)
        for unit in _UNITS:
            limit = self.limit(unit)
            if limit is not None:
                yield unit, Claim(self.account(unit, whose, now), needs[unit], limit, expires)

    def refusal(self, unit: Unit, claim: Claim, whose: str, used: float) -> str:
        """Why a call may not be made, and when one may."""
        name = f"{self.per} {whose!r}" if whose else "calls without an owner"
        held = f"The quota of {_amount(claim.limit, unit)}"
        held += "" if self.per == "all" else f" for {name}"
        held += "" if self.every is None else f" every {self.every:,.12g} seconds"
        need = _amount(claim.amount, unit)
        if claim.amount > claim.limit:
            return f"{held} is less than one call may need, {need}: set max_tokens, or raise it."
        sentence = f"{held} is used up: {_amount(used, unit)} are used or reserved, and this call"
        if self.every is None or claim.expires is None:
            return f"{sentence} may need {need}."
        return f"{sentence} may need {need}; it renews at {_time(claim.expires)}."


def check_quotas(quotas: Sequence[Quota]) -> None:
    """Refuses quotas of which one would count for the other.

    Raises:
        ConfigError: one is no quota, or two are of the same calls, unit and span of time.
    """
    seen: set[str] = set()
    for quota in quotas:
        if not isinstance(quota, Quota):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"quotas=[{quota!r}] cannot be used; give Quota(...) objects.")
        for _, claim in quota.claims("", NOTHING_NEEDED, 0.0):
            if claim.account in seen:
                raise ConfigError(
                    f"Two quotas limit the same per {quota.per} in the same time; keep the lower"
                    " one."
                )
            seen.add(claim.account)


def _amount(amount: float, unit: Unit) -> str:
    return f"{amount:,.0f} tokens" if unit == "tokens" else f"${amount:,.4f}"


def _time(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(math.ceil(seconds), UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{seconds:,.0f} seconds since 1970"
