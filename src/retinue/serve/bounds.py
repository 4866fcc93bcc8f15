"""What a gateway lets one request, one turn and one owner take up."""

import time
from collections import OrderedDict
from typing import Final

from msgspec import Struct, structs

from retinue.errors import ConfigError
from retinue.serve.faults import Refused
from retinue.tools.options import is_positive

STALLED: Final = 60.0
"""Seconds after which a client is given up that takes nothing of what it is sent."""


class Bounds(Struct, frozen=True, kw_only=True):
    """Limits of a gateway. None is no limit.

    Raises ConfigError, naming the limit, where nothing could run under one.

    Attributes:
        body_bytes: of a request's body.
        body_seconds: until a request's head, and then its body, has come.
        turn_seconds: that a turn may take, if its client does not ask for less.
        turns: that one owner may have running at once.
        rate: requests a second of one owner, in the long run.
        burst: requests of one owner at once, where there is a rate.
    """

    body_bytes: int = 1_000_000
    body_seconds: float = 10.0
    turn_seconds: float | None = 600.0
    turns: int | None = 1_000
    rate: float | None = None
    burst: int = 20

    def __post_init__(self) -> None:
        optional = ("turn_seconds", "turns", "rate")
        for name, value in structs.asdict(self).items():
            if value is None and name in optional:
                continue
            if not is_positive(value):
                raise ConfigError(f"Bounds({name}={value!r}): the limit is a number above 0.")

    def seconds(self, asked: float | None) -> float | None:
        """How long a turn may take whose client asks for so many seconds."""
        if asked is None or self.turn_seconds is None:
            return self.turn_seconds if asked is None else asked
        return min(asked, self.turn_seconds)


class Rates:
    """A bucket of requests for each owner, that fills again with time.

    Args:
        rate: requests a second.
        burst: requests that a full bucket holds.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._buckets: OrderedDict[str | None, tuple[float, float]] = OrderedDict()

    def take(self, owner: str | None) -> None:
        """Takes one request out of the owner's bucket.

        Raises:
            Refused: it is empty (`too_many`), with the seconds until it is not.
        """
        now = time.monotonic()
        left, at = self._buckets.pop(owner, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        self._buckets[owner] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > _OWNERS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise Refused(
                "too_many",
                f"There are more than {self._rate:g} requests a second; wait a little.",
                retry_after=(1 - left) / self._rate,
            )


_OWNERS: Final = 10_000
"""Owners whose buckets are kept; the one that asked longest ago has a full one again."""
