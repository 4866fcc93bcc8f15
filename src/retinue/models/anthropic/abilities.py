"""What each Claude model takes, as Anthropic documents it. A row each; nothing is guessed.

A model that has no row is taken at its word: what is asked of it is sent, and its provider judges.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from msgspec import structs

from retinue.models.capabilities import Capabilities, find_row

NEWEST: Final = "2026-10-21"
"""The version of the API that is spoken by default. It takes no sampling parameters."""


class Abilities(Capabilities, frozen=True, kw_only=True):
    """What one model takes, and how its thinking is asked for.

    Attributes:
        thinks_by: how it can be made to think: "manual" with a budget of tokens, "adaptive" as it
            finds right; None: not at all.
        manual_too: whether a model of adaptive thinking takes a budget as well.
        thinks_unasked: whether it thinks when nothing is said about it.
        effort_field: whether its efforts are a field of the request; else they are budgets of
            thinking.
        prefill: whether a request may end with the beginning of the answer.
    """

    images: bool | None = True
    audio: bool | None = False
    video: bool | None = False
    documents: bool | None = True
    tools: bool | None = True
    parallel_tools: bool | None = True
    forced_tools: bool | None = True
    schema: bool | None = True
    json_mode: bool | None = False
    thinking: bool | None = True
    shows_thinking: bool | None = True
    efforts: tuple[str, ...] | None = ("low", "medium", "high", "xhigh", "max")
    sampling: bool | None = False
    seed: bool | None = False
    stop: bool | None = True
    thinks_by: Literal["manual", "adaptive"] | None = "adaptive"
    manual_too: bool = False
    thinks_unasked: bool = False
    effort_field: bool = True
    prefill: bool = False

    def at(self, version: str) -> "Abilities":
        """What is left of it in a version of the API."""
        return structs.replace(self, sampling=False) if version >= NEWEST else self


UNKNOWN: Final = Abilities(
    images=None, documents=None, tools=None, parallel_tools=None, forced_tools=None, schema=None,
    thinking=None, shows_thinking=None, efforts=None, sampling=None, stop=None, manual_too=True,
    prefill=True,
)  # fmt: skip
"""A model without a row."""

_THREE: Final = ("low", "medium", "high")
_LONG: Final = 1_000_000

_OLDEST: Final = Abilities(
    context=200_000, output=4096, thinking=False, shows_thinking=False,
    thinks_by=None, efforts=(), effort_field=False, schema=False,
    prefill=True, sampling=True, documents=False,
)  # fmt: skip
_OLD: Final = Abilities(
    context=200_000, output=8192, thinking=False, shows_thinking=False,
    thinks_by=None, efforts=(), effort_field=False, schema=False,
    prefill=True, sampling=True,
)  # fmt: skip
_MANUAL: Final = Abilities(
    context=200_000, output=64_000, thinks_by="manual", efforts=_THREE, effort_field=False,
    schema=False, prefill=True, sampling=True,
)  # fmt: skip
_OPUS_4: Final = Abilities(
    context=200_000, output=32_000, thinks_by="manual", efforts=_THREE, effort_field=False,
    schema=False, prefill=True, sampling=True,
)  # fmt: skip
_CLAUDE_4_5: Final = Abilities(
    context=200_000, output=64_000, thinks_by="manual", efforts=_THREE, effort_field=False,
    prefill=True, sampling=True,
)  # fmt: skip
_CLAUDE_4_6: Final = Abilities(
    context=_LONG, output=128_000, manual_too=True, efforts=(*_THREE, "max"), sampling=True,
)  # fmt: skip
_ADAPTIVE: Final = Abilities(context=_LONG, output=128_000)
_THINKING: Final = Abilities(context=_LONG, output=128_000, thinks_unasked=True)
_UNFORCED: Final = Abilities(
    context=_LONG, output=128_000, thinks_unasked=True, forced_tools=False
)  # fmt: skip

MODELS: Final[Mapping[str, Abilities]] = MappingProxyType({
    "claude-3-haiku": _OLDEST,
    "claude-3-opus": _OLDEST,
    "claude-3-5-haiku": _OLD,
    "claude-3-5-sonnet": _OLD,
    "claude-3-7-sonnet": _MANUAL,
    "claude-opus-4": _OPUS_4,
    "claude-opus-4-0": _OPUS_4,
    "claude-opus-4-1": Abilities(
        context=200_000, output=32_000, thinks_by="manual", efforts=_THREE, effort_field=False,
        prefill=True, sampling=True,
    ),
    "claude-sonnet-4": _MANUAL,
    "claude-sonnet-4-0": _MANUAL,
    "claude-haiku-4-5": _CLAUDE_4_5,
    "claude-sonnet-4-5": _CLAUDE_4_5,
    "claude-opus-4-5": Abilities(
        context=200_000, output=64_000, thinks_by="manual", efforts=_THREE, prefill=True,
        sampling=True,
    ),
    "claude-opus-4-6": _CLAUDE_4_6,
    "claude-sonnet-4-6": _CLAUDE_4_6,
    "claude-opus-4-7": _ADAPTIVE,
    "claude-opus-4-8": _ADAPTIVE,
    "claude-mythos-preview": Abilities(
        context=_LONG, output=128_000, manual_too=True, thinks_unasked=True, forced_tools=False,
    ),
    "claude-opus-5": _THINKING,
    "claude-sonnet-5": _THINKING,
    "claude-fable-5": _THINKING,
    "claude-mythos-5": _THINKING,
    "claude-haiku-5-5": _THINKING,
    "claude-opus-5-5": _UNFORCED,
    "claude-sonnet-5-5": _UNFORCED,
    "claude-fable-5-1": _UNFORCED,
    "claude-fable-5-2": _UNFORCED,
    "claude-mythos-5-1": _UNFORCED,
    "claude-mythos-5-2": _UNFORCED,
})  # fmt: skip
"""The rows, by the model's name without a date."""


def abilities_of(model: str) -> Abilities:
    """What the model takes. A date or "-latest" at the end of its name is left out of account."""
    bare = model.removeprefix("anthropic/").removeprefix("anthropic.")
    return find_row(bare, MODELS) or UNKNOWN
