"""Reasoning as it goes back, to the provider that it came from."""

import json
from typing import Any

import pytest

from retinue.messages import (
    Message,
    Text,
    Thinking,
    ToolCall,
    assistant,
)
from retinue.models.gateways import GATEWAYS
from tests.wire.sends.openai.encoding import (
    sent_messages,
    thought,
)


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-2")
@pytest.mark.parametrize(
    ("gateway", "expected"),
    [
        ("deepseek", {"content": "Yes", "reasoning_content": "Hm."}),
        ("moonshot", {"content": "Yes", "reasoning_content": "Hm."}),
        ("glm", {"content": "Yes", "reasoning_content": "Hm."}),
        ("ollama", {"content": "Yes", "reasoning": "Hm."}),
        ("openrouter", {"content": "Yes", "reasoning": "Hm."}),
        (
            "mistral",
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": "Yes"},
                ]
            },
        ),
        ("openai", {"content": "Yes"}),
        ("groq", {"content": "Yes"}),
    ],
)
def test_reasoning_goes_back_in_the_field_that_its_gateway_reads(
    gateway: str, expected: dict[str, Any]
) -> None:
    (message,) = sent_messages(thought(gateway), gateway=gateway)
    assert {name: message[name] for name in set(message) - {"role", "tool_calls"}} == expected


@pytest.mark.behaviour("B-TH-2")
def test_reasoning_does_not_go_to_another_provider() -> None:
    for gateway in GATEWAYS:
        (message,) = sent_messages(thought("somebody"), gateway=gateway)
        assert "Hm." not in json.dumps(message)


@pytest.mark.behaviour("B-TH-2")
def test_reasoning_details_go_back_as_they_came_and_joined() -> None:
    details = [{"type": "reasoning.text", "text": "Hm.", "index": 0}]
    late = [
        {"type": "reasoning.text", "index": 0, "signature": "s1"},
        {"type": "reasoning.encrypted", "index": 1, "data": "gAAA"},
    ]
    message = Message(
        "assistant",
        (
            Thinking("Hm.", opaque=json.dumps(details), provider="openrouter"),
            Text("Yes"),
            Thinking("", opaque=json.dumps(late), provider="openrouter"),
        ),
    )
    (sent,) = sent_messages(message, gateway="openrouter")
    assert sent["reasoning_details"] == [{**details[0], "signature": "s1"}, late[1]]
    assert "reasoning" not in sent


@pytest.mark.parametrize(("gateway", "filler"), [("deepseek", ""), ("moonshot", " ")])
def test_a_call_without_reasoning_gets_the_filler_that_its_gateway_demands(
    gateway: str, filler: str
) -> None:
    called, plain = sent_messages(
        assistant(calls=[ToolCall("a", "look")]), assistant("Yes"), gateway=gateway
    )
    assert called["reasoning_content"] == filler
    assert "reasoning_content" not in plain
