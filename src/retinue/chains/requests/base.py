"""What the requests of all hooks have in common."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec import Struct, structs

from retinue.chains.output import Output
from retinue.chains.responses import ChatResponse, Spent
from retinue.chains.settings import Settings
from retinue.errors import ConfigError
from retinue.messages import Input, Message, as_messages, assistant
from retinue.tools import NOTHING, Tool

if TYPE_CHECKING:
    from retinue.chains.scope import Scope


class Request(Struct, frozen=True, kw_only=True):
    """What all requests have in common. `scope` is the library's own."""

    scope: "Scope"
    state: Mapping[str, Any] = NOTHING
    context: Mapping[str, Any] = NOTHING

    def with_(self, **changes: Any) -> Self:
        """A changed copy. Fields that it does not name stay as they are.

        Raises:
            ConfigError: a field that holds several things was given one, or things of a wrong kind.
        """
        for name in changes.keys() & _KINDS.keys():
            changes[name] = _several(name, changes[name])
        return structs.replace(self, **changes)

    def with_context(self, **values: Any) -> Self:
        """A copy with more context. Inner layers see it; what a turn layer adds, every round and
        the caller see too."""
        return structs.replace(self, context={**self.context, **values})

    def reworded(self, answer: Message, text: str) -> Message:
        """An answer with another text for the reader and the caller; the log keeps its own."""
        return self.scope.log.reworded(answer, text)

    def local(self, owner: object) -> dict[str, Any]:
        """The scratch of `owner` (an advisor) for this turn; nobody else sees it (R-ONION-12)."""
        return self.scope.local(owner)

    @property
    def turn_id(self) -> str:
        """The id of the turn."""
        return self.scope.id

    @property
    def agent(self) -> str:
        """The name of the agent whose turn it is."""
        return self.scope.agent

    @property
    def own_model(self) -> Any:
        """The agent's own model, which answers where no layer names another."""
        return self.scope.model

    @property
    def spent(self) -> Sequence[Spent]:
        """The model calls of the turn so far and their tokens, also where they failed."""
        return self.scope.spent

    async def consult(
        self,
        question: Input,
        *,
        model: Any = None,
        instructions: str | None = None,
        settings: Settings | None = None,
        output: Output | None = None,
    ) -> ChatResponse:
        """Asks a model on the side (R-USAGE-4).

        The call counts in the turn's usage and budgets and ends when the turn is cancelled, but
        none of it is in the turn's stream or log, and no layer sees it.

        Args:
            question: what to ask.
            model: which model to ask, an object or a "provider:model" string; the turn's own by
                default.
            instructions: a system prompt for this call.
            settings: how it shall answer.
            output: the form that the answer must have.
        """
        return await self.scope.consult(
            self.scope, as_messages(question), model, instructions, settings, output
        )


def as_answer(answer: str | Message) -> Message:
    """The assistant message that a layer's answer stands for."""
    return answer if isinstance(answer, Message) else assistant(answer)


_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "messages": (Message, "messages"),
    "history": (Message, "messages"),
    "instructions": (str, "texts"),
    "tools": (Tool, "tools"),
}


def _several(name: str, value: object) -> tuple[Any, ...]:
    kind, what = _KINDS[name]
    items: tuple[object, ...] = ()
    if isinstance(value, Iterable) and not isinstance(value, str):
        items = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if all(isinstance(item, kind) for item in items):
            return items
    raise ConfigError(f"with_({name}={value!r}) cannot be used; give a list of {what}.")
