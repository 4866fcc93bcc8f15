"""The tools of a turn as they are searched: their index and the sizes of their definitions."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from retinue.advisors.toolsearch.indexes import MakeIndex, ToolIndex
from retinue.tools import Tool, ToolSpec

KEPT: Final = 64
"""Catalogs that are kept; the one longest unused goes first."""


class Catalog:
    """What models can be told of a set of tools. It holds none of the tools themselves.

    Args:
        specs: what models are told of each.
        make: makes the index, at the first search.
        own: what models are told of the search's own tools, which are not searched.
    """

    __slots__ = ("_index", "_make", "_own", "_sizes", "specs")

    def __init__(self, specs: Sequence[ToolSpec], make: MakeIndex, own: Sequence[ToolSpec]) -> None:
        self.specs = specs
        self._make = make
        self._own = own
        self._index: ToolIndex | None = None
        self._sizes: dict[str, int] | None = None

    @property
    def index(self) -> ToolIndex:
        """What finds them."""
        if self._index is None:
            self._index = self._make(self.specs)
        return self._index

    def sizes(self, counter: Callable[[], Callable[[str], int]]) -> dict[str, int]:
        """Tokens of each definition, by name. They are counted once, whoever asks later.

        Args:
            counter: gives what counts the tokens of a text.
        """
        if self._sizes is None:
            count = counter()
            self._sizes = {spec.name: count(definition(spec)) for spec in (*self.specs, *self._own)}
        return self._sizes


class Catalogs:
    """Catalogs by the tools that they are of.

    Tools are told apart by what models are told of them, as objects: the same tool, or one that
    shares its definition, has the same catalog in every turn. Turns with other tools have another
    one, and none sees that of another.

    Args:
        make: makes an index of tools.
        own: the search's own tools.
    """

    __slots__ = ("_kept", "_make", "_own")

    def __init__(self, make: MakeIndex, own: Sequence[Tool]) -> None:
        self._make = make
        self._own = own
        # By identity; a catalog holds its specs, so that their ids stay their own.
        self._kept: OrderedDict[tuple[int, ...], Catalog] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, tools: Sequence[Tool]) -> Catalog:
        """The catalog of these tools."""
        specs = tuple(tool.spec for tool in tools)
        key = tuple(map(id, specs))
        catalog = self._kept.get(key)
        if catalog is None:
            catalog = self._kept[key] = Catalog(
                specs, self._make, [tool.spec for tool in self._own]
            )
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return catalog


def definition(spec: ToolSpec) -> str:
    """A tool's definition as JSON, about as providers are sent it."""
    return msgspec.json.encode(spec).decode()
