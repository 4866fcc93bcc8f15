"""Patterns of your own: a regular expression, or a function.

Expressions are those of RE2 (google-re2), whose time grows with the length of the text alone. One
is matched at a place against the next `longest` characters, so that what is held back is bounded
too. A function is shown one line at a time.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, cast

from retinue.advisors.redact.patterns import Finder, Found, Pattern
from retinue.errors import ConfigError, MissingExtraError

Find = Callable[[str], Iterable[tuple[int, int]]]
"""Where the values of a line are: pairs of begin and end, in characters, in order."""

LINE: Final = 2_000
"""Characters that a function is shown at most; a longer line comes in pieces."""

_MEMORY: Final = 8 << 20  # bytes for one compiled expression
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,29}", re.ASCII)


def own(patterns: Mapping[str, str | Find], longest: int) -> list[Pattern]:
    """Patterns that come as data, by name.

    Args:
        patterns: for each name an expression of RE2, or a function.
        longest: characters that a match of an expression may have.

    Raises:
        ConfigError: a name or a pattern cannot be used.
        MissingExtraError: there is an expression, and google-re2 is not installed.
    """
    return [_one(name, given, longest) for name, given in patterns.items()]


def _one(name: Any, given: Any, longest: int) -> Pattern:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"Redact: {name!r} cannot name a pattern; give a word of letters, digits, _ and -, of"
            " 30 characters at most."
        )
    if isinstance(given, str):
        return Expression(name, given, longest)
    if not callable(given) or inspect.iscoroutinefunction(given):
        what = "an async function" if callable(given) else type(given).__name__
        raise ConfigError(
            f"Redact: the pattern {name!r} is {what}; give a regular expression as a text, or a"
            " plain function that takes a line and gives pairs (begin, end)."
        )
    return Function(name, cast("Find", given))


class Expression:
    """Values that fit an expression of RE2."""

    def __init__(self, name: str, expression: str, longest: int) -> None:
        re2 = _re2()
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            compiled = re2.compile(expression, options)
        except re2.error as error:
            raise ConfigError(
                f"Redact: the pattern {name!r} is no regular expression that runs in bounded time:"
                f" {_told(error)}. RE2 has neither look-around nor back-references."
            ) from error
        if compiled.search("") is not None:
            raise ConfigError(
                f"Redact: the pattern {name!r} fits the empty text; make it ask for something."
            )
        self.name = name
        self._search = compiled.search
        self._match = compiled.match
        self._longest = longest
        # Every match lies between these two, so a text that does not begin like one is no match.
        try:
            self._least, self._most = compiled.possiblematchrange(longest)
        except re2.error:
            self._least, self._most = b"", b"\xff"

    def begin(self) -> Finder:
        """Itself: nothing is kept between two questions."""
        return self

    def find(self, text: str, start: int, ended: bool) -> Found | None:
        """The first value from `start` on."""
        longest, at, size = self._longest, start, len(text)
        while at < size:
            # A piece at a time: RE2 encodes what it is given, and what it is given is short.
            before = at > 0
            found = self._search(text[at - before : at + 2 * longest + 1], int(before))
            if found is None or found.start() - before >= longest:
                at += longest
                continue
            at += found.start() - before
            end = self._end(text, at)
            if end is not None:
                return Found(at, at, end)
            at += 1
        return None

    def undecided(self, text: str, start: int) -> int:
        """Where the end of the text begins like a match."""
        size = len(text)
        for at in range(max(start, size - self._longest - 1), size):
            tail = text[at:].encode("utf-8", "replace")
            if self._least[: len(tail)] <= tail <= self._most:
                return at
        return size

    def drop(self, count: int) -> None:
        """Nothing is kept."""

    def _end(self, text: str, at: int) -> int | None:
        """Where the match ends that starts here, if one does."""
        before = at > 0
        window = text[at - before : at + self._longest + 1]
        match = self._match(window, int(before))
        if match is None or match.end() == match.start():
            return None
        return at + min(match.end() - match.start(), self._longest)


class Function:
    """Values that a function finds."""

    def __init__(self, name: str, find: Find) -> None:
        self.name = name
        self._find = find

    def begin(self) -> Finder:
        """What looks through one text."""
        return _Lines(self.name, self._find)


class _Lines:
    """Shows a function the lines of one text, each once."""

    def __init__(self, name: str, find: Find) -> None:
        self._name = name
        self._find = find
        self._seen = 0  # up to where the function has been shown the text
        self._found: list[Found] = []

    def find(self, text: str, start: int, ended: bool) -> Found | None:
        """The first value from `start` on, in the lines that are whole."""
        while (end := self._line_end(text)) or (ended and self._seen < len(text)):
            end = end or len(text)
            self._found += self._asked(text[self._seen : end], self._seen)
            self._seen = end
        return next((one for one in self._found if one.start >= start), None)

    def undecided(self, text: str, start: int) -> int:
        """Where the line begins that is not whole."""
        self.find(text, start, ended=False)
        return self._seen

    def drop(self, count: int) -> None:
        """The text has lost its beginning."""
        self._seen = max(0, self._seen - count)
        self._found = [
            Found(one.start - count, one.begin - count, one.end - count)
            for one in self._found
            if one.start >= count
        ]

    def _line_end(self, text: str) -> int:
        """Where the next line ends, its break included; 0 if it is not whole."""
        at = text.find("\n", self._seen, self._seen + LINE)
        if at >= 0:
            return at + 1
        return self._seen + LINE if len(text) - self._seen >= LINE else 0

    def _asked(self, line: str, offset: int) -> list[Found]:
        found: list[Found] = []
        for begin, end in sorted(self._find(line)):
            if not 0 <= begin < end <= len(line):
                raise ConfigError(
                    f"Redact: the function of the pattern {self._name!r} gave ({begin}, {end}) for"
                    f" a line of {len(line)} characters; give begin and end of each value in it."
                )
            found.append(Found(offset + begin, offset + begin, offset + end))
        return found


def _re2() -> Any:
    if find_spec("re2") is None:
        raise MissingExtraError(
            "Patterns of your own run in bounded time with the package google-re2; install it with:"
            " pip install 'retinue[re2]'"
        )
    return import_module("re2")


def _told(error: BaseException) -> str:
    text = error.args[0] if error.args else error
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
