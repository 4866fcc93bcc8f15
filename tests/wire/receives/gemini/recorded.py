"""What the recorded answers of the Gemini format must mean."""

from typing import Any

import msgspec

from retinue.models.gemini.decode import FINISH
from tests.wire.receives.decoding import Decoded
from tests.wire.receives.gemini.decoding import DECODING
from tests.wire.receives.replay import Counts, Pairs, Replay, finish_of
from tests.wire.recordings import Recording


def is_row(recording: Recording) -> bool:
    """Whether the stream came as a JSON list: it is read as a whole answer."""
    return "json_array_stream" in recording.features


def expected_usage(expect: dict[str, Any]) -> Counts:
    """The counts, from the four that the vendor counts apart."""
    raw = expect["usage"] or {}

    def both(one: str, other: str) -> int | None:
        found = [raw[name] for name in (one, other) if name in raw]
        return sum(found) if found else None

    return {
        "input": both("promptTokenCount", "toolUsePromptTokenCount"),
        "output": both("candidatesTokenCount", "thoughtsTokenCount"),
        "cache_read": raw.get("cachedContentTokenCount"),
        "cache_write": None,
        "reasoning": raw.get("thoughtsTokenCount"),
    }


def server_tools(got: Decoded) -> list[dict[str, Any]]:
    """The calls that the vendor ran itself."""
    found: list[dict[str, Any]] = []
    for tool in got.meta.get("executed_tools", ()):
        if code := tool.get("executableCode"):
            found.append({"id": code.get("id"), "name": "code_execution", "arguments": code})
        else:
            call = tool["toolCall"]
            found.append(
                {"id": call["id"], "name": call["toolType"], "arguments": call.get("args")}
            )
    return found


def further(expect: dict[str, Any], got: Decoded) -> Pairs:
    message = got.message
    return {
        "tool_calls": (
            [(call["name"], call["arguments"] or {}) for call in expect["tool_calls"]],
            [(call.name, msgspec.json.decode(call.arguments)) for call in message.tool_calls],
        ),
        "ids": (
            [call["id"] for call in expect["tool_calls"]],
            ids(expect["tool_calls"], [call.id for call in message.tool_calls]),
        ),
        "finish": (str(finish_of(expect, FINISH)), message.finish),
        "server_tools": (expect.get("server_tools", []), server_tools(got)),
        "images": (expect.get("images", 0), images(got)),
    }


def ids(wanted: list[dict[str, Any]], got: list[str]) -> list[str | None]:
    """The ids that came; None for one of ours in the place of none."""
    assert len(set(got)) == len(got)
    ours = [call["id"] is None and call_id.startswith("call_")
            for call, call_id in zip(wanted, got, strict=True)]  # fmt: skip
    return [None if mine else call_id for mine, call_id in zip(ours, got, strict=True)]


def images(got: Decoded) -> int:
    kinds = [data["mimeType"] for data in got.meta.get("inline_data", ())]
    return sum(kind.startswith("image/") for kind in kinds)


GEMINI = Replay(
    form="gemini",
    decoding=DECODING,
    usage=expected_usage,
    further=further,
    excused={},
    answers=40,
    refused=8,
    in_pieces=lambda recording: recording.stream and not is_row(recording),
)
