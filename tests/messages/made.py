"""Messages and transcripts of every kind, for property tests."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from retinue.messages import (
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    new_id,
    system,
    tool_result,
    user,
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.sampled_from(["search", "send", "weather"])
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | words
    | st.floats(allow_nan=False, width=16).filter(lambda number: abs(number) != float("inf")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, json_values, max_size=3)
tokens = st.none() | st.integers(0, 10**6)
usages = st.builds(
    Usage, input=tokens, output=tokens, cache_read=tokens, cache_write=tokens, reasoning=tokens
)

texts = st.builds(Text, words)
images = st.builds(Image, data=st.none() | st.binary(max_size=8), url=st.none() | words)
files = st.builds(File, data=st.none() | st.binary(max_size=8), name=st.none() | words)
thoughts = st.builds(
    Thinking,
    words,
    signature=st.none() | words,
    opaque=st.none() | words,
    provider=st.none() | words,
)
calls = st.builds(ToolCall, id=words, name=names, arguments=words)
results = st.builds(
    ToolResult,
    call_id=words,
    name=names,
    parts=st.lists(texts | images | files, max_size=3).map(tuple),
    ok=st.booleans(),
    note=objects,
)
parts = texts | images | files | thoughts | calls | results

messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    partial=st.booleans(),
    origin=st.sampled_from(["", "feedback", "summary", "healed"]),
    finish=st.none() | st.sampled_from(["stop", "length"]),
    model=st.none() | words,
    usage=st.none() | usages,
    meta=objects,
)
"""Any message, also those that make no sense."""


def exchange(calls: int) -> list[Message]:
    """An answer and, where it calls tools, the results of all of them."""
    asked = [ToolCall(f"call_{new_id()}", "search") for _ in range(calls)]
    return [
        assistant("" if asked else "answer", calls=asked),
        *(tool_result(ToolResult(call.id, call.name, (Text("found"),))) for call in asked),
    ]


def feedback() -> Message:
    """What a layer says when it asks again."""
    return user("again").with_(origin="feedback")


def one_turn(opening: Sequence[str], answers: Sequence[int | None]) -> list[Message]:
    """A turn: the roles that open it, then the calls of each answer; None is a feedback."""
    turn = [system("rule") if role == "system" else user("question") for role in opening]
    for calls in answers:
        turn += [feedback()] if calls is None else exchange(calls)
    return turn


openings = st.sampled_from([["user"], ["user", "user"], ["system", "user"], ["user", "system"]])
answers = st.lists(st.integers(0, 3) | st.none(), max_size=6)
turns = st.builds(one_turn, openings, answers)
past_turns = st.builds(one_turn, openings, st.lists(st.integers(0, 3), min_size=1, max_size=6))
"""Turns that were answered, as a log holds them."""

histories = st.lists(past_turns, max_size=5).map(lambda found: [m for turn in found for m in turn])
