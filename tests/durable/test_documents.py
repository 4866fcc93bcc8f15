"""What is kept comes back as it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Approve, Image, Proceed, Reject, Reply, Retry
from retinue.durable.documents import (
    Answered,
    Fault,
    Said,
    encode,
    packed,
    said_in,
    unpacked,
)
from retinue.durable.execution import Names
from retinue.errors import ModelOverloaded, TurnFailed
from retinue.messages import (
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
)
from retinue.tools.results import as_content

TEXT = st.text(max_size=4)
DELTAS = st.lists(
    st.one_of(
        st.builds(TextDelta, TEXT),
        st.builds(ThinkingDelta, TEXT, st.none() | TEXT, st.none() | TEXT),
        st.builds(
            ToolCallDelta, st.integers(0, 2), st.sampled_from(["", "a"]), TEXT, TEXT
        ),
        st.builds(UsageDelta, st.builds(Usage, st.none() | st.integers(0, 9))),
        st.builds(FinishDelta, TEXT),
    )
)  # fmt: skip


@given(DELTAS)
def test_deltas_come_back_with_their_boundaries(deltas: list[Delta]) -> None:
    assert unpacked(said_in(encode(Said(packed(deltas)))).deltas) == deltas


def test_a_streamed_answer_takes_little_more_room_than_its_text() -> None:
    chunks: list[Delta] = [TextDelta("word ")] * 1_000
    assert len(encode(Said(packed(chunks)))) < 2 * 5_000


@pytest.mark.parametrize("answer", [Approve(), Approve({"a": 1}), Reject("no"), Retry(), Proceed()])
def test_answers_come_back(answer: Any) -> None:
    assert Answered.of(answer).answer == answer


@pytest.mark.parametrize("value", ["yes", {"a": [1]}, ["see", Image(b"\x89")], None])
def test_what_somebody_replies_comes_to_the_model_as_it_would_at_once(value: Any) -> None:
    reply = Answered.of(Reply(value)).answer
    assert isinstance(reply, Reply)
    assert as_content(reply.value) == as_content(value)


def test_an_error_of_a_model_comes_back_as_the_same_kind() -> None:
    error = ModelOverloaded("busy", status=503, retry_after=9.0)
    error.add_note("Tried 3 times.")
    again = Fault.of(error).error
    assert isinstance(again, ModelOverloaded)
    assert (str(again), again.status, again.__notes__) == ("busy", 503, ["Tried 3 times."])
    assert again.retry_after == 0.0


def test_another_error_comes_back_in_words() -> None:
    again = Fault.of(ZeroDivisionError("by zero")).error
    assert isinstance(again, TurnFailed)
    assert str(again) == "ZeroDivisionError: by zero"


def test_names_are_the_same_behind_a_step_whatever_was_named_before_it() -> None:
    first, second = Names("t"), Names("t")
    assert [first(), first(), first()] == ["t", "t.0.0", "t.0.1"]
    assert second() == "t"
    for names in (first, second):
        names.after(3)
        names.after(2)  # one that began earlier and ended later
    assert first() == second() == "t.3.0"
