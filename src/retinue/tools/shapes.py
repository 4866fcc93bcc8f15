"""`isinstance` for values from anywhere: what they hold is then `Any`, not unknown."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeGuard

from retinue.errors import ConfigError

# The usual ones first: asking the abstract class runs Python code, and every turn asks.
_MAPPINGS: Final = (dict, MappingProxyType, Mapping)


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """A dict, or a subclass."""
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Any mapping."""
    return isinstance(value, _MAPPINGS)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """A list, or a subclass."""
    return isinstance(value, list)


def is_array(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """A list or a tuple."""
    return isinstance(value, (list, tuple))


def is_set(value: object) -> TypeGuard[set[Any] | frozenset[Any]]:
    """A set, frozen or not."""
    return isinstance(value, (set, frozenset))


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Anything that can be iterated over."""
    return isinstance(value, Iterable)


def is_iterator(value: object) -> TypeGuard[Iterator[Any]]:
    """What is used up by reading it, as a generator is."""
    return isinstance(value, Iterator)


def listed(name: str, value: object) -> tuple[Any, ...]:
    """An argument that is a list, whatever kind of iterable it came as.

    Raises:
        ConfigError: it is one thing alone.
    """
    if isinstance(value, str) or not is_iterable(value):
        raise ConfigError(f"{name}={value!r} cannot be used; give a list: {name}=[...].")
    return tuple(value)
