"""Text that is held on its way until somebody has judged it. A transform, and no I/O of its own.

A `Cut` says how much of the held text may be judged and how much of that may then leave; a `Judge`
lets it go, puts another text in its place, or raises `Refusal`. Whatever the deltas are, the pieces
that `Sentences` cuts are the same.
"""

import re
from collections.abc import Awaitable, Callable, Generator
from typing import Final, Literal, Protocol

from retinue.chains.send import Given
from retinue.errors import ConfigError
from retinue.messages import Delta, TextDelta, ThinkingDelta

Verdict = str | None
"""None: the text leaves as it is. A text: it stands in the place of what was judged."""

Cut = Callable[[str], tuple[int, int] | None]
"""Of a held text, up to where it is to be judged, and up to where (above 0, no further) it leaves
if it is right. None: not yet."""

Thoughts = Literal["pass", "hold", "drop"]
"""What becomes of reasoning."""


class Judge(Protocol):
    """Judges the held text of one model call."""

    def judge(self, held: str, *, complete: bool) -> Verdict | Awaitable[Verdict]:
        """Judges a text that is held.

        Args:
            held: the text, never empty. It follows what has left.
            complete: whether it ends where a piece does; if not, its end may be half a word.

        Raises:
            Refusal: the model call is given up.
        """
        ...

    def left(self, text: str) -> None:
        """Is told what has left."""
        ...


class Holding:
    """A transform that holds text back until it is judged.

    Args:
        cut: how much is judged at a time; None for all of it, when the model has ended.
        judge: makes a judge: one for the text, and one for each block of reasoning.
        thinking: whether reasoning passes, is held block by block until it is judged, or is
            dropped. Of a dropped block the vendor's proof stays, which may have to go back; of one
            that is replaced it does not, since it proves another text.
    """

    __slots__ = ("_cut", "_held", "_judge", "_make", "_thinking", "_thought")

    def __init__(
        self, cut: Cut | None, judge: Callable[[], Judge], *, thinking: Thoughts = "pass"
    ) -> None:
        self._cut = cut
        self._make = judge
        self._judge = judge()
        self._thinking = thinking
        self._held: list[str] = []
        self._thought: list[str] = []

    def feed(self, delta: Delta) -> Given:
        """Takes one delta; gives what may leave, which takes as long as the judge does."""
        if isinstance(delta, TextDelta):
            return _given(self._take(delta.text))
        if not isinstance(delta, ThinkingDelta) or self._thinking == "pass":
            return (delta,)
        if self._thinking == "hold":
            return _given(self._think(delta))
        proves = delta.signature is not None or delta.opaque is not None
        return (ThinkingDelta("", delta.signature, delta.opaque),) if proves else ()

    def flush(self) -> Given:
        """Gives the rest, once it is judged."""
        return _given(self._finish())

    def _take(self, text: str) -> "_Steps":
        out = (yield from self._reasoned()) if self._thought else []
        self._held.append(text)
        if self._cut is None:
            return out
        held = "".join(self._held)
        while held and (parts := self._cut(held)) is not None:
            judged, leaves = parts
            verdict = yield self._judge.judge(held[:judged], complete=judged == leaves)
            if verdict is not None:
                leaves = max(0, len(verdict) - (judged - leaves))
                held = verdict + held[judged:]
            self._release(held[:leaves], out)
            held = held[leaves:]
        self._held = [held]
        return out

    def _think(self, delta: ThinkingDelta) -> "_Steps":
        if delta.text:
            self._thought.append(delta.text)
        if delta.signature is None and delta.opaque is None:
            return []
        if not self._thought:
            return [delta]
        return (yield from self._reasoned(delta.signature, delta.opaque))

    def _reasoned(self, signature: str | None = None, opaque: str | None = None) -> "_Steps":
        """The block of reasoning that has ended."""
        text = "".join(self._thought)
        self._thought = []
        verdict = yield self._make().judge(text, complete=True)
        if verdict is None:
            return [ThinkingDelta(text, signature, opaque)]
        return [ThinkingDelta(verdict)] if verdict else []

    def _finish(self) -> "_Steps":
        out = (yield from self._reasoned()) if self._thought else []
        held = "".join(self._held)
        self._held = []
        if held:
            verdict = yield self._judge.judge(held, complete=True)
            self._release(held if verdict is None else verdict, out)
        return out

    def _release(self, text: str, out: list[Delta]) -> None:
        if text:
            self._judge.left(text)
            out.append(TextDelta(text))


_Steps = Generator[Verdict | Awaitable[Verdict], Verdict, list[Delta]]
"""Asks for verdicts one after another, and gives the deltas that may go on."""


def _given(steps: _Steps) -> Given:
    """What the steps give: at once, unless a judge must be waited for."""
    try:
        asked = next(steps)
        while asked is None or isinstance(asked, str):
            asked = steps.send(asked)
    except StopIteration as done:
        return tuple(done.value)
    return _awaited(steps, asked)


async def _awaited(steps: _Steps, asked: Verdict | Awaitable[Verdict]) -> tuple[Delta, ...]:
    try:
        while True:
            known = asked if asked is None or isinstance(asked, str) else await asked
            asked = steps.send(known)
    except StopIteration as done:
        return tuple(done.value)


class Window:
    """Cuts so that the last characters stay held: what is no longer than they are is judged whole.

    Args:
        size: how many.
    """

    __slots__ = ("_size",)

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, held: str) -> tuple[int, int] | None:
        """Judges all, and lets go what stands before the last characters."""
        leaves = len(held) - self._size
        return (len(held), leaves) if leaves > 0 else None


_CLOSING: Final = "\"'\u201d\u2019\u00bb)\\]}\u300d\u300f\uff09\u3011\u300b\u3009\u3015*_"
"""Quotation marks and brackets behind a stop; the marks of bold and slanted text, too."""
_STOPS: Final = ".!?\u2026\u061f\u06d4\u0964\u0965\u1362"
"""Stops that a space follows: of Latin, Arabic, Devanagari and Ethiopic."""
_WIDE: Final = "\u3002\uff0e\uff01\uff1f\uff61"
"""Stops of Chinese and Japanese."""
_END: Final = re.compile(
    rf"(?<![{_STOPS}])[{_STOPS}]++[{_CLOSING}]*+\s"  # not 3.14, and not example.org
    rf"|(?<![{_WIDE}])[{_WIDE}][{_WIDE}{_STOPS}]*+[{_CLOSING}]*+"
    rf"(?:\s|(?=[^{_WIDE}{_STOPS}{_CLOSING}]))"
    r"|\n"
)
_SPACES: Final = re.compile(r"\s*")


class Sentences:
    """Cuts behind each sentence or line, and loses nothing.

    Further space belongs to the next piece. An abbreviation may end a piece too early. A sentence
    that is too long is cut at its last space, or anywhere if it has none.

    Args:
        longest: characters of a piece at most.
    """

    __slots__ = ("_longest",)

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def __call__(self, held: str) -> tuple[int, int] | None:
        """Judges one piece, which then leaves."""
        begins = _SPACES.match(held)
        found = _END.search(held, begins.end() if begins else 0)
        if found is not None and found.end() <= self._longest:
            return found.end(), found.end()
        if len(held) <= self._longest:
            return None
        at = max((held.rfind(space, 0, self._longest) for space in " \t"), default=-1) + 1
        at = at or self._longest
        return at, at


def cut_of(owner: str, hold: object, longest: int) -> Cut | None:
    """The cut that a word or a number of characters asks for.

    Args:
        owner: the name of the advisor that is made.
        hold: "all", "sentence", or how many characters stay held.
        longest: characters of a piece at most, where sentences are held.

    Raises:
        ConfigError: it is none of them, or less than one character is asked for.
    """
    if type(longest) is not int or longest < 1:
        raise ConfigError(f"{owner}(longest={longest!r}): give a number of characters, from 1 on.")
    if hold == "all":
        return None
    if hold == "sentence":
        return Sentences(longest)
    if type(hold) is not int or hold < 1:
        raise ConfigError(
            f"{owner}(hold={hold!r}): give 'all', 'sentence', or how many characters stay held."
        )
    return Window(hold)


def check_thinking(owner: str, thinking: object) -> None:
    """Refuses what is no choice for reasoning.

    Raises:
        ConfigError: naming it.
    """
    if thinking not in ("pass", "hold", "drop"):
        raise ConfigError(f"{owner}(thinking={thinking!r}): give 'pass', 'hold' or 'drop'.")
