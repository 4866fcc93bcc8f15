"""Deltas become one message: parts in order, calls whole, thinking apart, tokens as reported."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retinue.messages import (
    Accumulator,
    Delta,
    FinishDelta,
    Message,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
    UsageDelta,
)


def folded(*deltas: Delta) -> Accumulator:
    answer = Accumulator()
    for delta in deltas:
        answer.add(delta)
    return answer


def message(*deltas: Delta) -> Message:
    return folded(*deltas).message(provider="acme")


counts = st.none() | st.integers(0, 9)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
deltas = st.one_of(
    st.builds(TextDelta, st.text(max_size=3)),
    st.builds(
        ThinkingDelta,
        st.text(max_size=3),
        st.sampled_from([None, None, "sig"]),
        st.none() | st.just("[]"),
    ),
    st.builds(ToolCallDelta, st.integers(0, 2), st.sampled_from(["", "a", "b"]), st.just("t")),
    st.builds(UsageDelta, usages, st.booleans()),
    st.builds(FinishDelta, st.sampled_from(["", "stop", "length"])),
)


@given(st.lists(deltas))
def test_no_text_and_no_thinking_is_lost_or_moved(sent: list[Delta]) -> None:
    got = message(*sent)
    assert got.text == "".join(d.text for d in sent if isinstance(d, TextDelta))
    assert got.thinking == "".join(d.text for d in sent if isinstance(d, ThinkingDelta))
    assert folded(*sent).text == got.text


@given(st.lists(deltas))
def test_there_are_no_empty_parts_and_no_two_calls_of_one_id(sent: list[Delta]) -> None:
    got = message(*sent)
    assert all(part.text for part in got.parts if isinstance(part, Text))
    assert all(p.text or p.signature or p.opaque for p in got.parts if isinstance(p, Thinking))
    ids = [call.id for call in got.tool_calls]
    assert len(ids) == len({d.index for d in sent if isinstance(d, ToolCallDelta)})
    assert len(set(ids)) == len(ids)
    assert all(ids)


@given(st.lists(deltas), st.lists(st.integers(0, 20)))
def test_where_text_is_cut_into_chunks_makes_no_difference(
    sent: list[Delta], cuts: list[int]
) -> None:
    finer: list[Delta] = []
    for delta in sent:
        if isinstance(delta, TextDelta):
            at = cuts.pop() if cuts else 0
            finer += [TextDelta(delta.text[:at]), TextDelta(delta.text[at:])]
        else:
            finer.append(delta)
    assert shape(message(*finer)) == shape(message(*sent))


@given(st.lists(deltas), st.sampled_from([TextDelta(""), ThinkingDelta("")]), st.integers(0, 20))
@example([ThinkingDelta("a"), ThinkingDelta("b")], TextDelta(""), 1)
@example([TextDelta("a"), TextDelta("b")], ThinkingDelta(""), 1)
def test_an_empty_delta_changes_nothing(sent: list[Delta], empty: Delta, at: int) -> None:
    assert shape(message(*sent[:at], empty, *sent[at:])) == shape(message(*sent))


def shape(message: Message) -> list[object]:
    """The parts, without the ids that were made up for calls that had none."""
    return [
        (ToolCall, part.name, part.arguments) if isinstance(part, ToolCall) else part
        for part in message.parts
    ]


def test_parts_stand_in_the_order_in_which_they_began() -> None:
    got = message(
        ThinkingDelta("hm"),
        TextDelta("a"),
        ToolCallDelta(0, "c1", "look"),
        TextDelta("b"),
        ToolCallDelta(0, arguments='{"x": 1}'),
    )
    assert got.parts == (
        Thinking("hm", provider="acme"),
        Text("a"),
        ToolCall("c1", "look", '{"x": 1}'),
        Text("b"),
    )


def test_interleaved_fragments_go_to_their_own_calls() -> None:
    got = message(
        ToolCallDelta(1, "b", "two", "["),
        ToolCallDelta(0, "a", "one", "{"),
        ToolCallDelta(1, arguments="]"),
        ToolCallDelta(0, arguments="}"),
    )
    assert got.parts == (ToolCall("b", "two", "[]"), ToolCall("a", "one", "{}"))


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert message(ToolCallDelta(0, "a", "now")).tool_calls[0].arguments == "{}"


@pytest.mark.rule("R-LOOP-8")
def test_a_partial_message_says_so_and_leaves_out_calls_that_may_be_cut_off() -> None:
    answer = folded(ThinkingDelta("hm"), TextDelta("a"), ToolCallDelta(0, "c", "t", '{"x'))
    got = answer.message(partial=True)
    assert got.partial
    assert got.parts == (Thinking("hm"), Text("a"))


def test_nothing_sent_is_an_empty_answer() -> None:
    assert message().parts == ()
    assert message(TextDelta(""), UsageDelta(Usage(input=1)), FinishDelta("stop")).parts == ()


# -- thinking ----------------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-1")
def test_thinking_is_apart_from_text_and_keeps_its_whitespace() -> None:
    got = message(
        ThinkingDelta(" let\n"), ThinkingDelta("  me \n"), TextDelta("\nYes"), TextDelta(". ")
    )
    assert got.thinking == " let\n  me \n"
    assert got.text == "\nYes. "


@pytest.mark.behaviour("B-TH-2")
def test_each_signature_closes_the_block_that_it_belongs_to() -> None:
    got = message(
        ThinkingDelta("a"),
        ThinkingDelta(signature="s1"),
        ThinkingDelta("b"),
        ThinkingDelta("c", signature="s2"),
        ThinkingDelta("d"),
    )
    assert got.parts == (
        Thinking("a", "s1", provider="acme"),
        Thinking("bc", "s2", provider="acme"),
        Thinking("d", provider="acme"),
    )


@pytest.mark.behaviour("B-TH-2")
def test_blocks_of_opaque_thinking_that_follow_each_other_are_all_kept() -> None:
    got = message(ThinkingDelta(opaque="[1]"), ThinkingDelta(opaque="[2]"), TextDelta("x"))
    assert got.parts == (
        Thinking("", opaque="[1]", provider="acme"),
        Thinking("", opaque="[2]", provider="acme"),
        Text("x"),
    )


# -- tokens ------------------------------------------------------------------------------------

TOTAL = Usage(input=10, output=7, cache_read=4)


@pytest.mark.rule("R-USAGE-2")
@pytest.mark.behaviour("B-US-1")
@pytest.mark.parametrize(
    "reports",
    [
        pytest.param(
            [
                UsageDelta(Usage(input=10, cache_read=4, output=1)),
                UsageDelta(Usage(output=3)),
                UsageDelta(Usage(output=7)),
            ],
            id="the prompt first, then the output so far",
        ),
        pytest.param(
            [
                UsageDelta(Usage(input=10, cache_read=4, output=2)),
                UsageDelta(Usage(input=10, cache_read=4, output=7)),
            ],
            id="all so far, in each chunk",
        ),
        pytest.param([FinishDelta("stop"), UsageDelta(TOTAL)], id="after the end, once"),
        pytest.param(
            [
                UsageDelta(Usage(input=10, cache_read=4), additive=True),
                UsageDelta(Usage(output=3), additive=True),
                UsageDelta(Usage(output=4), additive=True),
            ],
            id="piece by piece",
        ),
    ],
)
def test_every_way_of_reporting_gives_the_same_figures(reports: list[Delta]) -> None:
    assert message(TextDelta("x"), *reports).usage == TOTAL


@pytest.mark.rule("R-USAGE-1")
@pytest.mark.behaviour("B-US-1")
def test_what_no_report_named_is_unknown_and_not_zero() -> None:
    assert message(TextDelta("x")).usage is None
    usage = message(UsageDelta(Usage(output=0))).usage
    assert usage == Usage(output=0)
    assert usage is not None
    assert usage.input is None
    assert usage.total == 0


@given(st.lists(usages, min_size=1))
def test_of_cumulative_reports_the_last_word_on_each_figure_counts(reports: list[Usage]) -> None:
    got = message(*(UsageDelta(usage) for usage in reports)).usage
    for name in Usage.__struct_fields__:
        said = [figure for usage in reports if (figure := getattr(usage, name)) is not None]
        assert getattr(got, name) == (said[-1] if said else None)


def test_an_empty_finish_reason_does_not_hide_the_one_that_was_given() -> None:
    assert message(FinishDelta("length"), FinishDelta("")).finish == "length"
    assert message(FinishDelta("stop"), FinishDelta("length")).finish == "length"
    assert message(FinishDelta("")).finish is None
