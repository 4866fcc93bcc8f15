"""What the recorded answers of the Responses format must mean."""

from typing import Any

from retinue.models.responses.decode import FINISH
from tests.wire.receives.decoding import Decoded
from tests.wire.receives.replay import Counts, Pairs, Replay, calls_of, finish_of
from tests.wire.receives.responses.decoding import DECODING


def expected_usage(expect: dict[str, Any]) -> Counts:
    raw = expect["usage"] or {}
    before = raw.get("input_tokens_details") or {}
    after = raw.get("output_tokens_details") or {}
    return {
        "input": raw.get("input_tokens"),
        "output": raw.get("output_tokens"),
        "cache_read": before.get("cached_tokens"),
        "cache_write": before.get("cache_write_tokens"),
        "reasoning": after.get("reasoning_tokens"),
    }


def further(expect: dict[str, Any], got: Decoded) -> Pairs:
    cut_off = expect.get("incomplete") == {"reason": "max_output_tokens"}
    return {
        "tool_calls": (expect["tool_calls"], calls_of(got.message)),
        "finish": ("length" if cut_off else finish_of(expect, FINISH), got.message.finish),
        "refusal": (expect.get("refusal"), got.meta.get("refusal")),
        "tools of the provider": (
            [tool["name"] for tool in expect.get("server_tools", ())],
            [item.get("name") or item["type"] for item in got.meta.get("executed_tools", ())],
        ),
    }


PUT_OFF = "an answer that is put off is none"
RESPONSES = Replay(
    form="responses",
    decoding=DECODING,
    usage=expected_usage,
    further=further,
    excused={
        "78f4e74857c1": {"text": "its deltas were shortened; what was shown cannot be taken back"},
        "afb83b46e5ba": {"finish": PUT_OFF, "error": PUT_OFF},
    },
    answers=80,
    refused=10,
    short=8000,
    step=10,
)
