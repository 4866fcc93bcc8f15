"""Tools found by what they mean: an embedding model says how near a query and a tool are."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

from retinue.errors import ConfigError
from retinue.retrieval.vectors import Embed, check_lengths, nearness, vectors_of
from retinue.tools import ToolSpec

KEPT: Final = 10_000
"""Vectors of tools that are kept; the one longest unused goes first."""


class Semantic:
    """Finds tools by meaning: `ToolSearch(index=Semantic(embed))`.

    A tool's text is its name and its description. Texts are embedded when they are first searched
    and kept, so that turns with other tools, or the same ones made anew, embed only what is new.

    Args:
        embed: gives vectors for texts; it may be `async`.

    Raises:
        ConfigError: `embed` is no function.
    """

    def __init__(self, embed: Embed) -> None:
        if not callable(embed):
            raise ConfigError(
                f"Semantic({embed!r}) cannot be used; give a function that takes a list of texts"
                " and gives a vector for each."
            )
        self._embed = embed
        self._kept: OrderedDict[str, array[float]] = OrderedDict()
        # One at a time in each event loop: turns that begin together embed their tools once.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def __call__(self, specs: Sequence[ToolSpec]) -> "SemanticIndex":
        """The index of these tools. Nothing is embedded yet."""
        return SemanticIndex(self, specs)

    async def of_tools(self, texts: Sequence[str]) -> list["array[float]"]:
        """The vectors of tools, those that are kept and those that must be made.

        Raises:
            RetrievalError: `embed` gave something else than a vector for each text.
        """
        lock = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
            found = {text: self._kept[text] for text in texts if text in self._kept}
            if missing:
                found.update(zip(missing, await vectors_of(self._embed, missing), strict=True))
                check_lengths([*found.values()])
            for text in dict.fromkeys(texts):
                self._kept[text] = found[text]
                self._kept.move_to_end(text)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return [found[text] for text in texts]

    async def of_query(self, query: str, length: int) -> "array[float]":
        """The vector of a query, which nobody keeps.

        Args:
            query: what is looked for.
            length: how many numbers the vectors of tools have.
        """
        (vector,) = await vectors_of(self._embed, [query])
        check_lengths([vector], length)
        return vector


class SemanticIndex:
    """The tools of one turn, ordered by nearness to a query."""

    __slots__ = ("_names", "_owner", "_texts")

    def __init__(self, owner: Semantic, specs: Sequence[ToolSpec]) -> None:
        self._owner = owner
        self._names = [spec.name for spec in specs]
        self._texts = [f"{spec.name}: {spec.description}" for spec in specs]

    async def search(self, query: str, limit: int) -> Sequence[str]:
        """Names of the nearest tools, the nearest first; always as many as there are."""
        vectors = await self._owner.of_tools(self._texts)
        if not vectors:
            return []
        asked = await self._owner.of_query(query, len(vectors[0]))
        scores = [nearness(vector, asked) for vector in vectors]
        best = sorted(range(len(scores)), key=lambda at: -scores[at])
        return [self._names[at] for at in best[:limit]]
