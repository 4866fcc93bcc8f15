"""Token counts of the Chat Completions format in the normal form (R-USAGE-1)."""

from collections.abc import Mapping
from typing import Any, Final

from retinue.messages import Usage
from retinue.models.loose import an_object

_FIELDS: Final[Mapping[str, str]] = {
    "prompt_tokens": "input",
    "completion_tokens": "output",
    "reasoning_tokens": "reasoning",
    "cached_tokens": "cache_read",
    "prompt_cache_hit_tokens": "cache_read",
    "num_cached_tokens": "cache_read",
    "cache_write_tokens": "cache_write",
    "cache_creation_tokens": "cache_write",
    "cache_creation_input_tokens": "cache_write",
}
"""What is counted, by the names that it has at one provider or another."""


def normal_usage(report: Any) -> Usage | None:
    """What the provider counted, or None where it counted nothing.

    Where something is counted twice, the details are right. All counts at zero is how some servers
    say "unknown". xAI and Gemini count reasoning beside the output; that shows in the total, and is
    put right.
    """
    raw = an_object(report)
    counts: dict[str, int] = {}
    for part in (raw.get("prompt_tokens_details"), raw.get("completion_tokens_details"), raw):
        for name, value in an_object(part).items():
            field = _FIELDS.get(name)
            if field is not None and type(value) is int and value >= 0:
                counts.setdefault(field, value)
    prompt, output = counts.get("input"), counts.get("output")
    if not prompt and not output:
        return None
    if prompt == 0:
        del counts["input"]
    reasoning = counts.get("reasoning")
    if output is not None and reasoning:
        beside = raw.get("total_tokens") == (prompt or 0) + output + reasoning
        counts["output"] += reasoning if beside else 0
    return Usage(**counts)
