"""What a guard may be told to look for, read into words, regular expressions and checks."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from retinue.chains.callables import takes
from retinue.errors import ConfigError

Found = str | bool | None
"""What a check finds: a text that names it, True, or nothing."""

Check = Callable[[str], Found | Awaitable[Found]]
"""Looks at a text, as a moderation model does."""


class Expression(Protocol):
    """A compiled regular expression, of `re` or of `re2`."""

    @property
    def pattern(self) -> str:
        """Its text."""
        ...

    @property
    def finditer(self) -> Any:
        """Finds it in a text."""
        ...


Pattern = str | Expression | Check
"""A word or a phrase, a regular expression, or a check."""

Rules = Pattern | Iterable[Pattern] | Mapping[str, Pattern | Iterable[Pattern]]
"""What to look for: one, many, or many under the names of rules."""

_FLAGS: Final = {re.DOTALL: "(?s)", re.MULTILINE: "(?m)"}


class Reading(Struct, frozen=True):
    """Rules as they were read, each pattern with the name of its rule.

    Attributes:
        words: words and phrases.
        expressions: regular expressions, as text.
        checks: functions; "" is the name of one that has none of its own.
    """

    words: Sequence[tuple[str, str]]
    expressions: Sequence[tuple[str, str]]
    checks: Sequence[tuple[str, Check]]


def read(rules: object) -> Reading:
    """The rules by kind.

    Args:
        rules: see `Rules`.

    Raises:
        ConfigError: there are none, or one of them cannot be looked for.
    """
    reading = Reading([], [], [])
    if isinstance(rules, Mapping):
        named = cast("Mapping[object, object]", rules)
        if not named:
            raise ConfigError("Safeguard: there is no pattern; give a word at least.")
        for name, patterns in named.items():
            if not isinstance(name, str) or not name.strip():
                raise ConfigError(f"Safeguard: {name!r} is no name of a rule; give a text.")
            _sort(reading, name, patterns)
    else:
        _sort(reading, None, rules)
    return reading


def _sort(reading: Reading, rule: str | None, given: object) -> None:
    patterns = _several(given)
    where = "" if rule is None else f" of the rule {rule!r}"
    if not patterns:
        raise ConfigError(f"Safeguard: there is no pattern{where}; give a word at least.")
    for number, pattern in enumerate(patterns, 1):
        if isinstance(pattern, str):
            if not pattern.strip():
                raise ConfigError(f"Safeguard: pattern {number}{where} is blank; leave it out.")
            cast("Any", reading.words).append((rule or pattern, pattern))
        elif (expression := _expression(pattern)) is not None:
            cast("Any", reading.expressions).append((rule or expression, expression))
        elif _is_check(pattern):
            cast("Any", reading.checks).append((rule or "", pattern))
        else:
            raise ConfigError(
                f"Safeguard: pattern {number}{where} is {pattern!r}; give a word or a phrase, a"
                " compiled regular expression, or a function of the text."
            )


def _several(given: object) -> Sequence[object]:
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return tuple(cast("Iterable[object]", given))
    return (given,)


def _expression(pattern: object) -> str | None:
    """The text of a compiled expression, of `re` or of `re2`."""
    if not isinstance(pattern, re.Pattern):
        text = getattr(pattern, "pattern", None)
        return text if isinstance(text, str) and hasattr(pattern, "finditer") else None
    compiled = cast("re.Pattern[Any]", pattern)
    if not isinstance(compiled.pattern, str):
        return None
    if compiled.flags & re.VERBOSE:
        raise ConfigError(
            f"Safeguard: the expression {compiled.pattern!r} is verbose, which RE2 has not; write"
            " it without spaces and remarks."
        )
    return "".join(on for flag, on in _FLAGS.items() if compiled.flags & flag) + compiled.pattern


def _is_check(pattern: object) -> bool:
    if not callable(pattern) or isinstance(pattern, type):
        return False
    if not takes(pattern, 1):
        raise ConfigError(f"Safeguard: {pattern!r} must take the text, and nothing else.")
    return True
