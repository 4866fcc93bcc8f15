"""The rules of one guard, ready to be looked for: words first, then expressions, then functions."""

import inspect
from typing import Any, Final

from retinue.advisors.safeguard.folding import fold, tail
from retinue.advisors.safeguard.matcher import Expressions, Words
from retinue.advisors.safeguard.rules import Check, read
from retinue.errors import ConfigError

_SPAN: Final = 200
"""Characters before a piece in which an expression may begin that ends in it."""


class Rulebook:
    """Says which rule a text breaks.

    Args:
        rules: what to look for; see `rules.Rules`.
        whole: whether words must stand alone.

    Attributes:
        checks: the functions among the rules, each with the name of its rule.
        only_words: whether there is nothing but words and phrases.
        longest: characters of the longest of these, folded; 0 if there are none.
        longest_word: that one.

    Raises:
        ConfigError: a rule that cannot work.
        MissingExtraError: what finds words or regular expressions is not installed.
    """

    __slots__ = ("_expressions", "_words", "checks", "longest", "longest_word", "only_words")

    def __init__(self, rules: object, *, whole: bool) -> None:
        reading = read(rules)
        self._words = Words(reading.words, whole=whole) if reading.words else None
        self._expressions = Expressions(reading.expressions) if reading.expressions else None
        self.checks = reading.checks
        self.only_words = not reading.expressions and not reading.checks
        self.longest = 0 if self._words is None else self._words.longest
        self.longest_word = "" if self._words is None else self._words.longest_word

    def find(self, text: str, *, past: str = "", complete: bool = True) -> str | None:
        """The rule that a text breaks by its words and expressions, or None.

        Args:
            text: where to look.
            past: the `context` of what comes before it, and has been looked through.
            complete: whether the text ends here. If not, what stands at its very end is not found
                yet, since what comes may make another word of it.
        """
        rule = None
        if self._words is not None:
            since = len(fold(past)) if past else 0
            rule = self._words.find(fold(past + text), since=since, complete=complete)
        if rule is None and self._expressions is not None:
            rule = self._expressions.find(text, past, complete=complete)
        return rule

    def context(self, text: str) -> str:
        """As much of the end of a text as it takes to find what begins in it."""
        least = 1 if self._expressions is None else _SPAN  # one: whether a word begins behind it
        return text[tail(text, max(self.longest, least)) :]

    async def broken_by(self, text: str) -> str | None:
        """The rule that a text breaks, the functions asked too."""
        rule = self.find(text)
        return await self.checked(text) if rule is None else rule

    async def checked(self, text: str) -> str | None:
        """The rule that a text breaks by the functions; one without a word is not shown to them.

        Raises:
            ConfigError: a function gives neither a text nor a truth value.
        """
        for rule, check in self.checks if text.strip() else ():
            given: Any = check(text)
            found: object = (await given) if inspect.isawaitable(given) else given
            if found is None or found is False or found == "":
                continue
            if found is not True and not isinstance(found, str):
                raise ConfigError(
                    f"A check of Safeguard gave {type(found).__name__}; it must give None, or a"
                    " text that names what it found."
                )
            return _named(rule, check, found)
        return None


def _named(rule: str, check: Check, found: str | bool) -> str:
    if not isinstance(found, str):
        return rule or getattr(check, "__name__", type(check).__name__)
    return f"{rule}: {found}" if rule else found
