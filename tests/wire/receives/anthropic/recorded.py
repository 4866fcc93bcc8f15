"""What the recorded answers of the Messages format must mean."""

from typing import Any

from retinue.models.anthropic.decode import FINISH
from tests.wire.receives.anthropic.decoding import DECODING
from tests.wire.receives.decoding import Decoded
from tests.wire.receives.replay import Counts, Pairs, Replay, calls_of

UNCOUNTED = "a prompt of no tokens is one that nobody counted"


def expected_usage(expect: dict[str, Any]) -> Counts:
    """The counts, from what the vendor counts apart."""
    raw = expect.get("usage_merged") or expect["usage"] or {}
    fresh = raw.get("input_tokens")
    read = raw.get("cache_read_input_tokens")
    written = raw.get("cache_creation_input_tokens")
    return {
        "input": None if fresh is None else fresh + (read or 0) + (written or 0),
        "output": raw.get("output_tokens"),
        "cache_read": read,
        "cache_write": written,
        "reasoning": (raw.get("output_tokens_details") or {}).get("thinking_tokens"),
    }


def server_tools(got: Decoded) -> list[dict[str, Any]]:
    """The calls that the provider ran itself."""
    return [
        {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        for block in got.kept
        if block["type"] in ("server_tool_use", "mcp_tool_use")
    ]


def further(expect: dict[str, Any], got: Decoded) -> Pairs:
    return {
        "tool_calls": (expect["tool_calls"], calls_of(got.message)),
        "finish": (FINISH.get(expect["finish"], expect["finish"]), got.message.finish),
        "server_tools": (expect.get("server_tools", []), server_tools(got)),
    }


ANTHROPIC = Replay(
    form="anthropic",
    decoding=DECODING,
    usage=expected_usage,
    further=further,
    excused={"1f29b9a07dc4": {"usage": UNCOUNTED}, "296d69c86f1b": {"usage": UNCOUNTED}},
    answers=100,
    refused=10,
)
