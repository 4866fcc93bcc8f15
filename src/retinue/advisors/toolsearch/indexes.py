"""How tools are found: by keywords, or by a regular expression. `semantic.py` finds by meaning.

An index is built once for a set of tools and searched many times. It knows what models are told
of the tools, not the tools themselves.
"""

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol

from retinue.errors import MissingExtraError
from retinue.retrieval.words import asked, indexed
from retinue.tools import ToolSpec

IN_NAME: Final = 2.0
"""The weight of a word in a tool's name; in its description it weighs 1."""

_MEMORY: Final = 1 << 20
"""Bytes that one regular expression may take; what would take more is taken literally."""


class ToolIndex(Protocol):
    """What finds tools."""

    def search(self, query: str, limit: int) -> Sequence[str] | Awaitable[Sequence[str]]:
        """Names of tools, the best first; it may be `async`.

        Args:
            query: what the model asks for, in its own words.
            limit: how many names are wanted at most.
        """
        ...


MakeIndex = Callable[[Sequence[ToolSpec]], ToolIndex]
"""Makes an index of the tools of a turn. Turns with the same tools share it."""


class KeywordIndex:
    """Finds tools by words, as `retrieval.words` makes them.

    A word weighs ln((N + 1) / (df + 1)) where df of the N tools have it, twice that in a name. So
    a word that all tools have weighs nothing. There is no cut-off: whatever has a word that weighs
    anything can be found. Where there are no more tools than the limit, those that have only words
    without weight come last.

    Args:
        specs: what models are told of the tools.
    """

    __slots__ = ("_found", "_names")

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._names = [spec.name for spec in specs]
        self._found: dict[str, tuple[float, list[tuple[int, float]]]] = {}
        places: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, spec in enumerate(specs):
            weights = dict.fromkeys(indexed(spec.description), 1.0)
            for word in dict.fromkeys(indexed(spec.name)):
                weights[word] = weights.get(word, 0.0) + IN_NAME
            for word, weight in weights.items():
                places[word].append((at, weight))
        total = len(specs)
        for word, found in places.items():
            self._found[word] = (math.log((total + 1) / (len(found) + 1)), found)

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Names of the tools that fit best; of equal ones the earlier first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for word in asked(query, ignored=()):  # a common word weighs little by itself
            rarity, found = self._found.get(word, (0.0, ()))
            if rarity or len(self._names) <= limit:
                for at, weight in found:
                    scores[at] += rarity * weight
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        return [self._names[at] for at, _ in best[:limit]]


class RegexIndex:
    """Finds tools whose name or description fits a regular expression, in any case of letters.

    Its time grows with the length of the texts alone, whatever the expression (RE2). One that is
    not valid there, as with look-ahead, is taken literally. Names that fit come first.

    Args:
        specs: what models are told of the tools.

    Raises:
        MissingExtraError: google-re2 is not installed.
    """

    __slots__ = ("_names", "_re2", "_texts")

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        check_re2()
        self._re2: Any = import_module("re2")
        self._names = [spec.name for spec in specs]
        self._texts = [
            f"{spec.name}\n{spec.description}".encode("utf-8", "replace") for spec in specs
        ]

    def search(self, query: str, limit: int) -> Sequence[str]:
        """Names of the tools that fit, in the order of the tools."""
        search = self._compiled(query).search
        in_names: list[str] = []
        elsewhere: list[str] = []
        for name, text in zip(self._names, self._texts, strict=True):
            found = search(text)
            if found is not None:
                (in_names if found.start() < text.index(b"\n") else elsewhere).append(name)
        return [*in_names, *elsewhere][:limit]

    def _compiled(self, query: str) -> Any:
        options = self._re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MEMORY
        written = query.encode("utf-8", "replace")
        try:
            return self._re2.compile(b"(?m)" + written, options)
        except self._re2.error:
            options.literal = True
            return self._re2.compile(written, options)


def check_re2() -> None:
    """Refuses to go on without bounded regular expressions, which are not loaded yet.

    Raises:
        MissingExtraError: google-re2 is not installed.
    """
    if find_spec("re2") is None:
        raise MissingExtraError(
            "Tools can be searched by regular expressions in bounded time with the package"
            " google-re2; install it with: pip install 'retinue[re2]'"
        )
