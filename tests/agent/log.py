"""A log to look into: an advisor that keeps a turn's messages as a memory would, with no store."""

from collections.abc import Sequence

from retinue import Advisor, TurnRequest, TurnResponse
from retinue.chains import CallNext
from retinue.messages import Message


class Log(Advisor):
    """Keeps the turns of one conversation.

    Attributes:
        messages: all that was ever stored, in order.
        closed: how many turns were let go.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.closed = 0
        self._superseded: frozenset[str] = frozenset()

    @property
    def valid(self) -> list[Message]:
        """What a later turn would be sent."""
        return [message for message in self.messages if message.id not in self._superseded]

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Sends what was said before, and keeps what is said now."""
        request = request.with_(history=(*request.history, *self.valid))
        request.record_in(self)
        return await call_next(request)

    async def append(self, messages: Sequence[Message], superseded: frozenset[str]) -> None:
        """Stores what is new, by id."""
        known = {message.id for message in self.messages}
        self.messages += [message for message in messages if message.id not in known]
        self._superseded |= superseded

    async def revise(self, message: Message) -> None:
        """Replaces the message of the same id."""
        self.messages = [message if one.id == message.id else one for one in self.messages]

    async def pause(self, id: str, document: bytes) -> None:
        """Nobody asks for it."""

    async def go_on(self) -> None:
        """There is no pause to use up."""

    async def close(self) -> None:
        """Counts the end of a turn."""
        self.closed += 1
