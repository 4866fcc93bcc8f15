"""The matrix goes on: thinking, the vendor's own tools, settings."""

from retinue.chains.settings import Settings
from retinue.messages import (
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    user,
)
from tests.wire.sends.anthropic.matrix import (
    BOTH,
    CLOCK,
    FORM,
    HELLO,
    OSLO,
    Case,
    came,
    clock,
    result,
    said,
    text,
    thought,
    use,
)
from tests.wire.sends.anthropic.matrix_tools import ONE, ONE_THERE, TOOLS

SEARCH = '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}'
FOUND = '{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}'
SEALED = '{"type":"redacted_thinking","data":"AAAA"}'


def loop(*parts: Part) -> list[Message]:
    call = ToolCall("a", "weather", OSLO)
    return [user("?"), Message("assistant", (*parts, call)), result("a", Text("sun"))]


def loop_there(*blocks: object) -> list[dict[str, object]]:
    return [said("?"), said([*blocks, use("a", city="Oslo")], "assistant"),
            said([came("a", "sun")])]  # fmt: skip


HM = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
THOUGHTS = [
    Case(
        name="signed and sealed thoughts go back as they came",
        messages=loop(
            thought(),
            Thinking("", opaque=SEALED, provider="anthropic"),
            Text("So:"),
            Thinking("", "empty", provider="anthropic"),
        ),
        ours=ONE,
        theirs=ONE_THERE
        | {
            "messages": loop_there(
                HM,
                {"type": "redacted_thinking", "data": "AAAA"},
                text("So:"),
                {"type": "thinking", "thinking": "", "signature": "empty"},
            )
        },
    ),
    Case(
        name="thoughts of others, and thoughts without a signature, do not",
        messages=loop(
            thought(provider="deepseek"), thought(None), Thinking("x", opaque="[1]", provider="o")
        ),
        ours=ONE,
        theirs=ONE_THERE | {"messages": loop_there()},
    ),
    Case(
        name="an answer that was cut off in its thoughts",
        messages=[user("a"), Message("assistant", (thought(),), partial=True), user("b")],
        theirs={"messages": [said([text("a"), text("b")])]},
    ),
    Case(
        name="what the vendor's tools did goes back, but for what they did not finish",
        messages=[
            user("a"),
            Message(
                "assistant",
                (
                    Thinking("", opaque=SEARCH, provider="anthropic"),
                    Thinking("", opaque=FOUND, provider="anthropic"),
                    Text("b"),
                    Thinking("", opaque=SEARCH.replace("_1", "_2"), provider="anthropic"),
                ),
            ),
            user("c"),
        ],
        theirs={
            "messages": [
                said("a"),
                said(
                    [
                        {
                            "type": "server_tool_use",
                            "id": "srv_1",
                            "name": "web_search",
                            "input": {"query": "x"},
                        },
                        {
                            "type": "web_search_tool_result",
                            "tool_use_id": "srv_1",
                            "content": [],
                        },
                        text("b"),
                    ],
                    "assistant",
                ),
                said("c"),
            ]
        },
    ),
    Case(
        name="a turn that paused goes on where it was",
        messages=[
            user("a"),
            Message(
                "assistant",
                (Thinking("", opaque=SEARCH, provider="anthropic"),),
                finish="pause_turn",
            ),
        ],
        theirs={
            "messages": [
                said("a"),
                said(
                    [
                        {
                            "type": "server_tool_use",
                            "id": "srv_1",
                            "name": "web_search",
                            "input": {"query": "x"},
                        }
                    ],
                    "assistant",
                ),
            ]
        },
    ),
    Case(
        name="effort of a model that thinks as it finds right",
        settings=Settings(effort="max"),
        theirs=HELLO | {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
    ),
    Case(
        name="effort of a model that thinks with a budget",
        model="claude-haiku-4-5",
        settings=Settings(effort="medium", max_tokens=20_000),
        theirs=HELLO
        | {"max_tokens": 20_000, "thinking": {"type": "enabled", "budget_tokens": 8192}},
    ),
    Case(
        name="effort of a model that does both",
        model="claude-opus-4-5",
        settings=Settings(effort="low", max_tokens=4000),
        theirs=HELLO
        | {
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "output_config": {"effort": "low"},
        },
    ),
    Case(
        name="a small answer leaves a small budget",
        model="claude-sonnet-4-5",
        settings=Settings(effort="high", max_tokens=3000),
        theirs=HELLO | {"max_tokens": 3000, "thinking": {"type": "enabled", "budget_tokens": 1976}},
    ),
    Case(
        name="a loop that was begun without thoughts goes on without",
        model="claude-haiku-4-5",
        messages=loop(),
        ours=ONE,
        settings=Settings(effort="high", max_tokens=20_000),
        theirs=ONE_THERE | {"max_tokens": 20_000, "messages": loop_there()},
    ),
    Case(
        name="a call is forced on a model that thinks unasked",
        model="claude-opus-5",
        ours=BOTH,
        settings=Settings(effort="low", tool_choice="required"),
        theirs=HELLO | TOOLS | {"tool_choice": {"type": "any"}, "output_config": {"effort": "low"}},
    ),
    Case(
        name="thoughts are to be shown",
        model="claude-opus-5-5",
        settings=Settings(effort="low", extra={"thinking": {"display": "summarized"}}),
        theirs=HELLO
        | {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "low"},
        },
    ),
    Case(
        name="thoughts are to be shown, of whatever depth",
        model="claude-opus-5-5",
        settings=Settings(extra={"thinking": {"display": "summarized"}}),
        theirs=HELLO | {"thinking": {"type": "adaptive", "display": "summarized"}},
    ),
    Case(
        name="no thinking",
        model="claude-opus-5",
        settings=Settings(extra={"thinking": {"type": "disabled"}}),
        theirs=HELLO | {"thinking": {"type": "disabled"}},
    ),
]

SETTINGS = [
    Case(
        name="stops",
        settings=Settings(stop=("END", "STOP")),
        theirs=HELLO | {"stop_sequences": ["END", "STOP"]},
    ),
    Case(
        name="a long answer is streamed",
        settings=Settings(max_tokens=100_000),
        theirs=HELLO | {"max_tokens": 100_000, "stream": True},
    ),
    Case(
        name="a temperature, in the older version",
        version="2023-06-01",
        settings=Settings(temperature=0.5),
        theirs=HELLO | {"extra_body": {"temperature": 0.5}},
    ),
    Case(
        name="top_p and top_k, in the older version",
        version="2023-06-01",
        settings=Settings(top_p=0.9, extra={"top_k": 5}),
        theirs=HELLO | {"extra_body": {"top_p": 0.9, "top_k": 5}},
    ),
    Case(
        name="fields of the vendor's own",
        settings=Settings(
            extra={"metadata": {"user_id": "u1"}, "service_tier": "auto", "speed": "standard"}
        ),
        theirs=HELLO
        | {"metadata": {"user_id": "u1"}, "service_tier": "auto", "speed": "standard"},
    ),
    Case(
        name="a form",
        ours={"output": FORM},
        theirs=HELLO
        | {"output_config": {"format": {"type": "json_schema", "schema": FORM.schema}}},
    ),
    Case(
        name="a form, effort and tools",
        model="claude-sonnet-5-5",
        ours={"output": FORM, "tools": (clock,)},
        settings=Settings(effort="xhigh"),
        theirs=HELLO
        | {
            "tools": [CLOCK],
            "thinking": {"type": "adaptive"},
            "output_config": {
                "effort": "xhigh",
                "format": {"type": "json_schema", "schema": FORM.schema},
            },
        },
    ),
]  # fmt: skip
