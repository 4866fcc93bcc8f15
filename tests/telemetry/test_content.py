"""What was said is recorded if asked for, in the form of the conventions, and masked."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Agent, File, Image, Message, tool, user
from retinue.messages import Thinking, assistant
from retinue.messages.masking import mask
from retinue.models.scripted import Say, Scripted, call
from retinue.telemetry.content import LONGEST, Content
from tests.advisors.talking import WAYS, Way, layer
from tests.telemetry.traces import Traces

ways = pytest.mark.parametrize("way", WAYS)
VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CONTENT = {
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
}  # fmt: skip


@tool
async def search(query: str) -> str:
    """Looks it up."""
    return f"found {query} with token=abcdefgh"


def agent(traces: Traces, **options: Any) -> Agent:
    first = Say(
        thinking="hm", calls=[call("search", query="x"), call("search", password="hunter22")]
    )
    return Agent(
        Scripted(first, "done", name="m-1"),
        tools=[search],
        instructions="Be brief.",
        advisors=[traces.telemetry(**options)],
    )


def recorded(traces: Traces) -> set[str]:
    return {name for span in traces.spans for name in span.attributes or {} if name in CONTENT}


@ways
async def test_nothing_said_is_recorded_unless_asked_for(
    traces: Traces, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    await way(agent(traces), "the question")
    assert recorded(traces) == set()
    text = " ".join(span.to_json() for span in traces.spans)
    assert not any(word in text for word in ("the question", "found", "done", "Be brief"))


@ways
async def test_with_content_spans_hold_what_was_sent_and_said(traces: Traces, way: Way) -> None:
    await way(agent(traces, content=True), "the question, key sk-1234567890")
    assert recorded(traces) == CONTENT
    first, last = (dict(span.attributes or {}) for span in traces.all("chat"))
    prompt: Any = first["gen_ai.system_instructions"]
    assert json.loads(prompt) == [{"type": "text", "content": "Be brief."}]
    asked: Any = first["gen_ai.input.messages"]
    assert json.loads(asked) == [
        {"role": "user", "parts": [{"type": "text", "content": "the question, key ***"}]}
    ]
    (answer,) = json.loads(str(first["gen_ai.output.messages"]))
    assert answer["finish_reason"] == "tool_call"
    assert answer["parts"][0] == {"type": "reasoning", "content": "hm"}
    assert answer["parts"][1]["arguments"] == {"query": "x"}
    assert answer["parts"][2]["arguments"] == {"password": "***"}
    roles = [message["role"] for message in json.loads(str(last["gen_ai.input.messages"]))]
    assert roles == ["user", "assistant", "tool", "tool"]
    run = dict(traces.all("execute_tool")[0].attributes or {})
    assert run["gen_ai.tool.call.arguments"] == '{"query":"x"}'
    assert run["gen_ai.tool.call.result"] == "found x with token=***"
    turn = dict(traces.one("invoke_agent").attributes or {})
    (final,) = json.loads(str(turn["gen_ai.output.messages"]))
    assert final["parts"] == [{"type": "text", "content": "done"}]


@pytest.mark.parametrize(
    ("variable", "content", "expected"),
    [
        ("true", None, True), ("SPAN_ONLY", None, True), ("span_and_event", None, True),
        ("false", None, False), ("EVENT_ONLY", None, False), ("", None, False),
        ("true", False, False), ("false", True, True),
    ],
)  # fmt: skip
async def test_an_operator_may_ask_by_the_environment_and_the_program_has_the_last_word(
    traces: Traces, monkeypatch: pytest.MonkeyPatch, variable: str, content: Any, expected: bool
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    await agent(traces, content=content).run("go")
    assert bool(recorded(traces)) is expected


async def test_a_chat_span_holds_what_inner_layers_made_of_the_prompt(traces: Traces) -> None:
    async def add(request: Any, call_next: Any) -> Any:
        return await call_next(request.with_(messages=[*request.messages, user("context")]))

    telemetry = traces.telemetry(content=True)
    await Agent(Scripted("hi"), advisors=[telemetry, layer("Add", "chat", add)]).run("go")
    told = json.loads(str((traces.one("chat").attributes or {})["gen_ai.input.messages"]))
    assert [message["parts"][0]["content"] for message in told] == ["go", "context"]


async def test_a_mask_of_ones_own_is_used_and_its_failure_harms_nothing(traces: Traces) -> None:
    def broken(text: str) -> str:
        raise RuntimeError(text)

    for own in (str.upper, broken):
        one = traces.telemetry(content=True, mask=own)
        assert (await Agent(Scripted("hi"), advisors=[one]).run("go")).text == "hi"
    upper, failed = (
        json.loads(str((span.attributes or {})["gen_ai.output.messages"]))[0]["parts"][0]["content"]
        for span in traces.all("chat")
    )
    assert upper == "HI"
    assert failed == "[not recorded: masking failed with RuntimeError]"


def test_pictures_and_files_are_named_and_not_carried() -> None:
    message = user(
        Image(data=b"12345"),
        Image(url="https://example.org/a.png"),
        File(url="data:audio/wav;base64,AAAA", media_type="audio/wav"),
    )
    (told,) = json.loads(Content(mask).messages([message]))
    assert told["parts"] == [
        {"type": "attachment", "modality": "image", "mime_type": "image/png", "size": 5},
        {
            "type": "uri", "modality": "image", "mime_type": "image/png",
            "uri": "https://example.org/a.png",
        },
        {"type": "attachment", "modality": "audio", "mime_type": "audio/wav", "size": 26},
    ]  # fmt: skip


def test_a_long_text_is_cut_and_no_secret_with_it() -> None:
    key = "sk-" + "a" * 40
    told = Content(mask).text("x" * (LONGEST - 10) + f" {key} " + "y" * LONGEST)
    assert len(told) == LONGEST + 1
    assert told.endswith(" *** yyyyy…")
    told = Content(mask).text(f"{key[:-1]}" * LONGEST)
    assert told == "***…"


TEXT = st.text(st.characters(codec=None))


@given(TEXT, TEXT, TEXT)
def test_whatever_was_said_is_valid_json_and_valid_unicode(a: str, b: str, c: str) -> None:
    made = assistant(a, calls=[call("x").__class__(b, b, c)])
    message = Message("assistant", (*made.parts, Thinking(c)), finish="stop")
    content = Content(mask)
    for told in (content.messages([message]), content.answer(message), content.text(a)):
        told.encode("utf-8")
    (kept,) = json.loads(content.answer(message))
    assert kept["finish_reason"] == "stop"
    assert kept["parts"][-1]["type"] == "reasoning"
