"""One model call's way out: attempts, what a retry may know, and the budget."""

import asyncio
import math
from typing import Any

import pytest

from retinue.chains.channel import Channel
from retinue.chains.events import AttemptDiscarded, final_text
from retinue.chains.send import Collector, Delivery, settle
from retinue.messages import (
    Delta,
    FinishDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
    UsageDelta,
)
from tests.chains.sending import Each, read, scope_of, send

# -- attempts ----------------------------------------------------------------------------------


@pytest.mark.rule("R-STREAM-5")
async def test_asking_again_takes_back_what_was_shown() -> None:
    channel = Channel()
    scope = scope_of(channel)
    first = Delivery(scope)
    await first(TextDelta("wrong"))
    second = Delivery(scope)
    await second(TextDelta("right"))
    events = await read(channel)
    assert [event.attempt for event in events if isinstance(event, AttemptDiscarded)] == [1]
    assert final_text(events) == second.text == "right"
    assert first.text == ""


@pytest.mark.rule("R-STREAM-5")
async def test_of_two_models_at_once_only_the_later_is_shown() -> None:
    channel = Channel()
    scope = scope_of(channel)
    first, second = Delivery(scope), Delivery(scope)
    await first(TextDelta("a"))
    await second(TextDelta("b"))
    await first(TextDelta("a"))
    assert final_text(await read(channel)) == "b"
    assert first.message().text == "aa"


@pytest.mark.rule("R-STREAM-8")
@pytest.mark.parametrize("watched", [True, False])
async def test_the_reader_gets_the_text_that_a_layer_put_in_its_place(watched: bool) -> None:
    channel = Channel() if watched else None
    scope = scope_of(channel)
    await Delivery(scope)(TextDelta("draft"))
    settle(scope, "draft", "nothing changed")
    assert scope.attempt == 1
    settle(scope, "final", "a layer changed it")
    settle(scope, "final", "a layer changed it")
    assert scope.attempt == 2
    assert scope.standing is not None
    assert scope.standing.text == "final"
    if channel is not None:
        assert final_text(await read(channel)) == "final"


@pytest.mark.rule("R-STREAM-5")
@pytest.mark.behaviour("B-ST-5")
async def test_what_was_said_before_a_call_ran_is_not_taken_back() -> None:
    channel = Channel()
    scope = scope_of(channel)
    before = Delivery(scope)
    await before(TextDelta("let me see"))
    before.closed = True
    settle(scope, "", "nothing is left of it")
    events = await read(channel)
    assert not [event for event in events if isinstance(event, AttemptDiscarded)]
    assert before.text == "let me see"
    assert final_text(events) == ""


@pytest.mark.rule("R-STREAM-5")
@pytest.mark.parametrize("said", ["", " ", "let me see"])
async def test_final_only_leaves_out_what_is_said_before_a_call(said: str) -> None:
    asked = [TextDelta(said), ToolCallDelta(0, "i", "t", "{}")]
    assert (await send(asked, final_only=True)).shown_text == ""
    assert (await send(asked)).shown_text == said
    assert (await send([TextDelta("a"), TextDelta("b")], final_only=True)).shown_text == "ab"


# -- what a retry may know ---------------------------------------------------------------------


@pytest.mark.rule("R-FAIL-2")
@pytest.mark.parametrize("sink", [lambda: Delivery(scope_of()), Collector])
@pytest.mark.parametrize(
    ("delta", "started"),
    [
        (TextDelta("a"), True),
        (ThinkingDelta("a"), True),
        (ToolCallDelta(0, "i", "t"), True),
        (UsageDelta(Usage(input=3)), False),
        (FinishDelta("stop"), False),
    ],
)
async def test_words_and_calls_cannot_be_taken_back_reports_can(
    sink: Any, delta: Delta, started: bool
) -> None:
    to = sink()
    await to(delta)
    assert to.started is started


@pytest.mark.rule("R-USAGE-2")
@pytest.mark.parametrize(
    "sink", [lambda: Delivery(scope_of(), [Each("upper", late=True)]), Collector]
)
async def test_another_try_starts_with_no_reports_of_the_last(sink: Any) -> None:
    to = sink()
    await to(UsageDelta(Usage(input=3)))
    await to(FinishDelta("length"))
    assert to.restart() == Usage(input=3)
    await to(UsageDelta(Usage(output=2)))
    assert to.usage == Usage(output=2)
    assert to.message().finish is None


@pytest.mark.rule("R-USAGE-2", "R-STREAM-3")
async def test_the_log_s_version_of_an_answer_has_no_reports_of_a_failed_try_either() -> None:
    scope = scope_of()
    delivery = Delivery(scope, [Each("upper", late=True)])
    await delivery(UsageDelta(Usage(input=3)))
    delivery.restart()
    await delivery(TextDelta("a"))
    await delivery(UsageDelta(Usage(output=2)))
    logged = scope.log.logged(delivery.message())
    assert (logged.text, logged.usage) == ("a", Usage(output=2))


# -- a budget ----------------------------------------------------------------------------------


@pytest.mark.rule("R-LOOP-3")
@pytest.mark.behaviour("B-LO-15")
@pytest.mark.parametrize("letter", ["a", "é", "字"])
async def test_a_budget_stops_the_stream_by_its_length_in_bytes(letter: str) -> None:
    scope = scope_of(tokens=10)
    delivery = Delivery(scope, [Each("drop")])

    sent = 0

    async def without_end() -> None:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            await delivery(TextDelta(letter))

    with pytest.raises(asyncio.CancelledError):
        await without_end()
    assert delivery.estimate == 10
    assert sent == math.ceil(40 / len(letter.encode()))
    assert scope.stopping.halted is not None
    assert scope.stopping.halted.status == "limit"
