"""How a model shall answer."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct, structs

from retinue.errors import ConfigError
from retinue.tools import NOTHING
from retinue.tools.options import is_positive


class Settings(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """How the model shall answer. None leaves a choice to the provider.

    Attributes:
        tool_choice: "auto", "none", "required", or the name of a tool; None says "auto". A forced
            choice counts for the first round of a turn: after it the model is free, or it would
            call for ever.
        parallel_tool_calls: whether it may ask for several calls at once.
        effort: how much it may think: the provider's word, such as "low" or "high".
        timeout: seconds without a byte from the provider before the call fails; 120 by default.
        extra: further fields of the provider's request body, sent as they are.
        headers: further HTTP headers.

    Raises:
        ConfigError: a value cannot be one; what a model takes of the others is checked later.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    effort: str | None = None
    timeout: float | None = None
    extra: Mapping[str, Any] = NOTHING
    headers: Mapping[str, str] = NOTHING

    def __post_init__(self) -> None:
        for name, (fits, what) in _FITTING.items():
            value = getattr(self, name)
            if value is not None and not fits(value):
                # What stands in headers and further fields may be a secret.
                shown = "..." if name in ("extra", "headers") else repr(value)
                raise ConfigError(f"Settings({name}={shown}) cannot be used; give {what}.")

    def __repr__(self) -> str:
        """What it says. The values of headers are left out: a key may be among them."""
        shown = [
            f"{name}={dict.fromkeys(value, '...') if name == 'headers' else value!r}"
            for name, value in self._said()
        ]
        return f"Settings({', '.join(shown)})"

    def over(self, base: "Settings") -> "Settings":
        """These settings over those of `base`; `extra` and `headers` are merged.

        What is None here stays as `base` has it: a turn cannot lift what its agent sets.
        """
        said = dict(self._said())
        if not said:
            return base
        for name in ("extra", "headers"):
            if name in said:
                said[name] = {**getattr(base, name), **said[name]}
        return structs.replace(base, **said)

    def _said(self) -> Iterator[tuple[str, Any]]:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value != getattr(SILENT, name):
                yield name, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and type(value) is not bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    # A text is a sequence of texts too, but was meant as one.
    return isinstance(value, tuple | list) and all(
        _is_text(one) and one for one in cast("Sequence[Any]", value)
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, cast("Mapping[Any, Any]", value)))


def _are_headers(value: Any) -> bool:
    return _is_object(value) and all(map(_is_text, value.values()))


_FITTING: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "temperature": (_is_number, "a finite number"),
    "top_p": (_is_number, "a finite number"),
    "max_tokens": (lambda it: _is_whole(it) and it >= 1, "a whole number of 1 or more"),
    "stop": (_are_texts, "a tuple of texts that are not empty, such as ('END',)"),
    "seed": (_is_whole, "a whole number"),
    "tool_choice": (_is_text, "'auto', 'none', 'required' or the name of a tool"),
    "parallel_tool_calls": (lambda it: isinstance(it, bool), "True or False"),
    "effort": (_is_text, "a word of the provider, such as 'low'"),
    "timeout": (is_positive, "a finite number of seconds above 0"),
    "extra": (_is_object, "a mapping whose keys are texts"),
    "headers": (_are_headers, "a mapping of texts to texts"),
}
"""What each value must be, where it is given, and how to say so."""

SILENT: Final = Settings()
"""Says nothing of anything."""
