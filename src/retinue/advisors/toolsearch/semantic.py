"""Tools found by what they mean: an embedding model says how near a query and a tool are."""

import asyncio
import inspect
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from operator import mul
from typing import Final
from weakref import WeakKeyDictionary

from retinue.errors import ConfigError
from retinue.tools import ToolSpec

Vector = Sequence[float]
Embed = Callable[[list[str]], Sequence[Vector] | Awaitable[Sequence[Vector]]]
"""Gives one vector for each text, all of one length. A plain function runs in a thread."""

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
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        # One at a time in each event loop: turns that begin together embed their tools once.
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    def __call__(self, specs: Sequence[ToolSpec]) -> "SemanticIndex":
        """The index of these tools. Nothing is embedded yet."""
        return SemanticIndex(self, specs)

    async def of_tools(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of length 1, from what is kept where it is."""
        lock = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
            found = {text: self._kept[text] for text in texts if text in self._kept}
            if missing:
                found.update(zip(missing, await self.of(missing), strict=True))
            for text in dict.fromkeys(texts):
                self._kept[text] = found[text]
                self._kept.move_to_end(text)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return [found[text] for text in texts]

    async def of(self, texts: list[str]) -> list[Vector]:
        """Vectors of length 1, embedded anew.

        Raises:
            ConfigError: `embed` gave something else than a vector for each text.
        """
        if inspect.iscoroutinefunction(self._embed):
            given = self._embed(texts)
        else:
            given = await asyncio.to_thread(self._embed, texts)
        vectors = await given if inspect.isawaitable(given) else given
        made = [_unit([float(number) for number in vector]) for vector in vectors]
        if len(made) != len(texts) or len(set(map(len, made))) > 1:
            raise ConfigError(
                f"embed gave {len(made)} vectors of lengths {sorted(set(map(len, made)))} for"
                f" {len(texts)} texts; it must give one for each, all of one length."
            )
        return made


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
        (asked,) = await self._owner.of([query])
        if vectors and len(vectors[0]) != len(asked):
            raise ConfigError(
                f"embed gave vectors of {len(vectors[0])} numbers for tools and of {len(asked)} for"
                " a query; they must be of one length."
            )
        nearness = [sum(map(mul, vector, asked)) for vector in vectors]
        best = sorted(range(len(nearness)), key=lambda at: -nearness[at])
        return [self._names[at] for at in best[:limit]]


def _unit(vector: Vector) -> Vector:
    length = math.sqrt(sum(map(mul, vector, vector)))
    return [number / length for number in vector] if length else vector
