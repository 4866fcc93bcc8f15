"""The handle on a durable turn, and what its end means."""

import asyncio
from typing import TYPE_CHECKING, Any, Final, Literal

from retinue.chains import Output, TurnResponse
from retinue.chains.events import Status
from retinue.durable.documents import Ended, ended_in
from retinue.durable.execution import CANCELLED
from retinue.errors import ConfigError, TurnFailed, TurnNotFound

if TYPE_CHECKING:
    from retinue.durable.host import Host

TurnStatus = Literal["running"] | Status
"""How a turn stands: it runs (or waits for a worker, or for its turn), or how it ended."""

_GIVEN_UP: Final = "The turn was given up: each worker that ran it died."


class Handle:
    """A durable turn, begun in this process or another.

    Attributes:
        id: the turn's.
    """

    def __init__(self, host: "Host", id: str, form: Output | None, found: Any) -> None:
        self.id = id
        self._host = host
        self._form = form
        self._found = found

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    async def result(self) -> TurnResponse:
        """How the turn ended, when it has, wherever it runs.

        Of a turn that was cancelled no more is known than that.

        Raises:
            TurnFailed: it raised, or it was given up since its workers died.
            ConfigError: this process closed its Durable before the turn ended.
        """
        try:
            document = await self._host.result(self._found)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ConfigError(
                f"This Durable was closed before the turn {self.id!r} ended; another worker goes"
                " on with it, and result(id) waits for it there."
            ) from None
        if document is not None:
            return _ended(ended_in(document), self._form)
        if await self._host.is_given_up(self.id):
            raise TurnFailed(_GIVEN_UP)
        return TurnResponse(id=self.id, status="cancelled", reason=CANCELLED)

    async def status(self) -> TurnStatus:
        """How the turn stands now."""
        row = await self._host.status(self.id)
        if row is None:
            raise TurnNotFound(f"There is no durable turn {self.id!r}.")
        match row.status:
            case "SUCCESS":
                return ended_in(str(row.output)).status
            case "CANCELLED":
                return "failed" if await self._host.is_given_up(self.id) else "cancelled"
            case "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
                return "failed"
            case _:
                return "running"


def _ended(ended: Ended, form: Output | None) -> TurnResponse:
    if ended.failed is not None:
        raise TurnFailed(f"The durable turn {ended.turn!r} failed with {ended.failed}.")
    return ended.response(form)
