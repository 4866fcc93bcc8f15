"""What a turn may use up (R-LOOP-3), and the watch on calls that repeat themselves."""

from msgspec import Struct, structs

from retinue.chains import RoundResponse
from retinue.errors import ConfigError
from retinue.models import check_prices
from retinue.tools.options import is_positive


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of one turn. Reaching one ends the turn with status "limit"; it does not raise.

    Raises ConfigError, naming the limit, where nothing could run under one, and MissingExtraError
    where there is a limit to the cost and no price table.

    Attributes:
        rounds: model calls with their tools; a re-entry starts anew. Default 10.
        seconds: wall-clock time of the whole turn, or None.
        tokens: input and output tokens of the whole turn, or None. While an answer streams, its
            tokens are estimated at four bytes each.
        cost: US dollars of the whole turn, or None; needs the extra `prices`.
        repeats: how many rounds in a row may ask for the same calls and get the same results: 2 or
            more, or None for any number.
    """

    rounds: int = 10
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    repeats: int | None = 5

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if value is None and name != "rounds":
                continue
            whole = name in ("rounds", "repeats", "tokens")
            least = 1 if name == "repeats" else 0
            if not is_positive(value) or value <= least or (whole and not isinstance(value, int)):
                kind = "whole number" if whole else "number"
                raise ConfigError(f"Limits({name}={value!r}): the limit is a {kind} above {least}.")
        if self.cost is not None:
            check_prices()

    @property
    def no_round_left(self) -> str:
        """The reason given when the rounds are used up."""
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return f"The limit of {rounds} is reached."

    @property
    def repeated(self) -> str:
        """The reason given when the model goes round in circles."""
        return f"The same calls gave the same results in {self.repeats} rounds running."


def time_is_up(seconds: float) -> str:
    """The reason given when the time is up."""
    return f"The time limit of {seconds:g} seconds is reached."


class Repeats:
    """Counts rounds that ask for the same calls and get the same results."""

    __slots__ = ("_count", "_last", "_limit")

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._last: object = None
        self._count = 0

    def again(self, answer: RoundResponse) -> bool:
        """Whether this round was one too many of the same."""
        if self._limit is None:
            return False
        calls = () if answer.message is None else answer.message.tool_calls
        this = (
            [(call.name, call.arguments) for call in calls],
            [one.result.parts for one in answer.results],
        )
        self._count = self._count + 1 if this == self._last else 1
        self._last = this
        return self._count >= self._limit
