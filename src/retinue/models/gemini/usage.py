"""Token counts of the Gemini format in the normal form (R-USAGE-1)."""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from retinue.messages import Usage
from retinue.models.loose import UNREADABLE, a_count


class _Report(Struct, rename="camel"):
    prompt_token_count: Any = None
    tool_use_prompt_token_count: Any = None
    candidates_token_count: Any = None
    thoughts_token_count: Any = None
    cached_content_token_count: Any = None


_decoder: Final = msgspec.json.Decoder(_Report)


def normal_usage(report: Raw) -> Usage | None:
    """What was counted, or None where nothing was: all counts at zero mean "unknown".

    The vendor counts thoughts beside the answer; here the output is both. What its own tools gave
    the model to read is counted apart from the prompt; here it is part of it. Cached tokens are
    part of the prompt there too. The sum of the four is its total, which is how this is known.
    """
    try:
        raw = _decoder.decode(report)
    except UNREADABLE:  # no object
        return None
    prompt, given = a_count(raw.prompt_token_count), a_count(raw.tool_use_prompt_token_count)
    answer, thoughts = a_count(raw.candidates_token_count), a_count(raw.thoughts_token_count)
    if not (prompt or given or answer or thoughts):
        return None
    return Usage(
        input=_sum(prompt, given),
        output=_sum(answer, thoughts),
        cache_read=a_count(raw.cached_content_token_count),
        reasoning=thoughts,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
