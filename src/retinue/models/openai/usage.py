"""Token counts of the Chat Completions format in the normal form (R-USAGE-1)."""

from typing import Any

from retinue.messages import Usage
from retinue.models.loose import an_object


def normal_usage(report: Any) -> Usage | None:
    """What the provider counted, or None where it counted nothing.

    Counts stand under several names, and all of them at zero is how some servers say "unknown".
    xAI and Gemini count reasoning beside the output; that shows in the total, and is put right.
    """
    raw = an_object(report)
    prompt = _count(raw, "prompt_tokens")
    output = _count(raw, "completion_tokens")
    if not prompt and not output:
        return None
    before = an_object(raw.get("prompt_tokens_details"))
    after = an_object(raw.get("completion_tokens_details"))
    reasoning = _first(_count(after, "reasoning_tokens"), _count(raw, "reasoning_tokens"))
    if output is not None and reasoning:
        beside = _count(raw, "total_tokens") == (prompt or 0) + output + reasoning
        output += reasoning if beside else 0
    return Usage(
        input=prompt or None,
        output=output,
        cache_read=_first(
            _count(before, "cached_tokens"),
            _count(raw, "prompt_cache_hit_tokens"),
            _count(raw, "cached_tokens"),
            _count(raw, "num_cached_tokens"),
        ),
        cache_write=_first(
            _count(before, "cache_write_tokens"),
            _count(before, "cache_creation_tokens"),
            _count(raw, "cache_creation_input_tokens"),
        ),
        reasoning=reasoning,
    )


def _count(raw: dict[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
