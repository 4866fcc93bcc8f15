"""What the recorded answers of the Chat Completions format must mean."""

from typing import Any

from retinue.models.openai.decode import FINISH
from tests.wire.receives.decoding import Decoded
from tests.wire.receives.openai.decoding import DECODING
from tests.wire.receives.replay import Counts, Pairs, Replay, calls_of, finish_of


def expected_usage(expect: dict[str, Any]) -> Counts:
    """The counts that every provider gives under one name, and the two whose names differ."""
    raw = expect["usage"]
    if not raw:
        return {"input": None, "output": None, "cache_read": None, "reasoning": None}
    before = raw.get("prompt_tokens_details") or {}
    after = raw.get("completion_tokens_details") or {}
    output, reasoning = raw["completion_tokens"], after.get("reasoning_tokens")
    if reasoning and raw["total_tokens"] == raw["prompt_tokens"] + output + reasoning:
        output += reasoning
    cached = [
        before.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),
        raw.get("cached_tokens"),
        raw.get("num_cached_tokens"),
    ]
    return {
        "input": raw["prompt_tokens"],
        "output": output,
        "cache_read": next((count for count in cached if count is not None), None),
        "reasoning": reasoning,
    }


def further(expect: dict[str, Any], got: Decoded) -> Pairs:
    wanted, calls = expect["tool_calls"], calls_of(got.message)
    # An id that the provider did not give is made here.
    named = [
        {**call, "id": want["id"] and call["id"]} for call, want in zip(calls, wanted, strict=False)
    ]
    return {
        # No arguments, written as nothing at all, are an empty object here.
        "tool_calls": ([{**call, "arguments": call["arguments"] or {}} for call in wanted], named),
        "number of calls": (len(wanted), len(calls)),
        "finish": (finish_of(expect, FINISH), got.message.finish),
        "refusal": (expect.get("refusal"), got.meta.get("refusal")),
    }


CHAT_COMPLETIONS = Replay(
    form="chat_completions",
    decoding=DECODING,
    usage=expected_usage,
    further=further,
    excused={
        "a3f82b8b7e16": {"finish": "an error comes after it, and ends the answer instead"},
        "4a7088f0d04d": {"usage": "a prompt of no tokens is one that nobody counted"},
    },
    answers=100,
    refused=20,
    short=2500,
)
