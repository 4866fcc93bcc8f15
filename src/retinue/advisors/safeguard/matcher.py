"""Which rule a text breaks, by words and by regular expressions, in one pass over all words.

The words stand in an automaton of Aho and Corasick (pyahocorasick), so the time does not grow with
their number. Regular expressions are those of RE2 (google-re2), whose time grows with the text.
"""

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from retinue.advisors.safeguard.folding import fold, joins, spells
from retinue.errors import ConfigError, MissingExtraError

_MEMORY: Final = 16 << 20  # bytes that an expression may take


class Words:
    """Finds words and phrases in folded texts.

    Args:
        words: each with the name of its rule; the first rule that has a word is named for it.
        whole: whether a word must stand alone where its script has spaces between words.

    Attributes:
        longest: characters of the longest, folded.
        longest_word: that one as it was written.

    Raises:
        ConfigError: nothing is left of a word when it is folded.
        MissingExtraError: pyahocorasick is not installed.
    """

    __slots__ = ("_automaton", "_whole", "longest", "longest_word")

    def __init__(self, words: Iterable[tuple[str, str]], *, whole: bool) -> None:
        self._automaton: Any = _needed("ahocorasick", "pyahocorasick").Automaton()
        self._whole = whole
        self.longest = 0
        self.longest_word = ""
        for rule, word in words:
            folded = fold(word).strip()
            if not folded:
                raise ConfigError(
                    f"The word {word!r} of the rule {rule!r} has nothing to look for."
                )
            if folded not in self._automaton:
                first, last = folded[0], folded[-1]
                edges = (spells(first), spells(last), last.isalnum() or joins(last))
                self._automaton.add_word(folded, (rule, len(folded), *edges))
            if len(folded) > self.longest:
                self.longest, self.longest_word = len(folded), word
        self._automaton.make_automaton()

    def find(self, folded: str, *, since: int = 0, complete: bool = True) -> str | None:
        """The rule of the word that ends first.

        Args:
            folded: where to look.
            since: up to where it has been looked through; what ends there is not found again.
            complete: whether the text ends here. If not, a word at its very end is not found yet,
                since what comes may make another word of it.
        """
        for end, (rule, length, spelt_first, spelt_last, lettered) in self._automaton.iter(folded):
            if end < since:
                continue
            start, after = end + 1 - length, folded[end + 1 : end + 2]
            if self._whole and spelt_first and start and spells(folded[start - 1]):
                continue
            if after:
                if (lettered and joins(after)) or (self._whole and spelt_last and spells(after)):
                    continue
            elif lettered and not complete:
                continue
            return rule
        return None


class Expressions:
    """Finds regular expressions, in texts as they are and folded.

    Args:
        expressions: each with the name of its rule. Case does not count, unless one says
            `(?-i:...)`.

    Raises:
        ConfigError: RE2 does not take one, or it fits every text.
        MissingExtraError: google-re2 is not installed.
    """

    __slots__ = ("_searches",)

    def __init__(self, expressions: Iterable[tuple[str, str]]) -> None:
        re2 = _needed("re2", "google-re2")
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MEMORY
        self._searches: list[tuple[str, Any]] = []
        for rule, expression in expressions:
            try:
                compiled = re2.compile(_bytes(expression), options)
            except re2.error as error:
                raise ConfigError(
                    f"The expression {expression!r} of the rule {rule!r} cannot be used: {error}."
                    " RE2 has no look-around and no references back."
                ) from None
            if compiled.search(b"") is not None:
                raise ConfigError(
                    f"The expression {expression!r} of the rule {rule!r} fits every text."
                )
            self._searches.append((rule, compiled.finditer))

    def find(self, text: str, past: str, *, complete: bool = True) -> str | None:
        """The first rule that a text breaks, as it is or folded.

        Args:
            text: where to look.
            past: what comes before it and has been looked through.
            complete: whether the text ends here; see `Words.find`.
        """
        forms = [(past, past + text)]
        folded = fold(past + text)
        if folded != (past + text).lower():
            forms.append((fold(past), folded))
        written = [(len(_bytes(before)), _bytes(whole)) for before, whole in forms]
        for rule, finditer in self._searches:
            for since, form in written:
                end = len(form) + complete
                if any(since < found.end() < end for found in finditer(form)):
                    return rule
        return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _needed(module: str, package: str) -> Any:
    if find_spec(module) is None:
        raise MissingExtraError(
            f"This Safeguard needs the package {package}; install it with:"
            " pip install 'retinue[guard]'"
        )
    return import_module(module)
