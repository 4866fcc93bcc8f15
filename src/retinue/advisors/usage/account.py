"""The books of a collector, and the account of one turn, which writes in them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retinue.advisors.usage.limiter import Hold, Limiter, Price
from retinue.advisors.usage.quotas import Per
from retinue.advisors.usage.totals import Recent, Total
from retinue.chains import Booking, ChatRequest, Spent, TurnRequest


class Books:
    """All totals.

    Args:
        keep: of how many turns, conversations, owners and models.
        price: what calls cost, or None where nobody asks.
    """

    def __init__(self, keep: int, price: Price | None) -> None:
        self.total = Total()
        self.turns = Recent(keep, Total)
        self.rounds = Recent(keep, dict[int, Total])
        self.conversations = Recent(keep, Total)
        self.owners = Recent(keep, Total)
        self.models = Recent(keep, Total)
        self.price = price

    def of(self, turn: TurnRequest) -> Iterator[Total]:
        """The totals that a turn counts in, whatever it asks."""
        yield self.total
        yield self.turns.touch(turn.turn_id)
        if turn.conversation is not None:
            yield self.conversations.touch(turn.conversation)
        if turn.owner is not None:
            yield self.owners.touch(turn.owner)

    def as_data(self) -> dict[str, Any]:
        """Everything as JSON values."""
        kept = {
            "models": self.models,
            "owners": self.owners,
            "conversations": self.conversations,
            "turns": self.turns,
        }
        return {"total": self.total.as_data()} | {
            name: {key: total.as_data() for key, total in totals.all().items()}
            for name, totals in kept.items()
        }


class Account:
    """One turn's account: the meter of its model calls.

    Args:
        turn: the turn.
        books: where it is counted.
        limiter: what it is held to.
    """

    def __init__(self, turn: TurnRequest, books: Books, limiter: Limiter) -> None:
        self._turn = turn
        self._books = books
        self._limiter = limiter
        self._models: set[str] = set()
        self._callers: Mapping[Per, str] = {
            "all": "",
            "owner": turn.owner or "",
            "conversation": turn.conversation or turn.turn_id,
        }
        self._passing: Per | None = None if turn.conversation else "conversation"

    def open(self) -> None:
        """Counts the turn. One that goes on after a pause was counted before."""
        for total in self._books.of(self._turn):
            total.turns += not self._turn.resumed

    async def reserve(self, request: ChatRequest, model: str, provider: str) -> Booking | str:
        """See `Meter.reserve`."""
        callers: Mapping[Per, str] = {**self._callers, "model": f"{provider}:{model}"}
        hold = await self._limiter.reserve(request, model, provider, callers, self._passing)
        return hold if isinstance(hold, str) else _Booking(self, self._limiter, hold)

    def count(self, one: Spent) -> float | None:
        """Counts what a call has used, and gives its price."""
        price = self._books.price([one]) if self._books.price else None
        model = f"{one.provider}:{one.model}"
        of_model = self._books.models.touch(model)
        of_model.turns += model not in self._models
        self._models.add(model)
        rounds = self._books.rounds.touch(self._turn.turn_id)
        of_round = rounds.setdefault(one.round, Total(turns=1))
        for total in (*self._books.of(self._turn), of_model, of_round):
            total.add(one, price)
        return price


class _Booking:
    """What is held for one call."""

    def __init__(self, account: Account, limiter: Limiter, hold: Hold) -> None:
        self._account = account
        self._limiter = limiter
        self._hold = hold

    async def settle(self, spent: Sequence[Spent]) -> None:
        """See `Booking.settle`."""
        prices = [self._account.count(one) for one in spent]
        await self._limiter.settle(self._hold, spent, prices)
