"""Tokens and reasoning, wherever a provider puts them."""

from typing import Any

import pytest

from tests.models.calling import BOTH, TEXT, ask, model_of


@pytest.mark.rule("R-USAGE-1", "R-USAGE-3")
@pytest.mark.behaviour("B-US-1")
@BOTH
@pytest.mark.parametrize("how", ["last", "with_finish", "every", "x_groq", "absent", "zeros"])
async def test_tokens_are_counted_wherever_they_stand(
    rig: Any, session: str, how: str, stream: bool
) -> None:
    counted = {"input": 90, "output": 12, "cache_read": 40, "cache_write": 3, "reasoning": 5}
    rig.script(session, [{"text": TEXT, "usage": counted, "usage_as": how}])
    usage = (await ask(model_of(rig, session), stream=stream)).message.usage
    if how in ("absent", "zeros"):
        assert usage is None
    else:
        assert usage is not None
        assert {name: getattr(usage, name) for name in counted} == counted


@pytest.mark.behaviour("B-TH-1")
@BOTH
@pytest.mark.parametrize("how", ["reasoning_content", "reasoning", "reasoning_details"])
async def test_reasoning_comes_apart_from_the_text(
    rig: Any, session: str, how: str, stream: bool
) -> None:
    rig.script(
        session, [{"reasoning": " Hm,\n so ", "text": "Yes", "reasoning_as": how, "chunk": 2}]
    )
    answer = await ask(model_of(rig, session), stream=stream)
    assert answer.text == "Yes"
    assert answer.message.thinking == " Hm,\n so "
