"""What was encoded is sent again as it is."""

import json

import pytest

from retinue.messages import (
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from retinue.messages.message import tool_result
from retinue.models.capabilities import UNKNOWN, Limits
from retinue.models.gateways import GATEWAYS, Gateway
from retinue.models.openai.encode import RequestEncoder
from retinue.models.openai.messages import MessageEncoder
from retinue.tools import tool
from tests.models.calling import chat
from tests.wire.sends.openai.encoding import PNG, thought

ANY = Limits("m", UNKNOWN)


def test_a_message_is_encoded_once_and_its_changed_copy_anew() -> None:
    encoder = MessageEncoder(GATEWAYS["openai"], ANY)
    message = user("Hello")
    (first,) = encoder.encode([message])
    (again,) = encoder.encode([message])
    assert again is first
    (changed,) = encoder.encode([message.with_text("Bye")])
    assert json.loads(changed)["content"] == "Bye"
    assert message == user("Hello").with_(id=message.id)


def test_gateways_do_not_share_the_bytes_of_a_message() -> None:
    message = thought("deepseek")
    (deepseek,) = MessageEncoder(GATEWAYS["deepseek"], ANY).encode([message])
    (other,) = MessageEncoder(Gateway(name="deepseek"), ANY).encode([message])
    assert b"Hm." in deepseek
    assert b"Hm." not in other


def test_the_second_request_begins_with_the_bytes_of_the_first() -> None:
    encoder = RequestEncoder("m", GATEWAYS["openai"], UNKNOWN)
    said = [user("Hello"), assistant("Hi")]
    first = encoder.encode(chat(*said, instructions=("Be brief.",)))
    second = encoder.encode(chat(*said, user("And?"), instructions=("Be brief.",)))
    assert second.startswith(first.removesuffix(b"]}"))


def test_a_tool_is_encoded_once() -> None:
    @tool
    def once() -> str:
        """Something."""
        return ""

    encoder = RequestEncoder("m", GATEWAYS["openai"], UNKNOWN)
    first = encoder.encode(chat("Hi", tools=(once,)))
    once.spec.parameters["title"] = "changed behind its back, to see whether it is read again"
    assert encoder.encode(chat("Hi", tools=(once,))) == first


def rounds(count: int, content: Text | Image) -> list[Message]:
    """A question, and rounds of two calls and their results."""
    messages = [user("Go on.")]
    for number in range(count):
        calls = [ToolCall(f"call_{number}_{which}", "chart", "{}") for which in "ab"]
        messages.append(assistant(calls=calls))
        messages += [tool_result(ToolResult(one.id, one.name, (content,))) for one in calls]
    return messages


@pytest.mark.parametrize("content", [Text("done"), Image(data=PNG, media_type="image/png")])
def test_a_long_history_that_grows_is_sent_as_one_that_is_new(content: Text | Image) -> None:
    encoder = RequestEncoder("m", GATEWAYS["openai"], UNKNOWN)
    said = rounds(10, content)
    growing = chat(*said, instructions=("Be brief.",))
    for end in range(12, len(said)):
        anew = chat(*said[:end], instructions=("Be brief.",))
        assert encoder.encode(growing.with_(messages=said[:end])) == encoder.encode(anew)


def test_a_long_history_that_was_changed_is_sent_as_it_is_now() -> None:
    encoder = RequestEncoder("m", GATEWAYS["openai"], UNKNOWN)
    said = rounds(10, Text("done"))
    request = chat(*said)
    encoder.encode(request)
    said[2] = tool_result(ToolResult("call_0_a", "chart", (Text("mended"),)))
    assert b"mended" in encoder.encode(request.with_(messages=said))
    assert b"Go on." not in encoder.encode(request.with_(messages=said[1:]))
