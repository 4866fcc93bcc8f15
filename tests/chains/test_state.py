"""State slots: how writes are folded, with no agent."""

import operator
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retinue import Slot
from retinue.chains.state import fold, initial

WRITES = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2), max_size=6)


@pytest.mark.rule("R-TOOL-4")
@given(WRITES)
def test_a_reducer_sees_every_write_in_call_order(writes: list[dict[str, int]]) -> None:
    slots = {name: Slot(name, reducer=operator.add, default=[]) for name in "ab"}
    listed = [{name: [value] for name, value in one.items()} for one in writes]
    after = fold(initial(slots.values(), {}), listed, slots)
    for name in "ab":
        assert after[name] == [one[name] for one in writes if name in one]


@pytest.mark.rule("R-TOOL-4")
@given(WRITES)
def test_without_a_reducer_the_last_writer_in_call_order_wins(
    writes: list[dict[str, int]],
) -> None:
    slots = {name: Slot(name) for name in "ab"}
    after = fold(initial(slots.values(), {}), writes, slots)
    for name in "ab":
        assert after[name] == next((one[name] for one in reversed(writes) if name in one), None)


@pytest.mark.rule("R-TOOL-4")
@given(WRITES)
def test_folding_never_changes_the_state_that_running_tools_see(
    writes: list[dict[str, int]],
) -> None:
    state = {"a": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fold(state, writes, {})
    assert state == {"a": 0}


@pytest.mark.rule("R-TOOL-4")
def test_an_undeclared_slot_warns_only_when_two_calls_wrote_it() -> None:
    assert fold({}, [{"a": 1}, {"b": 2}], {}) == {"a": 1, "b": 2}
    with pytest.warns(UserWarning, match="'a', which is not declared; the later call"):
        assert fold({}, [{"a": 1}, {"a": 2}], {}) == {"a": 2}
    assert fold({}, [{"a": 1}, {"a": 2}], {"a": Slot("a")}) == {"a": 2}


def test_the_caller_s_values_go_over_the_defaults() -> None:
    slots = [Slot("a", default=1), Slot("b", default=2)]
    given_state: dict[str, Any] = {"b": 3, "c": 4}
    assert initial(slots, given_state) == {"a": 1, "b": 3, "c": 4}
