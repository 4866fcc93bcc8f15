"""`ToolSearch`: a few tools at first, and those that the model looks for as it finds them.

Its `chat` hook chooses what is sent and reads what is called; its `tool` hook gives the search
tool what it searches; its `turn` hook reports. What is sent keeps its beginning: found tools come
after all others, in the order in which they were found, and stay.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, cast

from msgspec import structs

from retinue.advisors.toolsearch.accounts import Accounts
from retinue.advisors.toolsearch.catalog import Catalogs
from retinue.advisors.toolsearch.costs import Prices, Way
from retinue.advisors.toolsearch.indexes import KeywordIndex, MakeIndex, RegexIndex, check_re2
from retinue.advisors.toolsearch.reveal import unwrapped, with_calls
from retinue.advisors.toolsearch.searching import (
    SEARCH,
    SLOT,
    Search,
    call_tool,
    in_order,
    search_tool,
)
from retinue.advisors.toolsearch.sight import Sight
from retinue.chains import (
    Advisor,
    CallNext,
    ChatRequest,
    ChatResponse,
    OnionWarning,
    Slot,
    ToolRequest,
    TurnRequest,
    TurnResponse,
)
from retinue.chains.callables import takes
from retinue.errors import ConfigError
from retinue.messages import Text
from retinue.tools import Tool, ToolResponse

REPORT: Final = "tool_search"
"""Where the report of a turn stands in `result.context`."""

_INDEXES: Final[Mapping[str, MakeIndex]] = {"keyword": KeywordIndex, "regex": RegexIndex}
_WORDS: Final = {
    "mode": ("auto", "always"),
    "reveal": ("append", "result", "auto"),
    "keep": ("turn", "conversation"),
}


class ToolSearch(Advisor):
    """Shows the model a search tool in place of all tools, and then what it has found.

    Args:
        index: how tools are found: "keyword", "regex" (needs the extra `re2`), `Semantic(embed)`,
            or a function that makes a `ToolIndex` of the definitions of tools.
        limit: how many tools one search finds at most.
        always_include: names of tools that are sent always, in this order.
        mode: "always" searches in every turn. "auto" does so where all definitions together are
            more than `threshold` tokens, and cost more than searching does, by the share of
            prompts that the provider's cache was seen to serve.
        reveal: where a found tool is shown: "append" adds its definition to those that are sent;
            "result" shows it in the search's result, to be called through `call_tool`, which
            keeps all that the provider has cached; "auto" takes what costs less.
        keep: whether what was found stays for the "turn" or for the "conversation".
        threshold: tokens of definitions up to which "auto" sends all tools.
        prices: what tokens cost; by default what they do at the model's provider, about.
        count: tokens of a definition; by default by the model's own table, where it is one of
            OpenAI's and the extra `tokens` is installed, and else one for four bytes.
        search_name: the name of the search tool.
        call_name: the name of the tool that calls what "result" shows.

    Raises:
        ConfigError: an argument cannot be what it is.
        MissingExtraError: the index needs a package that is not installed.
    """

    order = 290  # behind memory and permissions, so that what they leave is searched
    traits = frozenset({"searches-tools"})

    def __init__(
        self,
        *,
        index: Literal["keyword", "regex"] | MakeIndex = "keyword",
        limit: int = 5,
        always_include: Iterable[str] = (),
        mode: Literal["auto", "always"] = "auto",
        reveal: Literal["append", "result", "auto"] = "append",
        keep: Literal["turn", "conversation"] = "turn",
        threshold: int = 5_000,
        prices: Prices | None = None,
        count: Callable[[str], int] | None = None,
        search_name: str = "search_tools",
        call_name: str = "call_tool",
    ) -> None:
        _check(mode=mode, reveal=reveal, keep=keep, limit=limit, threshold=threshold)
        make = _maker(index)
        if search_name == call_name:
            raise ConfigError(
                f"ToolSearch(search_name={search_name!r}, call_name={call_name!r}): give two names."
            )
        if count is not None and not takes(count, 1):
            raise ConfigError(
                f"ToolSearch(count={count!r}) cannot be used; give a function of a text."
            )
        if prices is not None and not isinstance(cast("object", prices), Prices):
            raise ConfigError(f"ToolSearch(prices={prices!r}) cannot be used; give Prices(...).")
        self._limit = limit
        self._always = _names(always_include)
        self._ways: tuple[Way, ...] = ("append", "result") if reveal == "auto" else (reveal,)
        self._keep = keep
        self._find: dict[str, Tool] = {
            "append": search_tool(search_name, None),
            "result": search_tool(search_name, call_name),
        }
        self._call = call_tool(call_name, search_name)
        self._find_name, self._call_name = search_name, call_name
        self._catalogs = Catalogs(make, [self._find["result"], self._call])
        self._accounts = Accounts(
            prices=prices,
            count=count,
            threshold=threshold if mode == "auto" else None,
            ways=self._ways,
            limit=limit,
        )
        self.tools = (
            self._find[self._ways[0]],
            *([self._call] if "result" in self._ways else []),
        )
        self.slots = (Slot(SLOT, reducer=in_order, default=()),)

    async def turn(
        self, request: TurnRequest, call_next: CallNext[TurnRequest, TurnResponse]
    ) -> TurnResponse:
        """Tells how the turn's tools were shown, and learns from it."""
        response = await call_next(request)
        sight = self._sight(request)
        if sight is None:
            return response
        report = self._accounts.close(request, sight)
        return response.with_(context={**response.context, REPORT: report})

    async def chat(
        self, request: ChatRequest, call_next: CallNext[ChatRequest, ChatResponse]
    ) -> ChatResponse:
        """Sends the tools that the model is to see, and reads what it calls."""
        there = {tool.name: tool for tool in request.tools if not self._is_own(tool)}
        if not there:
            return await call_next(request.with_(tools=()))
        sight = self._sight(request) or self._begin(request, there)
        sight.catalog = self._catalogs.of([*there.values()])
        response = await call_next(self._shown(request, sight, there))
        asked = [call.name for call in response.message.tool_calls]
        self._accounts.note(request, sight, response.usage, asked, self._find_name)
        return self._read(response, sight, there)

    async def tool(
        self, request: ToolRequest, call_next: CallNext[ToolRequest, ToolResponse]
    ) -> ToolResponse:
        """Gives a search what it searches; tells the model how to find what it must not guess."""
        sight = self._sight(request)
        if request.call.name == self._find_name:
            given = [tool for tool in request.tools if not self._is_own(tool)]
            search = Search(
                catalog=self._catalogs.of(given) if sight is None else sight.catalog,
                limit=self._limit,
                full=(self._ways[0] if sight is None else sight.way) == "result",
                shown=[] if sight is None else [name for name, full in sight.known.items() if full],
                always=self._always,
            )
            return await call_next(request.with_context(**{SEARCH: search}))
        if request.tool is None and sight is not None and sight.way != "all":
            response = await call_next(request.with_(tools=sight.sent))
            hint = Text(f" Find others with {self._find_name} first.")
            result = structs.replace(response.result, parts=(*response.result.parts, hint))
            return response.with_(result=result)
        return await call_next(request)

    # -- what is sent ---------------------------------------------------------------------------

    def _shown(self, request: ChatRequest, sight: Sight, there: Mapping[str, Tool]) -> ChatRequest:
        """The request with the tools that the model is to see, and calls as it wrote them."""
        if sight.way == "all":
            sight.sent = tuple(there.values())
            return request.with_(tools=sight.sent)
        sight.look(request.messages, self._find_name)
        forced = request.settings.tool_choice
        called = [call.name for m in request.transcript for call in m.tool_calls]
        if forced is not None and forced in there:
            sight.forced[forced] = None
        sight.find(sight.forced, there)
        sight.find(request.state.get(SLOT) or (), there)
        sight.find([name for name in called if name in sight.known], there)
        shown = [self._find[sight.way]]
        if sight.way == "result":
            shown.append(self._call)
        added = sight.found if sight.way == "append" else sight.forced
        names = [name for name in dict.fromkeys((*self._always, *added)) if name in there]
        sight.sent = (*shown, *(there[name] for name in names))
        if sight.way == "append":
            return request.with_(tools=sight.sent)
        messages = sight.wrap(request.messages, self._call_name, there)
        return request.with_(tools=sight.sent, messages=messages)

    def _read(
        self, response: ChatResponse, sight: Sight, there: Mapping[str, Tool]
    ) -> ChatResponse:
        """The answer with its calls as they are meant, and the tools that these may name."""
        message = response.message
        if sight.way == "result" and message.tool_calls:
            known = {*there, self._find_name}
            message = with_calls(message, lambda call: unwrapped(call, self._call_name, known))
        offered = sight.sent if response.tools is None else response.tools
        have = {tool.name for tool in (*offered, *sight.sent)}
        found = [
            there[name]
            for name in dict.fromkeys((*sight.found, *sight.known))
            if name in there and name not in have
        ]
        return response.with_(message=message, tools=(*offered, *found))

    def _begin(self, request: ChatRequest, there: Mapping[str, Tool]) -> Sight:
        """Looks at the turn before its first model call, and chooses the way for all of it."""
        missing = [name for name in self._always if name not in there]
        if missing:
            warnings.warn(
                f"ToolSearch(always_include=...) names {missing[0]!r}, and the turn has no such"
                f" tool; it has {', '.join(list(there)[:20])}.",
                OnionWarning,
                stacklevel=2,
            )
        own = [self._find_name, self._call_name]
        catalog = self._catalogs.of([*there.values()])
        sight = self._accounts.open(
            request, catalog, own, self._always, resumed=self._resumed_way(request)
        )
        if self._keep == "conversation":
            sight.look(request.messages, self._find_name)
            sight.find(sight.known, there)
        request.local(self)["sight"] = sight
        return sight

    def _resumed_way(self, request: ChatRequest) -> Way | None:
        """How tools were shown before the pause, as far as its search results tell."""
        if not request.turn.resumed:
            return None
        results = (one for m in request.transcript for one in m.tool_results)
        text = next((one.text for one in results if one.name == self._find_name), None)
        if text is None:
            return None
        return "result" if '"parameters":' in text else "append"

    def _sight(self, request: ChatRequest | ToolRequest | TurnRequest) -> Sight | None:
        return request.local(self).get("sight")

    def _is_own(self, tool: Tool) -> bool:
        return tool.name in (self._find_name, self._call_name)


def _maker(index: Any) -> MakeIndex:
    if isinstance(index, str) and index in _INDEXES:
        if index == "regex":
            check_re2()
        return _INDEXES[index]
    if callable(index):
        return cast("MakeIndex", index)
    raise ConfigError(
        f"ToolSearch(index={index!r}) cannot be used; give 'keyword', 'regex', Semantic(embed), or"
        " a function that makes an index of tools."
    )


def _names(given: Any) -> tuple[str, ...]:
    names = cast("list[object]", [*given] if isinstance(given, (list, tuple)) else [None])
    for name in names:
        if not isinstance(name, str) or not name:
            raise ConfigError(
                f"ToolSearch(always_include={given!r}) cannot be used; give a list of the names of"
                " tools."
            )
    return tuple(dict.fromkeys(cast("list[str]", names)))


def _check(*, limit: Any, threshold: Any, **words: Any) -> None:
    for name, value in words.items():
        if value not in _WORDS[name]:
            raise ConfigError(
                f"ToolSearch({name}={value!r}) cannot be used; give one of"
                f" {', '.join(map(repr, _WORDS[name]))}."
            )
    for name, value, least in (("limit", limit, 1), ("threshold", threshold, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(
                f"ToolSearch({name}={value!r}) cannot be used; give a whole number from {least} up."
            )
