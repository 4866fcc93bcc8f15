"""What an agent is built from is checked here, before any of it is used (R-ONION-9, R-FAIL-3)."""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from retinue.agent.limits import Limits
from retinue.chains import Settings, Slot, Spent, name_of
from retinue.errors import ConfigError
from retinue.messages import Usage
from retinue.models import Model, ModelRetry, cost
from retinue.tools import Engine, Tool, tool
from retinue.tools.shapes import is_mapping, listed

_PARTS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "instructions": (lambda it: isinstance(it, str) or callable(it), "a text or a function"),
    "engine": (lambda it: hasattr(it, "body") and not isinstance(it, type), "an engine"),
    "limits": (lambda it: isinstance(it, Limits), "Limits(...)"),
    "gate": (lambda it: it == "sensitive" or callable(it), "'sensitive' or a function of a call"),
    "eligible": (callable, "a function of the model's response"),
    "slots": (lambda it: all(isinstance(one, Slot) for one in it), "a list of Slot(...)"),
    "settings": (lambda it: isinstance(it, Settings), "Settings(...)"),
    "retry": (lambda it: isinstance(it, ModelRetry), "ModelRetry(...)"),
    "name": (lambda it: isinstance(it, str) and bool(it.strip()), "a text"),
    "description": (lambda it: isinstance(it, str), "a text"),
    "state": (is_mapping, "first values by the names of state slots"),
    "context": (is_mapping, "values by their names"),
    "answers": (is_mapping, "answers by the ids of the calls: {call.id: Approve()}"),
    "turn": (lambda it: isinstance(it, str), "the id of a turn"),
    "fork": (lambda it: isinstance(it, (bool, str)) and it != "", "True, or the id of the fork"),
}


def check_parts(given: Mapping[str, Any], of: str = "") -> None:
    """Refuses an argument of an agent or a turn that is of the wrong kind.

    Args:
        given: the arguments by name; None leaves one out, but a mapping, which would be empty.
        of: whose they are, where that is not plain.

    Raises:
        ConfigError: names the argument and what it takes.
    """
    for name, value in given.items():
        part = _PARTS.get(name)  # the others are checked where they are used
        if part is None:
            continue
        fits, what = part
        if not (fits(value) or (value is None and fits is not is_mapping)):
            whose = f"{of}: " if of else ""
            raise ConfigError(f"{whose}{name}={value!r} cannot be used; give {what}.")


class Family:
    """An agent and those made from it by `with_`: they may share an engine (R-ENGINE-4)."""

    def __init__(self) -> None:
        self._engines: dict[int, Engine] = {}  # keeps them, and so their ids, alive

    def claim(self, engine: Engine) -> None:
        """Says that the engine is this family's.

        Raises:
            ConfigError: it belongs to another one.
        """
        if _holders.setdefault(id(engine), self) is not self:
            raise ConfigError(
                f"This {type(engine).__name__} engine belongs to another agent; give each agent an"
                " engine of its own."
            )
        self._engines[id(engine)] = engine


_holders: weakref.WeakValueDictionary[int, Family] = weakref.WeakValueDictionary()


def check_price(model: Model) -> None:
    """A limit to the cost needs a price: without one it would never be reached."""
    if cost([Spent(model.name, model.provider, Usage(input=1, output=1), 0)]) is None:
        raise ConfigError(
            f"Limits(cost=...) cannot hold: no price of {model.provider}:{model.name} is known."
            " Limit the tokens instead."
        )


def has_validator(advisors: Sequence[object]) -> bool:
    """Whether one of the advisors sees to it that the answer has the form asked for."""
    return any("validates" in getattr(advisor, "traits", ()) for advisor in advisors)


def brought(advisors: Sequence[object], what: str) -> list[tuple[str, Any]]:
    """What advisors bring along, each with the advisor's name."""
    found: list[tuple[str, Any]] = []
    for advisor in advisors:
        name = name_of(advisor)
        own = listed(f"{name}.{what}", getattr(advisor, what, ()))
        check_parts({what: own}, of=name)
        found += [(name, one) for one in own]
    return found


def checked_tools(
    given: Iterable[Tool | Callable[..., Any]], advisors: Sequence[object]
) -> tuple[Tool, ...]:
    """The agent's tools and those its advisors bring; wrong or equally named ones are refused."""
    origin = [("the agent", each) for each in given] + brought(advisors, "tools")
    found: dict[str, tuple[str, Tool]] = {}
    for source, each in origin:
        if not callable(each):
            hint = "; write as_tool() behind it" if hasattr(each, "as_tool") else ""
            raise ConfigError(
                f"{each!r}, a tool of {source}, is neither a tool nor a function{hint}."
            )
        one = cast("Tool", each if isinstance(each, Tool) else tool(each))
        one.check()
        if one.name in found:
            raise ConfigError(
                f"Two tools are called {one.name!r}, one of {found[one.name][0]} and one of"
                f" {source}; rename one of them."
            )
        found[one.name] = (source, one)
    return tuple(one for _, one in found.values())
