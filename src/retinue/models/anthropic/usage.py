"""Token counts of the Messages format in the normal form (R-USAGE-1)."""

from collections.abc import Mapping
from typing import Any

from retinue.messages import Usage
from retinue.models.loose import an_object


def normal_usage(report: Mapping[str, Any]) -> Usage | None:
    """What was counted, or None where nothing was: all counts at zero mean "unknown".

    The vendor counts the cached parts of a prompt apart; here the prompt is all of them.
    """
    fresh = _count(report, "input_tokens")
    read = _count(report, "cache_read_input_tokens")
    written = _count(report, "cache_creation_input_tokens")
    output = _count(report, "output_tokens")
    if not (fresh or read or written or output):
        return None
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(
        input=prompt or None,
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=_count(an_object(report.get("output_tokens_details")), "thinking_tokens"),
    )


def _count(report: Mapping[str, Any], name: str) -> int | None:
    value = report.get(name)
    return value if type(value) is int and value >= 0 else None
