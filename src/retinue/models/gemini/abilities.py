"""What each Gemini model takes, as Google documents it. A row each; nothing is guessed.

A model that has no row is taken at its word: what is asked of it is sent, and its provider judges.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import structs

from retinue.models.capabilities import Capabilities, find_row

BUDGETS: Final[Mapping[str, int]] = MappingProxyType(
    {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}
)
"""Tokens of thinking by effort, as Google's own compatible endpoint translates the words."""


class Abilities(Capabilities, frozen=True, kw_only=True):
    """What one model takes, and what is particular to its generation.

    Attributes:
        thinks_by: how its effort is said: as a "level", or as a "budget" of tokens.
        signed_calls: whether it wants the calls of earlier rounds signed.
        media_in_results: whether a tool's result may hold images and documents.
        form_with_tools: whether the form of an answer can be asked for where tools are on offer.
    """

    images: bool | None = True
    audio: bool | None = True
    video: bool | None = True
    documents: bool | None = True
    tools: bool | None = True
    parallel_tools: bool | None = True
    forced_tools: bool | None = True
    schema: bool | None = True
    json_mode: bool | None = True
    thinking: bool | None = True
    shows_thinking: bool | None = True
    sampling: bool | None = True
    seed: bool | None = True
    stop: bool | None = True
    context: int | None = 1_048_576
    output: int | None = 65_536
    thinks_by: Literal["level", "budget"] = "level"
    signed_calls: bool = True
    media_in_results: bool = True
    form_with_tools: bool = True


UNKNOWN: Final = Abilities(
    images=None, audio=None, video=None, documents=None, tools=None, parallel_tools=None,
    forced_tools=None, schema=None, json_mode=None, thinking=None, shows_thinking=None,
    sampling=None, seed=None, stop=None, context=None, output=None,
)  # fmt: skip
"""A model without a row, of the third generation or later."""

UNKNOWN_OLD: Final = structs.replace(
    UNKNOWN, efforts=tuple(BUDGETS), thinks_by="budget", signed_calls=False,
    media_in_results=False, form_with_tools=False,
)  # fmt: skip
"""A model without a row, of an earlier generation."""

_THREE: Final = ("low", "medium", "high")
_FOUR: Final = ("minimal", *_THREE)

_UNTHINKING: Final = Abilities(
    output=8192, thinking=False, shows_thinking=False, efforts=(), signed_calls=False,
    media_in_results=False, form_with_tools=False,
)  # fmt: skip


def _second(efforts: tuple[str, ...]) -> Abilities:
    return Abilities(
        efforts=efforts, thinks_by="budget", signed_calls=False, media_in_results=False,
        form_with_tools=False,
    )  # fmt: skip


MODELS: Final[Mapping[str, Abilities]] = MappingProxyType({
    "gemini-2.0-flash": _UNTHINKING,
    "gemini-2.0-flash-lite": _UNTHINKING,
    "gemini-2.5-pro": _second(_FOUR),
    "gemini-2.5-flash": _second(("none", *_FOUR)),
    "gemini-2.5-flash-lite": _second(("none", *_FOUR)),
    "gemini-3-pro": Abilities(efforts=("low", "high")),
    "gemini-3-flash": Abilities(efforts=_FOUR),
    "gemini-3.1-pro": Abilities(efforts=_THREE),
    "gemini-3.1-flash-lite": Abilities(efforts=_FOUR),
    "gemini-3.5-flash": Abilities(efforts=_FOUR),
    "gemini-3.7-flash": Abilities(efforts=_THREE),
    "gemini-3.8-flash": Abilities(efforts=_THREE),
})  # fmt: skip
"""The rows, by the model's name without what marks a preview or a date."""

_OLD: Final = re.compile(r"gemini-[12]\b")


def abilities_of(model: str) -> Abilities:
    """What the model takes. A "-preview", date or number at the end of its name does not count."""
    bare = model.removeprefix("models/")
    row = find_row(bare, MODELS)
    if row is not None:
        return row
    return UNKNOWN_OLD if _OLD.match(bare) else UNKNOWN
