"""Redacts a text that comes in pieces: the same, however it is split.

What could still become a value is held back, and nothing else. Of values that overlap the one that
begins first counts, then the longer one, then the pattern that was named first.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from retinue.advisors.redact.patterns import Finder, Found, Pattern

Replace = Callable[[str, str], str]
"""Gives what stands in place of a value: `replace(name of the pattern, value)`."""

_CONTEXT: Final = 1  # characters before a value that an expression may look at
_LONG: Final = 256  # held characters from which on it is not looked at again for each few more
_has_space: Final = re.compile(r"\s").search


class Scanner:
    """One text on its way.

    Args:
        patterns: what to look for.
        replace: what to put in its place.
    """

    __slots__ = ("_at", "_finders", "_looked", "_names", "_replace", "_text")

    def __init__(self, patterns: Sequence[Pattern], replace: Replace) -> None:
        self._names = [pattern.name for pattern in patterns]
        self._finders: list[Finder] = [pattern.begin() for pattern in patterns]
        self._replace = replace
        self._text = ""  # what is held, behind what is kept as its surroundings
        self._at = 0  # where what is held begins
        self._looked = 0  # how much was held when it was last looked at

    def feed(self, text: str) -> str:
        """More of the text; gives what is decided."""
        self._text += text
        held = len(self._text) - self._at
        if held > _LONG and held < self._looked * 9 // 8 and not _has_space(text):
            return ""  # a word without an end: looking at all of it each time would be quadratic
        begun = [finder.undecided(self._text, self._at) for finder in self._finders]
        limit = max(self._at, min(begun, default=len(self._text)))
        self._looked = len(self._text) - limit
        if limit == self._at:
            return ""
        done = self._decide(limit, ended=False)
        drop = min(self._at, *begun) - _CONTEXT
        if drop > 0:
            self._text = self._text[drop:]
            self._at -= drop
            for finder in self._finders:
                finder.drop(drop)
        return done

    def flush(self, text: str = "") -> str:
        """The last of the text: gives the rest. The next piece begins another text."""
        self._text += text
        done = self._decide(len(self._text), ended=True)
        for finder in self._finders:
            finder.drop(len(self._text))
        self._text, self._at = "", 0
        return done

    def _decide(self, limit: int, *, ended: bool) -> str:
        text, at = self._text, self._at
        pieces: list[str] = []
        ahead = [finder.find(text, at, ended) for finder in self._finders]
        while (first := _first(ahead, limit)) is not None:
            number, found = first
            pieces.append(text[at : found.begin])
            pieces.append(self._replace(self._names[number], text[found.begin : found.end]))
            at = found.end
            for n, known in enumerate(ahead):
                if known is not None and known.start < at:
                    ahead[n] = self._finders[n].find(text, at, ended)
        if at < limit:
            pieces.append(text[at:limit])
            at = limit
        self._at = at
        return "".join(pieces)


def _first(ahead: Sequence[Found | None], limit: int) -> tuple[int, Found] | None:
    """The value that comes first, and whose it is, among those that are decided."""
    known = [(n, one) for n, one in enumerate(ahead) if one is not None and one.start < limit]
    return min(known, key=lambda each: (each[1].start, -each[1].end), default=None)


def redacted(text: str, patterns: Sequence[Pattern], replace: Replace) -> str:
    """A whole text, redacted."""
    return Scanner(patterns, replace).flush(text)
