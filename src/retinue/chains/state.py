"""State slots: named values that tools write and tools and layers read (R-TOOL-4).

All calls of a batch see the same snapshot. What they write is folded into it at the barrier, in
call order, so the outcome never depends on which call was faster.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from retinue.errors import ConfigError


class Slot(Struct, frozen=True):
    """A declared slot.

    Attributes:
        name: its key in the state.
        reducer: `reducer(old, new) -> value`, or None for "the last writer in call order".
        default: the value before anything is written; each turn gets a (shallow) copy.
    """

    name: str
    reducer: Callable[[Any, Any], Any] | None = None
    default: Any = None


def initial(slots: Iterable[Slot], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state a turn begins with: copies of the defaults, and over them what the caller gave."""
    return MappingProxyType({**{slot.name: copy(slot.default) for slot in slots}, **given})


def fold(
    state: Mapping[str, Any], writes: Sequence[Mapping[str, Any]], slots: Mapping[str, Slot]
) -> Mapping[str, Any]:
    """The state after a batch. `writes` stand in call order."""
    if not any(writes):
        return state
    after = dict(state)
    written: set[str] = set()
    for one in writes:
        for name, value in one.items():
            slot = slots.get(name)
            if slot is not None and slot.reducer is not None:
                after[name] = slot.reducer(after.get(name), value)
                continue
            if slot is None and name in written:
                warnings.warn(
                    f"Two calls of one batch wrote the slot {name!r}, which is not declared; the"
                    f" later call in call order wins. Declare Slot({name!r}, reducer=…) to merge.",
                    stacklevel=2,
                )
            after[name] = value
            written.add(name)
    return MappingProxyType(after)


def by_name(slots: Iterable[tuple[str, Slot]]) -> dict[str, Slot]:
    """Slots by name.

    Args:
        slots: each with the name of who declares it.

    Raises:
        ConfigError: two different slots have one name.
    """
    found: dict[str, tuple[str, Slot]] = {}
    for owner, slot in slots:
        first, same = found.setdefault(slot.name, (owner, slot))
        if same != slot:
            raise ConfigError(
                f"Two different slots are called {slot.name!r}, one of {first} and one of {owner};"
                " rename one of them."
            )
    return {name: slot for name, (_, slot) in found.items()}
