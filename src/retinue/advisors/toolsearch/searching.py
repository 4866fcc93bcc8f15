"""The two tools that a tool search brings along, and what one search does."""

from collections.abc import Collection, Mapping
from inspect import isawaitable
from typing import Annotated, Any, Final

from msgspec import Struct

from retinue.advisors.toolsearch.catalog import Catalog
from retinue.errors import ToolError
from retinue.tools import Tool, ToolContext, ToolReturn, ToolSpec

SLOT: Final = "found_tools"
"""The state slot with the names of the tools that the turn has found, in order."""

SEARCH: Final = "retinue.tool_search"
"""Where the search of a call stands in its context."""

_LONGEST_QUERY: Final = 1_000  # characters
_LONGEST_LINE: Final = 200  # characters of a description, where the whole comes later

_FIND: Final = (
    "Finds tools by what they do. You see only some of the tools; there are more, and a tool must"
    " be found before it is called. Search once for each capability that you need, with a few words"
    " on that one capability alone; you may ask for several searches at once."
)
_APPENDED: Final = " What is found can be called from your next answer on."
_CALLED: Final = " Call what is found with {call}; the result says what arguments it takes."
_CALL: Final = (
    "Calls a tool that {find} has found, by its name and with the arguments that its parameters"
    " ask for."
)

Query = Annotated[str, "What the tool must be able to do, in a few words."]
Name = Annotated[str, "The name of the tool, as it was found."]
Arguments = Annotated[dict[str, Any], "The arguments of the tool: an object."]


class Search(Struct, frozen=True):
    """One search, as the tool that runs it gets it.

    Attributes:
        catalog: what is searched.
        limit: how many tools may be found.
        full: whether the result is to hold the definitions.
        shown: tools whose definitions the model has in an earlier result.
        always: tools that it is sent always, which need not be found.
    """

    catalog: Catalog
    limit: int
    full: bool
    shown: Collection[str]
    always: Collection[str]

    async def run(self, query: str) -> ToolReturn:
        """The tools that fit, and their names for the state."""
        if not query.strip():
            raise ToolError("The query is empty; say in a few words what the tool must do.")
        wanted = self.limit + len(self.always)
        named = self.catalog.index.search(query[:_LONGEST_QUERY], wanted)
        if isawaitable(named):
            named = await named
        specs = {spec.name: spec for spec in self.catalog.specs if spec.name not in self.always}
        names = [name for name in dict.fromkeys(named) if name in specs][: self.limit]
        if not names:
            hint = "Nothing fits. Use other words, or go on without a tool for this."
            return ToolReturn({"tools": [], "hint": hint})
        return ToolReturn({"tools": [self._told(specs[name]) for name in names]}, {SLOT: names})

    def _told(self, spec: ToolSpec) -> Mapping[str, Any]:
        if not self.full:
            return {"name": spec.name, "description": _line(spec.description)}
        if spec.name in self.shown:
            return {"name": spec.name, "description": "As found before."}
        return {
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
        }


def search_tool(name: str, call: str | None) -> Tool:
    """The tool that finds tools.

    Args:
        name: its name.
        call: the tool that calls what is found, or None where that is called by itself.
    """

    async def search(query: Query, ctx: ToolContext) -> ToolReturn:
        asked: Search | None = ctx.context.get(SEARCH)
        if asked is None:
            raise ToolError("There is nothing to search in this turn.")
        return await asked.run(query)

    said = _FIND + (_APPENDED if call is None else _CALLED.format(call=call))
    return Tool(search, name=name, description=said)


def call_tool(name: str, find: str) -> Tool:
    """The tool through which found ones are called.

    Its calls are read before they run, so that it runs only where one could not be read.
    """

    async def call(name: Name, arguments: Arguments) -> None:
        raise ToolError(
            f"This calls nothing: {name!r} with {arguments!r}. Give the name of a tool that {find}"
            " has found, and an object with its arguments."
        )

    return Tool(call, name=name, description=_CALL.format(find=find))


def in_order(old: Any, new: Any) -> tuple[str, ...]:
    """The reducer of the slot: what was found before, then what is new, each once."""
    return tuple(dict.fromkeys((*(old or ()), *(new or ()))))


def _line(text: str) -> str:
    """What a description begins with."""
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LONGEST_LINE else first[:_LONGEST_LINE] + "…"
