"""Ledgers: how much of each quota is used or reserved. They know accounts, and no models."""

import threading
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Protocol

from msgspec import Struct


class Claim(Struct, frozen=True):
    """What one call may need of one account.

    Attributes:
        account: the quota, whose it is, and the span of time: any text.
        amount: what is reserved, in the quota's unit.
        limit: what the account may hold in all.
        expires: when nobody asks for the account any more, in seconds since 1970; None is never.
    """

    account: str
    amount: float
    limit: float
    expires: float | None = None


class Ledger(Protocol):
    """Keeps accounts. One that several processes share holds them to one quota together.

    A process that dies leaves what it had reserved in the account until that expires.
    """

    async def reserve(self, claims: Sequence[Claim], now: float) -> int | None:
        """Adds all amounts to their accounts, or none of them, with nothing in between.

        Args:
            claims: each of another account.
            now: seconds since 1970, by the clock of the collector.

        Returns:
            None where all fit; else the number of the first claim that did not, from 0.
        """
        ...

    async def add(self, account: str, amount: float, expires: float | None) -> None:
        """Adds to an account, whatever its limit; a negative amount gives back."""
        ...

    async def used(self, account: str) -> float:
        """What the account holds; 0 for one that is not there."""
        ...


class LocalLedger:
    """A ledger in the memory of this process. Any thread and any event loop may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, float] = {}
        self._expires: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []  # a heap, the next to expire first

    async def reserve(self, claims: Sequence[Claim], now: float) -> int | None:
        """See `Ledger.reserve`."""
        with self._lock:
            self._sweep(now)
            for number, claim in enumerate(claims):
                if self._accounts.get(claim.account, 0.0) + claim.amount > claim.limit:
                    return number
            for claim in claims:
                self._add(claim.account, claim.amount, claim.expires)
        return None

    async def add(self, account: str, amount: float, expires: float | None) -> None:
        """See `Ledger.add`."""
        with self._lock:
            self._add(account, amount, expires)

    async def used(self, account: str) -> float:
        """See `Ledger.used`."""
        with self._lock:
            return self._accounts.get(account, 0.0)

    def _add(self, account: str, amount: float, expires: float | None) -> None:
        self._accounts[account] = self._accounts.get(account, 0.0) + amount
        if expires is not None and self._expires.get(account) != expires:
            self._expires[account] = expires
            heappush(self._due, (expires, account))

    def _sweep(self, now: float) -> None:
        """Lets go of accounts that nobody asks for any more, or they would pile up."""
        while self._due and self._due[0][0] <= now:
            expires, account = heappop(self._due)
            if self._expires.get(account) == expires:  # or it has been asked for since
                del self._expires[account], self._accounts[account]
