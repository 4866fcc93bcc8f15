"""`HoldRelease`: the text of an answer is held on its way until a check lets it go.

It has one hook, `stream`, so it acts on what a model says, the same in `run` and `stream`. How text
is held and cut is in `chains/holding.py`; here is what a check may say.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from msgspec import Struct

from retinue.chains import Advisor, ChatRequest, Refusal, Transform
from retinue.chains.callables import takes
from retinue.chains.holding import Holding, Thoughts, Verdict, check_thinking, cut_of
from retinue.errors import ConfigError


class Stop(Struct, frozen=True):
    """A check's word that ends the turn as blocked.

    Attributes:
        reason: why, for `result.reason`.
        answer: what the caller is told instead; by default what the advisor says.
    """

    reason: str
    answer: str | None = None


Ruling = bool | str | Stop | None
"""None and True let the text go, a text takes its place, a `Stop` and False end the turn."""

HoldCheck = (
    Callable[[str], Ruling | Awaitable[Ruling]] | Callable[[str, str], Ruling | Awaitable[Ruling]]
)
"""Judges the held text, and if it takes two arguments, gets what has left before it too."""

_STOPPED: Final = "The check of the answer stopped it."


class HoldRelease(Advisor):
    """Holds the text of each model call until a check releases it, replaces it or stops the turn.

    Text that a model says before a tool call counts too, and is checked before the tool runs.

    Args:
        check: `check(held)` or `check(held, before)`, plain or async. A plain one must be quick,
            since nothing else runs meanwhile. What it raises ends the turn, and nothing more is
            shown.
        hold: "all" until the model has ended; "sentence" by sentence, or line; or a number of
            characters that stay held, so that what is no longer than that is seen whole, however
            the answer is cut into chunks. Such a check sees all that is held each time that text
            is to leave, so that it may see the same text more than once, and half a word at its
            end.
        thinking: whether reasoning passes unchecked ("pass"), is held until a check has seen the
            whole block ("hold"), or is dropped ("drop").
        answer: what the caller is told when the turn is stopped.
        longest: characters of a sentence at most, 2,000 by default; a longer one is cut.

    Raises:
        ConfigError: an argument that cannot work.
    """

    order = 390  # outside the layer that takes reasoning out of the text
    traits = frozenset({"holds"})

    def __init__(
        self,
        check: HoldCheck,
        *,
        hold: Literal["all", "sentence"] | int = "all",
        thinking: Thoughts = "pass",
        answer: str = "",
        longest: int = 2_000,
    ) -> None:
        check_thinking("HoldRelease", thinking)
        self._cut = cut_of("HoldRelease", hold, longest)
        self._both = _takes_two(check)
        self._check: Callable[..., Any] = check
        self._thinking: Thoughts = thinking
        self._answer = answer

    def stream(self, request: ChatRequest) -> Transform:
        """Holds what one model call says."""
        return Holding(self._cut, self._judge, thinking=self._thinking)

    def _judge(self) -> "_Judge":
        return _Judge(self._check, self._both, self._said)

    def _said(self, ruling: object) -> Verdict:
        if ruling is None or ruling is True:
            return None
        if isinstance(ruling, str):
            return ruling
        if isinstance(ruling, Stop):
            answer = self._answer if ruling.answer is None else ruling.answer
            raise Refusal(self.name, ruling.reason, answer=answer)
        if ruling is False:
            raise Refusal(self.name, _STOPPED, answer=self._answer)
        raise ConfigError(
            f"The check of {self.name} gave {type(ruling).__name__}; it must give None or True to"
            " let the text go, a text to take its place, or False or a Stop to end the turn."
        )


class _Judge:
    """Asks the check about one text of one model call."""

    __slots__ = ("_before", "_check", "_said")

    def __init__(
        self, check: Callable[..., Any], both: bool, said: Callable[[object], Verdict]
    ) -> None:
        self._check = check
        self._said = said
        self._before: list[str] | None = [] if both else None

    def judge(self, held: str, *, complete: bool) -> Verdict | Awaitable[Verdict]:
        if self._before is None:
            ruling = self._check(held)
        else:
            self._before = ["".join(self._before)]
            ruling = self._check(held, self._before[0])
        return self._later(ruling) if inspect.isawaitable(ruling) else self._said(ruling)

    def left(self, text: str) -> None:
        if self._before is not None:
            self._before.append(text)

    async def _later(self, ruling: Awaitable[Any]) -> Verdict:
        return self._said(await ruling)


def _takes_two(check: Any) -> bool:
    """Whether the check wants what has left, too."""
    if not callable(check) or isinstance(check, type):
        raise ConfigError(f"HoldRelease({check!r}): give a function of the held text.")
    if takes(check, 1):
        return False
    if takes(check, 2):
        return True
    raise ConfigError(
        f"HoldRelease({check!r}): it must take (held), or (held, before), and nothing else."
    )
