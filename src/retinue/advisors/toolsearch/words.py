"""Texts as the words that are looked up: of names, descriptions and queries alike.

Words are folded (case, full-width letters) and split where names are put together: at underscores
and hyphens, and inside `camelCase` and `HTTPServer2`, whose whole is a word too. Scripts that put
no spaces between words are taken in pairs of characters.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_UNSPACED: Final = (
    "\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean characters."""

_RUN: Final = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|(?:(?![{_UNSPACED}])[^\W_])+")
_SEAM: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])")


def words(text: str, *, query: bool = False) -> Iterator[str]:
    """The words of a text, in order, repeated ones too.

    Args:
        text: any text.
        query: whether it is what is looked for: of characters without spaces it then gives their
            pairs alone, where an indexed text gives each character too.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    for run in _RUN.finditer(text):
        found = run[0]
        if run["unspaced"]:
            yield from _pairs(found, singles=len(found) == 1 or not query)
            continue
        if not (found.isalpha() and found.islower()):
            parts = _SEAM.split(found)
            if len(parts) > 1:
                yield from (_stem(part.casefold()) for part in parts)
        yield _stem(found.casefold())


def _pairs(run: str, *, singles: bool) -> Iterator[str]:
    if singles:
        yield from run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def _stem(word: str) -> str:
    """The word without the s of an English plural."""
    plural = len(word) > 3 and word[-1] == "s" and word[-2] != "s" and word.isascii()
    return word[:-1] if plural else word
