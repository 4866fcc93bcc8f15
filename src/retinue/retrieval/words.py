"""What counts as a word, for an index and for a question. Pure functions over text.

Case, width, accents and invisible characters do not count. `camelCase`, `snake_case` and letters
beside digits are found whole and by their parts. Scripts that put no spaces between words (Chinese,
Japanese, Korean, Thai and their neighbours) are cut into pairs of characters, and kept as single
characters too, so that words of one and two characters are found.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

_HAN: Final = (
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_KANA: Final = ("\u3041-\u3096\u309d-\u309f", "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff")
_HANGUL: Final = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_SOUTH_EAST: Final = "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u104a\u1780-\u17d3"
UNSPACED: Final = (_HAN, *_KANA, _HANGUL, _SOUTH_EAST)
"""Ranges of the scripts that put no spaces between words, for a class of a regular expression."""
# Vowel signs of Indic scripts are no letters to Python, and would cut words in two.
_MARKS: Final = "\u0900-\u0963\u0980-\u09e3\u0a00-\u0dff\u0f00-\u0fbc"

_PIECE: Final = re.compile(
    "|".join(f"(?:[{script}]+)" for script in UNSPACED)
    + f"|(?P<word>(?:[^\\W_{''.join(UNSPACED)}]|[{_MARKS}])+)"
)
_ASCII_WORD: Final = re.compile("[a-zA-Z0-9]+")
_DROPPED: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u0652\u0670\u00ad\u200b-\u200d\u2060\ufeff]"
)
"""Accents, vowel points, and what cannot be seen."""
_FOLDED: Final = str.maketrans("ıøØłŁđĐ", "ioOlLdD")
"""Letters with a stroke, and the dotless i, which Unicode takes for letters of their own."""
_LONGEST: Final = 64
"""Characters of a word that count; what is longer is no word but a key, or a picture in letters."""

_ENGLISH: Final = (
    "a about am an and any are as at be been but by can could d did do does for from had has have"
    " he her him his how i if in into is it its ll m may me my no not of on or our re s shall she"
    " should so some t than that the their them then there these they this those to too ve was we"
    " were what when where which while who whom whose why will with would you your"
)
STOP_WORDS: Final = frozenset(
    (*_ENGLISH.split(), *"のにはをがでとへもやかねよた的了是在和与也吗呢吧")
)
"""Words that find nothing by themselves: of English, and particles of Chinese and Japanese."""


def indexed(text: str) -> list[str]:
    """The words under which a text is found, in its order, repeated as they are in it."""
    return [word for singles, pairs in _runs(text) for word in (*singles, *pairs)]


def asked(text: str, ignored: Collection[str] = STOP_WORDS) -> list[str]:
    """The words to look for, each once.

    Args:
        text: the question.
        ignored: words that are left out, unless the question has no others.
    """
    words = [word for singles, pairs in _runs(text, ignored) for word in pairs or singles]
    return [*dict.fromkeys(words)] if words or not ignored else asked(text, ())


def _runs(
    text: str, ignored: Collection[str] = ()
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Each word with its parts and no pairs; or characters of a script without spaces, and their
    pairs."""
    if text.isascii():  # most of what is indexed, and several times as quick
        for piece in _ASCII_WORD.findall(text):
            if piece.lower() not in ignored:
                yield _forms(piece), ()
        return
    for found in _PIECE.finditer(_folded(text)):
        piece = found[0]
        if found["word"] is None:
            if piece not in ignored:
                yield piece, [first + second for first, second in pairwise(piece)]
        elif piece.casefold() not in ignored:
            yield _forms(piece), ()


@lru_cache(maxsize=8_192)
def _forms(word: str) -> tuple[str, ...]:
    """The word and its parts. Most words of a language are said again soon."""
    return tuple(_singular(one.casefold()) for one in (word, *_parts(word)))


def _folded(text: str) -> str:
    """The text without what does not count, but for its case."""
    plain = _DROPPED.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", plain).translate(_FOLDED)


def _parts(word: str) -> list[str]:
    """The parts of `camelCase` and of letters beside digits; none where it has but one."""
    if word.isdigit() or (word.isalpha() and (word[1:].islower() or word.isupper())):
        return []
    if len(word) > _LONGEST:
        return []
    cuts = [at for at in range(1, len(word)) if _is_cut(word[at - 1 : at + 2])]
    if not cuts:
        return []
    return [word[a:b] for a, b in pairwise([0, *cuts, len(word)])]


def _is_cut(near: str) -> bool:
    """Whether a part begins at the second of two or three characters."""
    before, here, after = near[0], near[1], near[2:]
    if before.isdigit() != here.isdigit():
        return True
    return here.isupper() and (before.islower() or (before.isupper() and after.islower()))


def _singular(word: str) -> str:
    """The word without the s of a plural, by the three rules of Harman's S stemmer."""
    word = word[:_LONGEST]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("us", "ss")):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    return word[:-1]
