"""How things are put into words for a terminal. Texts in, texts out."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from retinue.messages import Usage

RESULT_WIDTH: Final = 200
"""Characters of a tool's result that are shown."""

_ARGUMENT_WIDTH: Final = 60

# All but tab and newline: an escape sequence in an answer would act on the reader's terminal.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def safe(text: str) -> str:
    """The text without what could steer a terminal, or could not be printed."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def cut(text: str, width: int) -> str:
    """The text on one line of at most `width` characters."""
    line = " ".join(safe(text[: 8 * width]).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def call_words(name: str, arguments: Mapping[str, Any] | None) -> str:
    """A call as it would stand in Python; `name(?)` where the model wrote no JSON object."""
    if arguments is None:
        return f"{cut(name, _ARGUMENT_WIDTH)}(?)"
    given = (
        f"{cut(key, _ARGUMENT_WIDTH)}=" + cut(msgspec.json.encode(value).decode(), _ARGUMENT_WIDTH)
        for key, value in arguments.items()
    )
    return f"{cut(name, _ARGUMENT_WIDTH)}({', '.join(given)})"


def usage_words(usage: Usage, price: float | None, seconds: float) -> str:
    """Tokens, cost and time of a turn on one line."""
    known: list[str] = []
    if usage.input is not None:
        cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
        known.append(f"{usage.input:,} tokens in{cached}")
    if usage.output is not None:
        thought = f" ({usage.reasoning:,} thinking)" if usage.reasoning else ""
        known.append(f"{usage.output:,} out{thought}")
    known = known or ["tokens unknown"]
    known.append("cost unknown" if price is None else f"${price:.4f}")
    return " · ".join([*known, seconds_words(seconds)])


def seconds_words(seconds: float) -> str:
    """A time span."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def count_words(count: int, one: str) -> str:
    """A number of things: `1 message`, `2,000 messages`."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"
