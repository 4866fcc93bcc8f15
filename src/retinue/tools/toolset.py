"""Several tools as one value: filtered, renamed, joined."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast, overload

from retinue.errors import ConfigError
from retinue.tools.shapes import listed
from retinue.tools.tool import Tool


class Toolset(Sequence[Tool]):
    """An immutable sequence of tools with different names.

    Args:
        tools: tools, or functions that become tools.

    Raises:
        ConfigError: two tools have one name, something is no tool, or it is one tool alone.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools = tuple(map(_as_tool, listed("tools", tools)))
        refuse_duplicates(self._tools)

    def filtered(self, keep: Callable[[Tool], bool]) -> "Toolset":
        """Those tools that `keep` says yes to."""
        return Toolset(tool for tool in self._tools if keep(tool))

    def prefixed(self, prefix: str) -> "Toolset":
        """The same tools with `prefix` before their names."""
        return Toolset(tool.with_(name=prefix + tool.name) for tool in self._tools)

    def __add__(self, other: Iterable[Tool]) -> "Toolset":
        return Toolset((*self._tools, *other))

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> "Toolset": ...
    def __getitem__(self, index: int | slice) -> "Tool | Toolset":
        return Toolset(self._tools[index]) if isinstance(index, slice) else self._tools[index]

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Toolset) and self._tools == other._tools

    def __hash__(self) -> int:
        return hash(self._tools)

    def __repr__(self) -> str:
        return f"Toolset({[tool.name for tool in self._tools]})"


def refuse_duplicates(tools: Iterable[Tool]) -> None:
    """Raises ConfigError if two tools have one name."""
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise ConfigError(
                f"Two tools are called {tool.name!r}; rename one with with_(name=...), or a whole"
                " set with Toolset.prefixed(...)."
            )
        seen.add(tool.name)


def _as_tool(one: Any) -> Tool:
    if isinstance(one, Tool):
        return cast("Tool", one)
    if callable(one):
        return Tool(one)
    raise ConfigError(f"A toolset holds tools and functions, and {one!r} is neither.")
