"""Token counts of the Responses format in the normal form (R-USAGE-1)."""

from typing import Any

from retinue.messages import Usage
from retinue.models.loose import an_object


def normal_usage(report: Any) -> Usage | None:
    """What the provider counted, or None where it did not.

    A count of 0 is one: going on with a program that calls tools takes no tokens.
    """
    raw = an_object(report)
    prompt, output = _count(raw, "input_tokens"), _count(raw, "output_tokens")
    if prompt is None and output is None:
        return None
    before = an_object(raw.get("input_tokens_details"))
    after = an_object(raw.get("output_tokens_details"))
    return Usage(
        input=prompt,
        output=output,
        cache_read=_count(before, "cached_tokens"),
        cache_write=_count(before, "cache_write_tokens"),
        reasoning=_count(after, "reasoning_tokens"),
    )


def _count(raw: dict[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return value if type(value) is int and value >= 0 else None
