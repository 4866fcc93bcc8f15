"""Views of a transcript, for any transcript and any limit."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue.messages import Message, ToolCall, ToolResult, assistant, system, tool_result, user
from retinue.messages.window import exchanges, fit, heal, is_question, opening, turns
from tests.messages.made import exchange, feedback, histories, messages, one_turn
from tests.messages.made import turns as current_turns
from tests.strict import check_transcript

limits = st.integers(-3, 40)


def one(message: Message) -> int:
    return 1


def weight(message: Message) -> int:
    """A size that differs from message to message, as tokens do."""
    return 1 + 3 * len(message.parts) + (7 if message.role == "tool" else 0)


sizes = st.sampled_from([one, weight])


def untouchable(current: Sequence[Message]) -> list[Message]:
    """What of the current turn is never cut: what is said to the model, and the last exchange."""
    last = exchanges(current)[-1]
    return [m for m in current if m.role in ("user", "system") or any(m is one for one in last)]


def checked(view: Sequence[Message]) -> None:
    """No call without its result, no result without its call."""
    check_transcript(view, asked_together=[m.id for m in view if m.role == "user"])


@pytest.mark.rule("R-MEM-4")
@pytest.mark.behaviour("B-ME-2")
@given(histories, current_turns, limits, sizes)
def test_a_view_never_parts_a_call_from_its_result(history, current, limit, size) -> None:
    checked(fit(history, current, limit, size))


@pytest.mark.rule("R-MEM-4")
@given(histories, current_turns, limits, sizes)
def test_a_view_keeps_the_order(history, current, limit, size) -> None:
    places = {message.id: at for at, message in enumerate([*history, *current])}
    kept = [places[message.id] for message in fit(history, current, limit, size)]
    assert kept == sorted(set(kept))


@pytest.mark.rule("R-MEM-4")
@pytest.mark.behaviour("B-ME-2")
@given(histories, current_turns, limits, sizes)
def test_the_current_questions_and_the_last_exchange_stay(history, current, limit, size) -> None:
    view = fit(history, current, limit, size)
    kept = {message.id for message in view}
    assert {message.id for message in untouchable(current)} <= kept


@pytest.mark.rule("R-MEM-4")
@pytest.mark.behaviour("B-ME-2")
@given(histories, current_turns, limits, sizes)
def test_a_view_begins_with_a_question(history, current, limit, size) -> None:
    first = fit(history, current, limit, size)[0]
    assert is_question(first) or first.role == "system"


@pytest.mark.rule("R-MEM-4")
@given(histories, current_turns, limits, sizes)
def test_a_view_fits_unless_only_untouchable_parts_remain(history, current, limit, size) -> None:
    view = fit(history, current, limit, size)
    least = [*opening(history), *untouchable(current)]
    assert sum(map(size, view)) <= limit or list(view) == least


@pytest.mark.rule("R-MEM-4")
@given(histories, current_turns, limits, sizes)
def test_a_turn_of_the_past_is_kept_whole_or_not_at_all(history, current, limit, size) -> None:
    kept = {message.id for message in fit(history, current, limit, size)}
    past = turns(history[len(opening(history)) :])
    whole = [all(m.id in kept for m in turn) for turn in past]
    some = [any(m.id in kept for m in turn) for turn in past]
    assert whole == some == sorted(whole), "the latest turns are those that stay"


@pytest.mark.rule("R-MEM-4")
@given(st.lists(st.just("rule"), max_size=2), histories, current_turns, limits, sizes)
def test_the_prompt_that_a_conversation_begins_with_stays(
    rules, history, current, limit, size
) -> None:
    prompt = [system(rule) for rule in rules]
    view = fit([*prompt, *history], current, limit, size)
    assert list(view[: len(prompt)]) == prompt


@pytest.mark.rule("R-MEM-4")
def test_a_system_message_of_a_later_turn_goes_with_its_turn() -> None:
    prompt, rule = system("be kind"), system("be brief")
    first = [user("a"), *exchange(0)]
    second = [rule, user("b"), *exchange(0)]
    third = [user("c"), *exchange(0)]
    current = [user("d")]
    history = [prompt, *first, *second, *third]
    assert fit(history, current, 7, one) == (prompt, *second, *third, *current)
    assert fit(history, current, 6, one) == (prompt, *third, *current)
    assert fit(history, current, 0, one) == (prompt, *current)


@pytest.mark.rule("R-MEM-4")
@given(histories, current_turns, sizes)
def test_a_view_that_fits_is_all_there_is(history, current, size) -> None:
    everything = (*history, *current)
    total = sum(map(size, everything))
    assert fit(history, current, total, size) == everything
    if history:
        assert len(fit(history, current, total - 1, size)) < len(everything)


@pytest.mark.rule("R-MEM-4")
def test_an_oversized_turn_is_trimmed_pair_by_pair_from_the_oldest_on() -> None:
    question, rounds = user("q"), [exchange(1) for _ in range(4)]
    current = [question, *(message for one_round in rounds for message in one_round)]
    assert fit(one_turn(["user"], [0]), current, 6, one) == (question, *rounds[2], *rounds[3])
    assert fit([], current, 1, one) == (question, *rounds[3])


@pytest.mark.rule("R-MEM-4")
def test_a_trimmed_turn_has_no_hole_in_it() -> None:
    big, small = exchange(3), exchange(1)
    current = [user("q"), *exchange(1), *big, *small]
    assert fit([], current, 6, one) == (current[0], *small)


def test_a_turn_starts_with_a_question_and_not_with_feedback() -> None:
    first = [user("a"), user("b"), *exchange(2), feedback(), *exchange(0)]
    second = [system("rule"), user("c"), *exchange(0)]
    assert turns([*first, *second]) == [tuple(first), tuple(second)]
    assert turns([]) == []


@given(st.lists(messages, max_size=8))
def test_turns_and_exchanges_lose_nothing(transcript: list[Message]) -> None:
    assert [m for turn in turns(transcript) for m in turn] == transcript
    assert [m for piece in exchanges(transcript) for m in piece] == transcript


# -- healing ---------------------------------------------------------------------------------------


def without(transcript: Sequence[Message], lost: Sequence[bool]) -> list[Message]:
    """The transcript with some results lost, as a process that died leaves it."""
    gone = iter(lost)
    return [m for m in transcript if m.role != "tool" or not next(gone, False)]


@pytest.mark.rule("R-MEM-5")
@given(histories, st.lists(st.booleans(), max_size=40))
def test_healing_answers_every_call_once(history, lost) -> None:
    healed = heal(without(history, lost), "lost")
    checked(healed)
    asked = [call.id for message in healed for call in message.tool_calls]
    answered = [result.call_id for message in healed for result in message.tool_results]
    assert sorted(asked) == sorted(answered)


@pytest.mark.rule("R-MEM-5")
@given(histories, st.lists(st.booleans(), max_size=40))
def test_healing_twice_changes_nothing(history, lost) -> None:
    healed = heal(without(history, lost), "lost")
    assert heal(healed, "lost again") == healed


@pytest.mark.rule("R-MEM-5")
@given(histories, st.lists(st.booleans(), max_size=40))
def test_healing_keeps_what_was_there(history, lost) -> None:
    broken = without(history, lost)
    healed = heal(broken, "lost")
    assert [message for message in healed if message.origin != "healed"] == broken
    added = [message for message in healed if message.origin == "healed"]
    assert all(m.text == "" and m.tool_results[0].text == "lost" for m in added)
    assert all(not message.tool_results[0].ok for message in added)


@pytest.mark.rule("R-MEM-5")
def test_an_id_that_comes_again_is_healed_in_its_own_round() -> None:
    again = ToolCall("call_0", "search")
    done = [assistant(calls=[again]), tool_result(ToolResult("call_0", "search"))]
    healed = heal([user("a"), *done, user("b"), assistant(calls=[again])], "lost")
    assert [message.role for message in healed[-2:]] == ["assistant", "tool"]
    healed = heal([user("a"), assistant(calls=[again]), user("b"), *done], "lost")
    assert [m.role for m in healed] == ["user", "assistant", "tool", "user", "assistant", "tool"]
