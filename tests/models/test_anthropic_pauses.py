"""What is said beside an answer that the vendor pauses, and where code of its goes on."""

from typing import Any

import pytest

from retinue.chains.settings import Settings
from retinue.messages import FinishDelta, TextDelta, Usage, UsageDelta
from retinue.models.anthropic.pauses import AnswerInParts
from tests.models.calling import Heard, chat

PAUSE = FinishDelta("pause_turn")


async def test_what_the_parts_cite_and_count_is_told_as_of_one_answer() -> None:
    answer = AnswerInParts(chat("Go"), Heard())
    await answer(PAUSE)
    answer.note({"id": "msg_1", "citations": ["a"], "server_tool_use": {"web_search_requests": 10}})
    answer.sent_back()
    await answer(FinishDelta("stop"))
    answer.note({"id": "msg_2", "citations": ["b"], "server_tool_use": {"web_search_requests": 2}})
    assert not answer.is_paused
    assert answer.meta == {
        "id": "msg_2", "citations": ["a", "b"], "server_tool_use": {"web_search_requests": 12},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, "container_1"),
        ({"container": "container_0"}, "container_1"),
        (
            {"container": {"skills": ["xlsx"]}, "tools": []},
            {"skills": ["xlsx"], "id": "container_1"},
        ),
    ],
)
async def test_code_goes_on_in_the_container_where_it_began(
    given: dict[str, Any], sent: Any
) -> None:
    answer = AnswerInParts(chat("Go", settings=Settings(extra=given)), Heard())
    await answer(PAUSE)
    answer.note({"container": {"id": "container_1", "expires_at": "2026-10-21"}})
    assert answer.sent_back().settings.extra == {**given, "container": sent}


@pytest.mark.rule("R-USAGE-2")
async def test_the_reports_of_each_part_are_cumulative_and_the_parts_add_up() -> None:
    heard = Heard()
    answer = AnswerInParts(chat("Go"), heard)
    await answer(UsageDelta(Usage(input=10, output=1)))
    await answer(TextDelta("One. "))
    await answer(UsageDelta(Usage(output=5)))
    await answer(PAUSE)
    request = answer.sent_back()
    await answer(UsageDelta(Usage(input=20, output=1, cache_read=10)))
    await answer(TextDelta("Two."))
    await answer(UsageDelta(Usage(output=7)))
    await answer(FinishDelta("stop"))
    assert heard.message.text == "One. Two."
    assert heard.message.usage == Usage(input=30, output=12, cache_read=10)
    assert [message.text for message in request.messages] == ["Go", "One. "]
