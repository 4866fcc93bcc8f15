"""How a model shall answer."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from retinue.tools import NOTHING


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

    def over(self, base: "Settings") -> "Settings":
        """These settings over those of `base`; `extra` and `headers` are merged.

        What is None here stays as `base` has it: a turn cannot lift what its agent sets.
        """
        said = {
            name: value
            for name, value, default in zip(
                self.__struct_fields__, structs.astuple(self), structs.astuple(SILENT), strict=True
            )
            if value != default
        }
        if not said:
            return base
        for name in ("extra", "headers"):
            if name in said:
                said[name] = {**getattr(base, name), **said[name]}
        return structs.replace(base, **said)


SILENT = Settings()
