"""Token counts of the Responses format in the normal form (R-USAGE-1)."""

from typing import Any

from retinue.messages import Usage
from retinue.models.loose import a_count, an_object


def normal_usage(report: Any) -> Usage | None:
    """What the provider counted, or None where it did not.

    A count of 0 is one: going on with a program that calls tools takes no tokens.
    """
    raw = an_object(report)
    prompt, output = a_count(raw.get("input_tokens")), a_count(raw.get("output_tokens"))
    if prompt is None and output is None:
        return None
    before = an_object(raw.get("input_tokens_details"))
    after = an_object(raw.get("output_tokens_details"))
    return Usage(
        input=prompt,
        output=output,
        cache_read=a_count(before.get("cached_tokens")),
        cache_write=a_count(before.get("cache_write_tokens")),
        reasoning=a_count(after.get("reasoning_tokens")),
    )
