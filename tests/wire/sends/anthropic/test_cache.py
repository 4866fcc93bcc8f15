"""Cache breakpoints, and a prefix that stays as it was."""

import json
from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.messages import Message, Text, ToolCall, ToolResult, assistant, tool_result, user
from retinue.models.anthropic.cache import Cache
from retinue.models.anthropic.messages import MessageEncoder
from retinue.models.capabilities import UNKNOWN, Limits
from retinue.tools import tool
from tests.models.calling import chat
from tests.wire.sends.anthropic.encoding import encoded, encoder


@tool
def look() -> str:
    """Looks."""
    return ""


@tool
def listen() -> str:
    """Listens."""
    return ""


MARK = {"type": "ephemeral"}
TALK = [user("a"), assistant("b"), user("c"), assistant("d"), user("e", "f")]


def marks(body: dict[str, Any]) -> list[str]:
    """Where the marks are, as paths."""
    found: list[str] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            if "cache_control" in value:
                assert value["cache_control"] == MARK
                found.append(path)
            for name, inner in value.items():
                walk(inner, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for at, inner in enumerate(value):
                walk(inner, f"{path}.{at}")

    walk({name: body[name] for name in ("tools", "system", "messages") if name in body}, "")
    return found


TOOLS, FIRST, LAST = "tools.1", "system.0", "system.1"
BEFORE, END = "messages.2.content.0", "messages.4.content.1"


@pytest.mark.parametrize(
    ("cache", "places"),
    [
        ("none", []),
        ("tools", [TOOLS]),
        ("system", [FIRST, LAST]),
        ("conversation", [BEFORE, END]),
        ("auto", [TOOLS, FIRST, BEFORE, END]),
    ],
)
def test_each_strategy_marks_what_it_names(cache: Cache, places: list[str]) -> None:
    body = encoded(*TALK, cache=cache, tools=(look, listen), instructions=("Be brief.", "Today."))
    assert marks(body) == places


@pytest.mark.parametrize("cache", ["tools", "system"])
def test_what_is_not_there_is_not_marked(cache: Cache) -> None:
    assert marks(encoded("a", cache=cache)) == []


def test_a_question_alone_is_not_marked_unless_it_is_asked_for() -> None:
    assert marks(encoded("a", cache="auto", instructions=("Be brief.",))) == ["system.0"]
    assert marks(encoded("a", cache="conversation")) == ["messages.0.content.0"]
    assert marks(encoded("a", cache="auto", tools=(look,))) == ["tools.0", "messages.0.content.0"]


def test_results_are_marked_as_any_block() -> None:
    asked = assistant(calls=[ToolCall("a", "look"), ToolCall("b", "look")])
    results = [tool_result(ToolResult(name, "look", (Text("x"),))) for name in "ab"]
    body = encoded(user("a"), asked, *results, cache="conversation", tools=(look,))
    assert marks(body) == ["messages.0.content.0", "messages.2.content.1"]


def test_marks_of_the_user_count_among_the_four() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "cache_control": MARK}
    body = encoded(
        *TALK,
        cache="auto",
        tools=(look,),
        instructions=("Be brief.",),
        settings=Settings(extra={"tools": [search], "cache_control": MARK}),
    )
    assert body["tools"][1] == search
    assert len(marks(body)) + 1 == 4


def test_a_text_that_speaks_of_marks_is_no_mark() -> None:
    body = encoded('"cache_control": {}', cache="conversation")
    assert marks(body) == ["messages.0.content.0"]


def test_the_next_request_begins_with_the_bytes_of_this_one() -> None:
    one = encoder()
    said = [user("Hello"), assistant("Hi")]
    rest: dict[str, Any] = {"tools": (look, listen), "instructions": ("Be brief.",)}
    first = one.encode(chat(*said, user("And?"), **rest)).content
    second = one.encode(chat(*said, user("And?"), assistant("So."), user("Ah."), **rest)).content
    assert second.startswith(first.removesuffix(b"]}"))


def test_marks_change_nothing_but_themselves() -> None:
    plain = encoded(*TALK, tools=(look,), instructions=("a", "b"))
    text = json.dumps(encoded(*TALK, cache="auto", tools=(look,), instructions=("a", "b")))
    assert json.loads(text.replace(', "cache_control": {"type": "ephemeral"}', "")) == plain


def test_a_message_is_encoded_once_and_its_changed_copy_anew() -> None:
    message = user("Hello")
    messages = MessageEncoder(Limits("some-model", UNKNOWN))
    first = messages.encoded(message)
    assert messages.encoded(message) is first
    assert b"Bye" in messages.encoded(message.with_text("Bye")).blocks[0]
    assert message == Message("user", (Text("Hello"),), id=message.id)


def test_an_id_used_twice_spoils_no_kept_bytes() -> None:
    call, answer = assistant(calls=[ToolCall("a", "look")]), tool_result(ToolResult("a", "look"))
    again, after = assistant(calls=[ToolCall("a", "look")]), tool_result(ToolResult("a", "look"))
    encoded(user("?"), call, answer, again, after, tools=(look,))
    body = encoded(user("?"), again, after, tools=(look,))
    assert body["messages"][1]["content"][0]["id"] == "a"
    assert body["messages"][2]["content"][0]["tool_use_id"] == "a"


def test_a_tool_is_encoded_once() -> None:
    @tool
    def once() -> str:
        """Something."""
        return ""

    one = encoder()
    first = one.encode(chat("Hi", tools=(once,))).content
    once.spec.parameters["title"] = "changed behind its back, to see whether it is read again"
    assert one.encode(chat("Hi", tools=(once,))).content == first
