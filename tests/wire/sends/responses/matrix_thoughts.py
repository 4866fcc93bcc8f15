"""Requests that hold what earlier answers left behind, said twice."""

import json
from typing import Any

from retinue.messages import Message, Text, Thinking, ToolCall, ToolResult, tool_result, user
from tests.wire.sends.responses.matrix import ASK, ASKED, HI, Case, called, result, talk

THOUGHT = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "gAAAA",
}  # fmt: skip
BARE = {"type": "reasoning", "id": "rs_1", "summary": []}
OPEN = {**BARE, "content": [{"type": "reasoning_text", "text": "Hm."}]}
SEARCH = {
    "type": "web_search_call", "id": "ws_1", "status": "completed",
    "action": {"type": "search", "query": "weather"},
}  # fmt: skip
SHELL = {
    "type": "local_shell_call", "id": "lsh_1", "call_id": "c", "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}  # fmt: skip
MESSAGE, CALL = {"type": "message", "id": "msg_1"}, {"type": "function_call", "id": "fc_1"}


def kept(*items: dict[str, Any], following: dict[str, Any] | None = None, **rest: Any) -> Thinking:
    """What an answer of the vendor left behind."""
    told = {"output": list(items), "following": following, **rest}
    opaque = json.dumps({name: value for name, value in told.items() if value})
    return Thinking("Hm.", opaque=opaque, provider="openai")


def message_item(text: str, **rest: Any) -> dict[str, Any]:
    """A message of the model, in full."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message", "role": "assistant", "status": "completed", "content": [part], **rest,
    }  # fmt: skip


def said(*parts: Any) -> Message:
    """An answer of the model."""
    return Message("assistant", tuple(Text(p) if isinstance(p, str) else p for p in parts))


THOUGHTS = [
    talk(
        "encrypted reasoning and its message", ASK, said(kept(THOUGHT, following=MESSAGE), "Sun."),
        ASK, sent=[ASKED, THOUGHT, message_item("Sun.", id="msg_1"), ASKED],
    ),
    talk(
        "encrypted reasoning and its calls", ASK,
        said(kept(THOUGHT, following=CALL), ToolCall("a", "x"), ToolCall("b", "x")),
        tool_result(ToolResult("a", "x", (Text("1"),))),
        tool_result(ToolResult("b", "x", (Text("2"),))),
        sent=[ASKED, THOUGHT, called("a", "x", id="fc_1"), called("b", "x"),
              result("a", "1"), result("b", "2")],
    ),
    talk(
        "open reasoning", ASK, said(kept(OPEN, following=MESSAGE), "Sun."), ASK,
        sent=[ASKED, OPEN, message_item("Sun.", id="msg_1"), ASKED],
    ),
    talk(
        "reasoning that the vendor has not stored", ASK,
        said(kept(BARE, following=MESSAGE), "Sun."), ASK,
        sent=[ASKED, {"type": "message", "role": "assistant", "content": "Sun."}, ASKED],
    ),
    talk(
        "reasoning that the vendor has stored", ASK,
        said(kept(BARE, following=MESSAGE), "Sun."), ASK,
        sent=[ASKED, BARE, message_item("Sun.", id="msg_1"), ASKED],
        made={"store": True}, include=[],
    ),
    talk(
        "reasoning that led to nothing", ASK, said(kept(THOUGHT)), ASK, sent=[ASKED, ASKED],
    ),
    talk(
        "reasoning whose message is gone", ASK,
        said(kept(THOUGHT, following=MESSAGE), ToolCall("a", "x")),
        tool_result(ToolResult("a", "x", (Text("1"),))),
        sent=[ASKED, called("a", "x"), result("a", "1")],
    ),
    talk(
        "reasoning that came after its message", ASK, said("Sun.", kept(late=[OPEN])), ASK,
        sent=[ASKED, OPEN, {"role": "assistant", "content": "Sun."}, ASKED],
    ),
    talk(
        "thinking of another vendor", ASK,
        said(Thinking("Hm.", signature="s", provider="anthropic"), "Sun."), ASK,
        sent=[ASKED, {"role": "assistant", "content": "Sun."}, ASKED],
    ),
    talk(
        "thinking of another format", ASK,
        said(Thinking("Hm.", opaque='[{"type": "reasoning.text"}]', provider="openai"), "Sun."),
        ASK, sent=[ASKED, {"role": "assistant", "content": "Sun."}, ASKED],
    ),
    talk(
        "phases", ASK,
        said(kept(following={"type": "message", "id": "msg_1", "phase": "commentary"}), "Hm,",
             kept(following={"type": "message", "phase": "final_answer"}), "sun."),
        ASK,
        sent=[ASKED, message_item("Hm,", id="msg_1", phase="commentary"),
              {"type": "message", "role": "assistant", "content": "sun.", "phase": "final_answer"},
              ASKED],
    ),
    talk(
        "tools of the provider", ASK,
        said(kept(THOUGHT, SEARCH, {**THOUGHT, "id": "rs_2"}, following=MESSAGE), "Sun."), ASK,
        sent=[ASKED, THOUGHT, SEARCH, {**THOUGHT, "id": "rs_2"}, message_item("Sun.", id="msg_1"),
              ASKED],
    ),
    talk(
        "a call that nobody answered", ASK, said(kept(THOUGHT, SHELL)), ASK, sent=[ASKED, ASKED],
    ),
    talk(
        "a call in a namespace", ASK,
        said(kept(following={**CALL, "namespace": "crm"}), ToolCall("a", "x")),
        tool_result(ToolResult("a", "x", (Text("1"),))),
        sent=[ASKED, called("a", "x", id="fc_1", namespace="crm"), result("a", "1")],
    ),
    talk(
        "a call with text", ASK,
        said(kept(following={"type": "custom_tool_call", "id": "ct_1"}),
             ToolCall("a", "sql", "SELECT 1")),
        tool_result(ToolResult("a", "sql", (Text("1"),))),
        sent=[ASKED, {"type": "custom_tool_call", "id": "ct_1", "call_id": "a", "name": "sql",
                      "input": "SELECT 1"},
              {"type": "custom_tool_call_output", "call_id": "a", "output": "1"}],
    ),
    Case(
        name="after a stored answer", messages=(ASK, said("Sun.", kept(id="resp_1")), user("Hi")),
        made={"store": True, "previous_response_id": True}, include=[],
        theirs={"input": [HI], "previous_response_id": "resp_1"},
    ),
]  # fmt: skip
