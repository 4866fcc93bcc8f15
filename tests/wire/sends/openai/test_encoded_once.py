"""What was encoded is sent again as it is."""

import json

from retinue.messages import (
    assistant,
    user,
)
from retinue.models.capabilities import UNKNOWN, Limits
from retinue.models.gateways import GATEWAYS, Gateway
from retinue.models.openai.encode import RequestEncoder
from retinue.models.openai.messages import MessageEncoder
from retinue.tools import tool
from tests.models.calling import chat
from tests.wire.sends.openai.encoding import (
    thought,
)

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
