"""JSON that is nested deeper than it can be read is an answer that is none, in every format."""

import pytest

from retinue.errors import ModelBroken
from tests.wire.receives.anthropic.decoding import DECODING as ANTHROPIC
from tests.wire.receives.decoding import Decoding
from tests.wire.receives.gemini.decoding import DECODING as GEMINI
from tests.wire.receives.openai.decoding import DECODING as CHAT_COMPLETIONS
from tests.wire.receives.responses.decoding import DECODING as RESPONSES

DEEP = b"[" * 5000 + b"]" * 5000
EVERY = pytest.mark.parametrize(
    "decoding",
    [ANTHROPIC, CHAT_COMPLETIONS, GEMINI, RESPONSES],
    ids=["anthropic", "chat_completions", "gemini", "responses"],
)


@EVERY
@pytest.mark.parametrize("body", [DEEP, b'{"error":' + DEEP + b"}", b'{"type":' + DEEP + b"}"])
def test_an_answer_that_is_nested_too_deep_is_broken(decoding: Decoding, body: bytes) -> None:
    assert type(decoding.whole(body).error) is ModelBroken
    assert type(decoding.stream([b"data: " + body + b"\n\n"]).error) is ModelBroken
