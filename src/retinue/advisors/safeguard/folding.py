"""Texts folded so that different ways to write a word are the same. Pure functions over text.

Case, width, accents and all that cannot be seen do not count, any run of spaces and line breaks is
one space, and the four letters i of Turkish are one. What a character becomes depends on it alone,
so that a text may be folded in pieces, wherever they are cut. Signs that make another letter, as
vowels do in Hindi and Thai or the two dots of Japanese, stay, behind the letter that they belong
to; Korean syllables come apart into their letters.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from retinue.retrieval.words import UNSPACED

_MARKS: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
"""Accents, vowel points, and marks that are drawn round any letter."""
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""What shows nothing, and is no control or format character to Unicode."""
_LETTERS: Final = str.maketrans({"\u0131": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h"})
"""Letters with a stroke, and the dotless i, which Unicode takes for letters of their own."""
_UNSPACED: Final = re.compile(f"[{''.join(UNSPACED)}]")
_SPACES: Final = re.compile(" {2,}")
_KEPT: Final = 20_000
"""Characters whose form is kept; it is more than people write."""


class _Forms(dict[int, str]):
    """What each character becomes, found out when it is first seen."""

    def __missing__(self, code: int) -> str:
        form = _form(chr(code))
        if len(self) < _KEPT:
            self[code] = form
        return form


def _form(char: str) -> str:
    if char.isspace():
        return " "
    if unicodedata.category(char) in ("Cc", "Cf") or _BLANK.match(char):
        return ""
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", char)).casefold()
    return _MARKS.sub("", unicodedata.normalize("NFKD", plain)).translate(_LETTERS)


_FORMS: Final = _Forms()


def fold(text: str) -> str:
    """The folded text."""
    folded = text.translate(_FORMS)
    return _SPACES.sub(" ", folded) if "  " in folded else folded


def tail(text: str, size: int) -> int:
    """Where the shortest end of a text begins whose folded form has `size` characters.

    Returns:
        the place in the text, 0 where all of it has fewer.
    """
    at = len(text) - size
    end = text[at:] if at > 0 else ""
    if end.isascii() and len(fold(end)) == size:
        return at
    behind = ""
    for at in range(len(text) - 1, -1, -1):
        form = _FORMS[ord(text[at])]
        if form != " " or behind != " ":
            size -= len(form)
        if size <= 0:
            return at
        behind = form[:1] or behind
    return 0


@lru_cache(maxsize=4_096)
def joins(char: str) -> bool:
    """Whether a folded character belongs to the one before it, and makes another letter of it."""
    return "\u1160" <= char <= "\u11ff" or unicodedata.category(char).startswith("M")


@lru_cache(maxsize=4_096)
def spells(char: str) -> bool:
    """Whether a folded character is part of a word in a script that has spaces between words."""
    letter = char.isalnum() or unicodedata.category(char).startswith("M")
    return letter and not _UNSPACED.match(char)
