"""What an advisor is (R-ONION-1).

An advisor is any object with one or more of five hooks:

    async def turn(self, request: TurnRequest, call_next) -> TurnResponse    once per user request
    async def round(self, request: RoundRequest, call_next) -> RoundResponse  once per round
    async def chat(self, request: ChatRequest, call_next) -> ChatResponse    once per model call
    async def tool(self, request: ToolRequest, call_next) -> ToolResponse    once per tool run
    def stream(self, request: ChatRequest) -> Transforms                     what a call sends

and, if it likes, `name`, `order`, `tools`, `slots` and `traits`. It holds configuration only; what
it must keep during a turn it keeps in `request.local(self)`.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from retinue.chains.callables import takes
from retinue.chains.onion import Hook
from retinue.chains.requests import ChatRequest, RoundRequest, ToolRequest, TurnRequest
from retinue.chains.responses import ChatResponse, RoundResponse, TurnResponse
from retinue.chains.send import Transforms
from retinue.chains.state import Slot
from retinue.errors import ConfigError
from retinue.tools import Tool, ToolResponse

CALL_HOOKS: Final = ("turn", "round", "chat", "tool")
"""The hooks of the one shape, from the outside in."""

HOOKS: Final = (*CALL_HOOKS, "stream")

TRAITS: Final = {
    "memory": "keeps the conversation",
    "holds": "holds the stream back: the first token comes late",
    "forwards": "passes the stream on to others",
    "validates-stream": "checks streamed text as it goes by",
    "rewrites": "may change an answer that was already delivered",
    "retries": "calls its inner layers again after an error",
    "validates": "asks again until the answer fits",
    "withholds": "shows an answer only when the turn ends with it",
    "swallows": "turns errors of its inner layers into answers",
    "consults": "may ask models on the side before its inner layers begin",
    "meters": "counts model calls from here on",
    "traces": "records spans and metrics",
    "guards": "may refuse what is asked before a model sees it",
    "grounds": "puts documents before the question",
    "repeats": "sends the question twice",
    "redacts": "takes values out of what is shown or stored; a word waits until it is whole",
    "redacts-log": "takes values out of what is stored",
    "redacts-prompt": "takes values out of what the model is sent",
    "restores": "puts values back into the answer that the model was not sent",
    "reads-history": "reads the conversation before a model is asked",
    "searches-tools": "shows the model only the tools that it has found",
    "words-errors": "words what a model is told of a tool's failure",
    "takes-out-thinking": "takes reasoning in tags out of the text",
    "changes-tools": "adds tools to those on offer, or takes some away",
}
"""What an advisor may say of itself in `traits`, and what that means for its neighbours."""


class Advisor:
    """A base for advisors. Nothing asks for it: any object with a hook will do.

    Attributes:
        name: how results, errors and `explain()` call it; the class's name by default.
        order: where `assemble` puts it (R-ONION-8), or None to stay where its source has it.
        tools: tools that are installed with it.
        slots: state slots that are installed with it.
        traits: words of `TRAITS`.
    """

    name: str = ""
    order: int | None = None
    tools: Sequence[Tool] = ()
    slots: Sequence[Slot] = ()
    traits: frozenset[str] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__


class Layer(Advisor):
    """An advisor made of plain functions, for when a class is too much.

    Args:
        name: how it is called in results, errors and pictures.
        turn, round, chat, tool, stream: its hooks.
        order, tools, slots, traits: as for `Advisor`.
    """

    def __init__(
        self,
        name: str,
        *,
        turn: Hook[TurnRequest, TurnResponse] | None = None,
        round: Hook[RoundRequest, RoundResponse] | None = None,
        chat: Hook[ChatRequest, ChatResponse] | None = None,
        tool: Hook[ToolRequest, ToolResponse] | None = None,
        stream: Callable[[ChatRequest], Transforms] | None = None,
        order: int | None = None,
        tools: Sequence[Tool] = (),
        slots: Sequence[Slot] = (),
        traits: frozenset[str] = frozenset(),
    ) -> None:
        given = {"turn": turn, "round": round, "chat": chat, "tool": tool, "stream": stream}
        for hook, function in given.items():
            if function is not None:
                setattr(self, hook, function)
        self.name = name
        self.order = order
        self.tools = tools
        self.slots = slots
        self.traits = traits

    def __repr__(self) -> str:
        return f"Layer({self.name!r})"


def name_of(advisor: object) -> str:
    """The name an advisor goes by."""
    name = getattr(advisor, "name", None)
    return name if isinstance(name, str) and name else type(advisor).__name__


def hooks_of(advisor: object) -> tuple[str, ...]:
    """The hooks an advisor defines, from the outside in."""
    return tuple(hook for hook in HOOKS if getattr(advisor, hook, None) is not None)


def check_advisor(advisor: object, number: int) -> None:
    """Refuses what is no advisor, naming it (R-ONION-9).

    Args:
        advisor: what stands in the list.
        number: its place there, from 1.

    Raises:
        ConfigError: it has no hook, or one that could not be called.
    """
    what = f"Advisor {number} ({name_of(advisor)})"
    if advisor is None or isinstance(advisor, type):
        what = f"Advisor {number}"
        hint = "None" if advisor is None else f"the class {advisor.__name__}, not an object of it"
        raise ConfigError(f"{what} is {hint}; give an object with one of the hooks {_list()}.")
    hooks = hooks_of(advisor)
    if not hooks:
        if callable(advisor):
            raise ConfigError(
                f"{what} is a function: say which hook it is, as in"
                f" Layer({name_of(advisor)!r}, chat={getattr(advisor, '__name__', 'it')})."
            )
        raise ConfigError(f"{what} has none of the hooks {_list()}, so it would do nothing.")
    for hook in hooks:
        _check_hook(what, hook, getattr(advisor, hook))
    unknown = frozenset(getattr(advisor, "traits", ())) - frozenset(TRAITS)
    if unknown:
        raise ConfigError(f"{what} has unknown traits {sorted(unknown)}; known: {sorted(TRAITS)}.")


def _check_hook(what: str, hook: str, function: Any) -> None:
    if not callable(function):
        raise ConfigError(f"{what}: its `{hook}` is no function but {type(function).__name__}.")
    asynchronous = inspect.iscoroutinefunction(inspect.unwrap(function)) or (
        inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    )
    if hook == "stream":
        if asynchronous:
            raise ConfigError(
                f"{what}: `stream` is a plain function that returns a transform, not `async def`."
            )
        count, shape = 1, "(request) -> Transform | None"
    else:
        if not asynchronous:
            raise ConfigError(f"{what}: `{hook}` must be `async def {hook}(request, call_next)`.")
        count, shape = 2, "(request, call_next)"
    if not takes(function, count):
        raise ConfigError(f"{what}: `{hook}` must take {shape}.")


def _list() -> str:
    return ", ".join(HOOKS)
