"""Token counts of the Messages format in the normal form (R-USAGE-1)."""

from collections.abc import Mapping
from typing import Any

from retinue.messages import Usage
from retinue.models.loose import a_count, an_object


def normal_usage(report: Mapping[str, Any]) -> Usage | None:
    """What was counted, or None where nothing was: all counts at zero mean "unknown".

    The vendor counts the cached parts of a prompt apart; here the prompt is all of them.
    """
    fresh = a_count(report.get("input_tokens"))
    read = a_count(report.get("cache_read_input_tokens"))
    written = a_count(report.get("cache_creation_input_tokens"))
    output = a_count(report.get("output_tokens"))
    after = an_object(report.get("output_tokens_details"))
    if not (fresh or read or written or output):
        return None
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(
        input=prompt or None,
        output=output,
        cache_read=read,
        cache_write=written,
        reasoning=a_count(after.get("thinking_tokens")),
    )
