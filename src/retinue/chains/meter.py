"""Meters: who is asked before each model call of a turn, and told what it used.

A turn layer brings one: `request.meter_with(self, meter)`. It meets every call from there on, also
those that no chat layer sees: side calls, and the calls of sub-agents.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from retinue.chains.responses import Spent

if TYPE_CHECKING:
    from retinue.chains.requests import ChatRequest


class Booking(Protocol):
    """What a meter holds for one call until it is over."""

    async def settle(self, spent: Sequence[Spent]) -> None:
        """The call is over, whichever way, and this is what it used.

        Args:
            spent: an entry for each try that reported tokens. Where none did and an answer had
                begun, one entry that is `estimated`; nothing where no answer had.
        """
        ...


class Meter(Protocol):
    """Lets model calls through, or not."""

    async def reserve(self, request: "ChatRequest", model: str, provider: str) -> Booking | str:
        """A call is about to be made.

        Args:
            request: what is sent, as the model gets it.
            model, provider: who is asked.

        Returns:
            a booking, which is settled when the call is over; or a sentence that says why the
            call may not be made: the turn then ends with status "limit" and this reason.
        """
        ...


async def book(request: "ChatRequest", model: str, provider: str) -> Sequence[Booking]:
    """Asks all meters of the turn.

    Raises:
        CancelledError: one refused; the turn ends as `limit`, and nothing is held.
    """
    bookings: list[Booking] = []
    reason: str | None = None
    try:
        for meter in [*request.scope.meters.values()]:
            booking = await meter.reserve(request, model, provider)
            if isinstance(booking, str):
                reason = booking
                break
            bookings.append(booking)
    except BaseException:
        await settle(bookings, ())
        raise
    if reason is not None:
        await settle(bookings, ())
        request.scope.stopping.interrupt("limit", reason)
    return bookings


async def settle(bookings: Sequence[Booking], spent: Sequence[Spent]) -> None:
    """Settles all; the error of one does not keep the others from it."""
    if bookings:
        try:
            await bookings[0].settle(spent)
        finally:
            await settle(bookings[1:], spent)
