"""The strict checker itself: it takes what providers take, and names what they refuse."""

import pytest

from retinue.messages import Message, Text, ToolCall, ToolResult, assistant, tool_result, user
from tests.strict import check_transcript

ASK = user("?")
CALL = ToolCall("c1", "look")
ASKED = assistant(calls=[CALL])
FOUND = tool_result(ToolResult("c1", "look", (Text("here"),)))
SAID = assistant("!")


def test_a_whole_exchange_is_taken() -> None:
    check_transcript([ASK, ASKED, FOUND, SAID, user("and now?")])


def test_questions_of_one_turn_may_follow_each_other() -> None:
    first, second = user("a"), user("b")
    check_transcript([first, second], asked_together=[first.id, second.id])


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([ASK, ASKED], "calls without a result"),
        ([ASK, ASKED, SAID], "where results of"),
        ([ASK, ASKED, FOUND, tool_result(FOUND.tool_results[0])], "no open call"),
        ([ASK, FOUND], "no open call"),
        ([ASK, user("b")], "second user message"),
        ([ASK, Message("assistant")], "empty assistant"),
        ([ASK, Message("assistant", (Text(""),))], "empty assistant"),
        ([ASK, SAID, ASK], "is there twice"),
        ([ASK, assistant(calls=[CALL, CALL])], "two calls of one id"),
        ([Message("user", (CALL,)), FOUND], "a user message with calls"),
        ([ASK, ASKED, Message("user", FOUND.parts)], "a user message with 1 results"),
    ],
)
def test_what_a_provider_refuses_is_named(messages: list[Message], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_transcript(messages)
