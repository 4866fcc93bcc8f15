"""Runs of AG-UI, whose frames are as its own types take them, in an order that can be followed."""

from collections.abc import Sequence
from typing import Any

from ag_ui.core import Event, EventType
from pydantic import TypeAdapter

from tests.serve.scenes import within
from tests.serve.serving import Here

_frame: TypeAdapter[Any] = TypeAdapter(Event)


def asking(text: str = "Hello there", **more: Any) -> dict[str, Any]:
    return {
        "threadId": "t-1",
        "runId": "r-1",
        "messages": [{"id": "m-1", "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
        **more,
    }


async def run(here: Here, body: dict[str, Any], path: str = "/v1/ag-ui") -> list[Any]:
    """The frames of a run, each as AG-UI's own type takes it."""
    got: list[Any] = []
    async with here.stream(path, body) as frames:
        assert frames.response.status == 200, await frames.response.text()
        async for frame in frames.raw():
            got.append(_frame.validate_json(frame["data"]))
    check(got)
    return got


def check(frames: Sequence[Any]) -> None:
    """What a front end counts on: one beginning, one end, and nothing left open or opened twice."""
    kinds = [frame.type for frame in frames]
    assert kinds[0] == EventType.RUN_STARTED
    assert kinds[-1] in (EventType.RUN_FINISHED, EventType.RUN_ERROR)
    opened: set[tuple[str, str]] = set()
    for frame in frames:
        kind = frame.type.value
        name = str(
            getattr(frame, "tool_call_id", None)
            or getattr(frame, "message_id", None)
            or getattr(frame, "step_name", None)
        )
        if kind.endswith(("_START", "_STARTED")) and kind != "RUN_STARTED":
            key = (kind.rpartition("_START")[0], name)
            assert key not in opened
            opened.add(key)
        elif kind.endswith(("_END", "_FINISHED")) and kind != "RUN_FINISHED":
            opened.remove((kind.removesuffix("_END").removesuffix("_FINISHED"), name))
        elif kind in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            assert (kind.removesuffix("_CONTENT"), name) in opened
            assert frame.delta
        elif kind == "TOOL_CALL_ARGS":
            assert ("TOOL_CALL", name) in opened
    assert not opened


def texts(frames: Sequence[Any]) -> str:
    return "".join(f.delta for f in frames if f.type == EventType.TEXT_MESSAGE_CONTENT)


async def refused(here: Here, body: dict[str, Any], status: int, words: str) -> None:
    """Asserts that no run begins, and why."""
    got, error = await within(here.json("POST", "/v1/ag-ui", body))
    assert got == status, error
    assert words in error["error"]["message"]
