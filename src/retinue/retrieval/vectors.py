"""Texts as vectors, by an embedder that is given, and how near two of them are.

Vectors are made to be of length 1, so that their product is the cosine between them.
"""

import asyncio
import inspect
import math
from array import array
from collections.abc import Awaitable, Callable, Iterable, Sequence
from operator import mul
from typing import Any, Final, cast

from retinue.errors import RetrievalError

Vectors = Sequence[Sequence[float]]
Embed = Callable[[list[str]], Vectors | Awaitable[Vectors]]
"""Gives a vector for each text, in their order, all of one length; a plain one runs in a thread."""

BATCH: Final = 64
"""Texts that an embedder is given at once, at most."""


async def vectors_of(
    embed: Embed, texts: Sequence[str], batch: int = BATCH
) -> list["array[float]"]:
    """The vectors of texts, in their order.

    Raises:
        RetrievalError: the embedder gave something else than a vector for each, all of one length.
    """
    made: list[array[float]] = []
    for at in range(0, len(texts), batch):
        few = list(texts[at : at + batch])
        vectors = await _given(embed, few)
        if len(vectors) != len(few):
            raise RetrievalError(
                f"The embedder gave {len(vectors)} vectors for {len(few)} texts; it must give one"
                " for each, in their order."
            )
        made += map(_of_length_one, vectors)
    check_lengths(made)
    return made


def check_lengths(vectors: Sequence["array[float]"], known: int | None = None) -> None:
    """Refuses vectors that cannot be compared.

    Args:
        vectors: any.
        known: numbers that others have, if there are others.

    Raises:
        RetrievalError: one has more or fewer numbers.
    """
    for vector in vectors:
        known = known or len(vector)
        if len(vector) != known:
            raise RetrievalError(
                f"The embedder gave vectors of {known} and of {len(vector)} numbers; use one"
                " embedder for all that is looked up and asked."
            )


async def _given(embed: Embed, texts: list[str]) -> Vectors:
    if inspect.iscoroutinefunction(embed):
        given: Any = await embed(texts)
    else:
        given = await asyncio.to_thread(embed, texts)
        if inspect.isawaitable(given):
            given = await given
    if not isinstance(given, Iterable):
        raise RetrievalError(
            f"The embedder gave {type(given).__name__}; it must give a list of vectors."
        )
    return list(cast("Iterable[Any]", given))


def _of_length_one(vector: Any) -> "array[float]":
    try:
        numbers = array("d", vector)
    except TypeError as error:
        raise RetrievalError(
            f"The embedder gave {vector!r:.80} for a vector; it must give a list of numbers for"
            " each text."
        ) from error
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    if not length or not math.isfinite(length):
        raise RetrievalError(
            "The embedder gave a vector of length 0 or without end, which points nowhere; look at"
            " what it makes of short and odd texts."
        )
    return array("d", (number / length for number in numbers))


def _sum_of_products(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(map(mul, a, b))


nearness: Callable[[Any, Any], float] = getattr(math, "sumprod", _sum_of_products)
"""The cosine between two vectors of length 1. Python 3.12 has it, and is several times as quick."""
