"""Token counts add up, and what is unknown stays unknown."""

import pytest
from hypothesis import given

from retinue.messages import Usage
from tests.messages.made import usages

FIELDS = Usage.__struct_fields__


@pytest.mark.rule("R-USAGE-1")
@given(usages, usages)
def test_a_sum_is_unknown_only_where_both_are(a: Usage, b: Usage) -> None:
    total = a + b
    for name in FIELDS:
        known = [value for one in (a, b) if (value := getattr(one, name)) is not None]
        assert getattr(total, name) == (sum(known) if known else None)


@pytest.mark.rule("R-USAGE-2")
@given(usages, usages, usages)
def test_the_order_of_summing_does_not_matter(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a


@pytest.mark.rule("R-USAGE-2")
@given(usages, usages)
def test_a_later_report_wins_where_it_says_something(first: Usage, later: Usage) -> None:
    seen = first.overlaid(later)
    for name in FIELDS:
        said = getattr(later, name)
        assert getattr(seen, name) == (getattr(first, name) if said is None else said)


@pytest.mark.rule("R-USAGE-1")
def test_zero_is_known_and_none_is_not() -> None:
    assert Usage(input=0) + Usage() == Usage(input=0)
    assert Usage(input=0) != Usage()
    assert Usage(input=5).overlaid(Usage(input=0)) == Usage(input=0)


def test_the_total_counts_input_and_output_once() -> None:
    full = Usage(input=100, output=20, cache_read=80, cache_write=5, reasoning=15)
    assert full.total == 120
    assert Usage(output=3).total == 3
    assert Usage().total == 0
