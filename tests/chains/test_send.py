"""Deltas through transforms: what is shown, what is returned, what is logged."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.chains import Transform
from retinue.chains.channel import Channel
from retinue.chains.events import TextChunk, ThinkingChunk, ToolArguments, final_text
from retinue.chains.send import Delivery
from retinue.messages import (
    Delta,
    FinishDelta,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
)
from tests.chains.sending import Buffered, Each, read, scope_of, send

kinds = ["drop", "upper", "split", "twice", "turn to text", "generator"]
made = st.one_of(
    st.tuples(st.just(Each), st.sampled_from(kinds), st.booleans()),
    st.tuples(st.just(Buffered), st.sampled_from(["async", "iterator", "list"]), st.booleans()),
)
chains = st.lists(made, max_size=4)
words = st.text("aé \n", max_size=3)
deltas = st.lists(
    st.one_of(
        st.builds(TextDelta, words),
        st.builds(ThinkingDelta, words, st.sampled_from([None, None, "sig"])),
        st.builds(ToolCallDelta, st.integers(0, 2), st.just("id"), st.just("t"), st.just("{}")),
        st.just(UsageDelta(Usage(input=3, output=2))),
        st.just(FinishDelta("stop")),
    ),
    max_size=8,
)


def build(chain: Sequence[tuple[Any, str, bool]]) -> list[Transform]:
    return [kind(how, late=late) for kind, how, late in chain]


async def one_after_another(sent: Iterable[Delta], transforms: Iterable[Transform]) -> list[Delta]:
    """The plainest way to apply transforms: all deltas through the first, then the next."""
    said: list[Delta] = [d for d in sent if isinstance(d, (TextDelta, ThinkingDelta))]
    for transform in transforms:
        out = [new for d in said for new in cast("Iterable[Delta]", transform.feed(d))]
        tail = transform.flush()
        said = [*out, *(await tail if isinstance(tail, Awaitable) else tail)]  # type: ignore[list-item]
    return said


def text(sent: Iterable[Delta]) -> str:
    return "".join(delta.text for delta in sent if isinstance(delta, TextDelta))


def thinking(sent: Iterable[Delta]) -> str:
    return "".join(delta.text for delta in sent if isinstance(delta, ThinkingDelta))


@pytest.mark.rule("R-STREAM-2", "R-STREAM-3")
@pytest.mark.behaviour("B-ST-4")
@given(deltas, chains)
async def test_what_is_shown_is_what_is_returned_through_any_chain(
    sent: list[Delta], chain: list[tuple[Any, str, bool]]
) -> None:
    got = await send(sent, *build(chain))
    assert got.shown_text == got.shown.text
    assert got.shown_thinking == got.shown.thinking
    unwatched = await send(sent, *build(chain), watched=False)
    assert (unwatched.shown.text, unwatched.logged.text) == (got.shown.text, got.logged.text)


@pytest.mark.rule("R-STREAM-2", "R-STREAM-3")
@given(deltas, chains)
async def test_a_stream_gives_what_the_whole_answer_would(
    sent: list[Delta], chain: list[tuple[Any, str, bool]]
) -> None:
    got = await send(sent, *build(chain))
    plain = [one for one in chain if not one[2]]
    late = [one for one in chain if one[2]]
    said = await one_after_another(sent, build(plain))
    told = await one_after_another(said, build(late))
    assert (got.logged.text, got.logged.thinking) == (text(said), thinking(said))
    assert (got.shown.text, got.shown.thinking) == (text(told), thinking(told))


@pytest.mark.rule("R-STREAM-2")
@given(deltas, chains)
async def test_calls_tokens_and_the_reason_pass_every_chain_untouched(
    sent: list[Delta], chain: list[tuple[Any, str, bool]]
) -> None:
    got = await send(sent, *build(chain))
    bare = await send(sent)
    calls = [(call.name, call.arguments) for call in bare.shown.tool_calls]
    assert [(call.name, call.arguments) for call in got.shown.tool_calls] == calls
    assert got.logged.tool_calls == got.shown.tool_calls
    assert got.logged.id == got.shown.id
    for message in (got.shown, got.logged):
        assert (message.usage, message.finish) == (bare.shown.usage, bare.shown.finish)
    fragments = [event for event in got.events if isinstance(event, ToolArguments)]
    assert len(fragments) == len([d for d in sent if isinstance(d, ToolCallDelta)])


@pytest.mark.rule("R-STREAM-3")
@given(deltas, chains.map(lambda chain: [one for one in chain if not one[2]]))
async def test_without_a_delivery_only_transform_the_log_has_what_was_shown(
    sent: list[Delta], chain: list[tuple[Any, str, bool]]
) -> None:
    got = await send(sent, *build(chain))
    assert got.logged is got.shown


@pytest.mark.rule("R-STREAM-4")
async def test_without_transforms_each_delta_is_one_event() -> None:
    sent = [TextDelta("a"), ThinkingDelta("b"), TextDelta("c"), ToolCallDelta(0, "i", "t", "{}")]
    got = await send(sent)
    assert [type(event) for event in got.events[1:]] == [
        TextChunk,
        ThinkingChunk,
        TextChunk,
        ToolArguments,
    ]
    assert [event.seq for event in got.events] == [1, 2, 3, 4, 5]


@pytest.mark.rule("R-STREAM-3")
async def test_a_delivery_only_transform_comes_after_the_others_wherever_it_stands() -> None:
    for order in (
        (Each("upper", late=True), Each("twice")),
        (Each("twice"), Each("upper", late=True)),
    ):
        got = await send([TextDelta("ab")], *order)
        assert got.shown.text == got.shown_text == "ABAB"
        assert got.logged.text == "abab"


@pytest.mark.rule("R-STREAM-7")
@pytest.mark.behaviour("B-TH-1", "B-TH-2")
async def test_thinking_is_shown_apart_and_kept_with_its_signature() -> None:
    got = await send(
        [ThinkingDelta(" hm"), ThinkingDelta("\n"), ThinkingDelta(signature="s"), TextDelta("Yes")]
    )
    assert got.shown_thinking == " hm\n"
    assert got.shown_text == "Yes"
    assert got.shown.parts[0] == Thinking(" hm\n", "s", provider="p")


# -- an end that is none -----------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-2", "R-LOOP-8")
async def test_half_a_buffer_is_never_shown_where_the_model_did_not_end() -> None:
    channel = Channel()
    delivery = Delivery(scope_of(channel), [Buffered("list")])
    for letter in "abcd":
        await delivery(TextDelta(letter))
    partial = delivery.message(partial=True)
    assert partial.partial
    assert partial.text == "abc" == final_text(await read(channel))


@pytest.mark.rule("R-STREAM-2")
async def test_a_flush_that_fails_shows_nothing_of_what_it_held() -> None:
    class Moderated(Buffered):
        async def flush(self) -> Iterable[Delta]:
            raise ValueError("not this")

    channel = Channel()
    delivery = Delivery(scope_of(channel), [Moderated("async")])
    await delivery(TextDelta("bad"))
    with pytest.raises(ValueError, match="not this"):
        await delivery.finish()
    assert final_text(await read(channel)) == ""
