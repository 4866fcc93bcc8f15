"""Documents taken in, and long ones cut into passages. Pure functions over text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

from msgspec import structs

from retinue.errors import ConfigError
from retinue.retrieval.base import Document

SIZE: Final = 2_000
"""Characters of a passage at most: about 500 tokens of English."""
OVERLAP: Final = 200
"""Characters that two neighbours may share."""

_BOUNDS: Final = (
    re.compile(r"\n[^\S\n]*\n\s*"),  # paragraphs
    re.compile(r"\n\s*"),
    re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。．！？｡][」』”’）]*"),  # noqa: RUF001  (sentences)
    re.compile(r"\s+"),
)
"""Where a text may be cut, the best first."""


def split(text: str, size: int = SIZE, overlap: int = OVERLAP) -> list[str]:
    """The text in passages, cut where a paragraph, a line, a sentence or a word ends.

    Args:
        text: any text.
        size: characters of a passage at most.
        overlap: characters that two neighbours may share at most, so that what is said across a
            cut is whole in one of them; less than half of `size`.

    Raises:
        ConfigError: the numbers make no passages.
    """
    check_sizes(size, overlap)
    return [text[start:end] for start, end in _spans(text, size, overlap)]


def check_sizes(size: int | None, overlap: int) -> None:
    """Refuses sizes that make no passages; None, for documents that stay whole, is none of them.

    Raises:
        ConfigError: the size is below 1, or the overlap is negative or half of it or more.
    """
    if size is None:
        return
    if size < 1:
        raise ConfigError(f"A passage of {size} characters holds nothing; give at least 1.")
    if not 0 <= 2 * overlap < size:
        raise ConfigError(
            f"An overlap of {overlap} characters does not fit passages of {size}; give 0 or more,"
            " and less than half."
        )


def as_documents(given: Iterable[Document | str] | Document | str) -> list[Document]:
    """Texts as documents; of those with one id, the last.

    Raises:
        ConfigError: one is neither a text nor a document, or is blank, or no valid Unicode.
    """
    items: Any = [given] if isinstance(given, (str, Document)) else given
    if not isinstance(items, Iterable):
        raise ConfigError(f"An index takes texts and Documents, not {type(given).__name__}.")
    return [
        *{
            document.id: document for document in map(_checked, cast("Iterable[Any]", items))
        }.values()
    ]


def passages(document: Document, size: int | None, overlap: int) -> Sequence[Document]:
    """The document, in passages if it is longer than `size`; they keep its id and its `meta`."""
    if size is None or len(document.text) <= size:
        return (document,)
    return [
        structs.replace(document, text=document.text[start:end], start=start)
        for start, end in _spans(document.text, size, overlap)
    ]


def _checked(item: object) -> Document:
    document = Document(item) if isinstance(item, str) else item
    if not isinstance(document, Document):
        raise ConfigError(f"An index takes texts and Documents, not {type(item).__name__}.")
    if not document.text.strip():
        raise ConfigError(f"The document {document.id!r} is blank, so nothing could find it.")
    for text in (document.text, document.id):
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise ConfigError(
                f"The document {document.id!a} holds a lone surrogate, which is no character;"
                " replace it, e.g. by text.encode('utf-8', 'replace').decode()."
            )
    return document


def _spans(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Where the passages begin and end, without the white space round them."""
    start = 0
    while start < len(text):
        last = len(text) - start <= size
        end = len(text) if last else _cut(text, start + size // 2, start + size)
        piece = text[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        if last:
            return
        start = _shared(text, end - overlap, end) if overlap else end


def _cut(text: str, first: int, last: int) -> int:
    """The last good place to cut between two places; `last` where there is none."""
    for bound in _BOUNDS:
        ends = [found.end() for found in bound.finditer(text, first, last)]
        if ends:
            return ends[-1]
    return last


def _shared(text: str, first: int, end: int) -> int:
    """Where the next passage begins: at the first sentence, or else word, of what is shared."""
    for bound in _BOUNDS[2:]:
        for found in bound.finditer(text, max(first - 2, 0), end):
            if first <= found.end() < end:
                return found.end()
    return first
